// Checks gradients against central differences, on the host in f64.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "meganeura/graph.h"

namespace meganeura {

struct GradcheckOptions {
  double step = 1e-3;        // of the wider of two central differences; the domain of the loss
                             // must be smooth that far around the values
  double relative = 1e-6;    // tolerated error relative to the derivative
  double absolute = 1e-9;    // noise floor, relative to max(1, |loss|)
  int directions = 3;        // random directions per parameter
  int64_t per_element = 64;  // parameters up to this size are also checked element by element
  uint64_t seed = 0;         // of the directions
};

struct GradcheckReport {
  int64_t checked = 0;  // derivatives compared
  int64_t failed = 0;
  double worst = 0.0;    // largest |difference| / tolerance
  double largest = 0.0;  // largest |derivative|, to see that the check had something to compare
  std::string first;     // a sentence about the first failure

  bool passed() const { return checked > 0 && failed == 0; }
};

// Compares grad(loss, parameters), evaluated in f64 without rounding, with central differences
// (Richardson-extrapolated, error O(step^4)). `leaves`: values by name of the inputs and of
// whatever else should not take its initializer. The parameters are leaves of the loss's graph;
// they may be inputs. Errors as grad() and as the reference evaluation.
MEGANEURA_API GradcheckReport gradcheck(Tensor loss, std::span<const Tensor> parameters,
                                        const std::map<std::string, std::vector<double>>& leaves,
                                        const GradcheckOptions& options = {});

}  // namespace meganeura
