// Cases for every op row: small graphs, domains of their inputs, and values computed another way.
//
// Host tests check the reference against them; device tests run the same table.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "meganeura/graph.h"
#include "ops/evaluate/evaluate.h"
#include "tests/arrays.h"

namespace meganeura {

// Where the values of an input come from.
struct Domain {
  enum class Kind : uint8_t {
    kReal,      // uniform in [low, high)
    kNonzero,   // magnitude uniform in [low, high), either sign
    kInteger,   // uniform whole numbers in [low, high]
    kFraction,  // a whole number in [low, high] plus a fraction in [0.1, 0.4)
    kDistinct,  // low·(k − n/2) + high for a permutation of k < n: no two are closer than low
  };
  Kind kind = Kind::kReal;
  double low = -2.0;
  double high = 2.0;
};

using CaseValues = std::map<std::string, Array>;

struct OpCase {
  std::string name;  // "add/broadcast"
  std::string row;   // the op row it is about
  // Declares its inputs in the graph and returns the output; `size` scales the extents.
  std::function<Tensor(Graph& graph, int64_t size)> build;
  std::map<std::string, Domain> domains;  // of every input, by name
  // The output's values from those of the inputs, independently of the op rows.
  std::function<std::vector<double>(const CaseValues& values, int64_t size)> expected;
  bool differentiable = false;  // in every float input of the domain
};

// The sizes every case runs at.
inline constexpr int64_t kCaseSizes[] = {1, 15, 17, 33, 65};

std::vector<OpCase> op_cases();

// Values of the domain, as the dtype stores them; a function of the arguments alone.
std::vector<double> sample(const std::string& name, const Shape& shape, DType dtype,
                           const Domain& domain);

// Values for every input of a case that was built into the graph.
LeafValues sample_inputs(const OpCase& op_case, const Graph& graph, int64_t size);
CaseValues as_arrays(const LeafValues& leaves);

// The parts of the table.
std::vector<OpCase> elementwise_cases();
std::vector<OpCase> integer_cases();
std::vector<OpCase> reduction_cases();
std::vector<OpCase> movement_cases();

}  // namespace meganeura
