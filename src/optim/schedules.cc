#include <cmath>
#include <numbers>

#include "base/check.h"
#include "meganeura/optim.h"

namespace meganeura {

Schedule constant_schedule(double lr) {
  return [lr](uint64_t) { return lr; };
}

Schedule step_schedule(double lr, uint64_t every, double factor) {
  if (every == 0) {
    fail(ErrorKind::kInvalidArgument,
         "A step schedule cannot change every 0 steps. Give a period of 1 or more.");
  }
  return [=](uint64_t step) { return lr * std::pow(factor, static_cast<double>(step / every)); };
}

Schedule cosine_schedule(double lr, uint64_t warmup, uint64_t total, double minimum) {
  if (warmup > total) {
    fail(ErrorKind::kInvalidArgument, "A cosine schedule of ", total, " steps cannot warm up for ",
         warmup, ". Warm up for fewer steps, or make the schedule longer.");
  }
  return [=](uint64_t step) {
    if (step < warmup) return lr * static_cast<double>(step) / static_cast<double>(warmup);
    if (step >= total) return minimum;
    const double progress =
        static_cast<double>(step - warmup) / static_cast<double>(total - warmup);
    return minimum + (lr - minimum) * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
  };
}

}  // namespace meganeura
