// What a batch contains, as a pure function of data set, options and position.
#pragma once

#include <cstdint>
#include <vector>

#include "meganeura/data.h"

namespace meganeura {

// How far an image moves, in pixels to the right and down.
struct Shift {
  int x = 0;
  int y = 0;
};

// The order in which an epoch visits the samples: Fisher and Yates with Philox4x32-10, key `seed`,
// counter (sample, epoch, purpose). `size` is at most 2^32 - 1.
std::vector<uint32_t> epoch_order(int64_t size, uint64_t seed, uint64_t epoch);

// The shift of one sample in one epoch, each axis uniform in [-most, most].
Shift sample_shift(uint32_t sample, int most, uint64_t seed, uint64_t epoch);

// Draws batches one after another on one thread; keeps the order of the epoch it is in.
class BatchMaker {
 public:
  // Error(kInvalidArgument) when an option makes no sense for the data set. Both are borrowed.
  BatchMaker(const Dataset& dataset, const LoaderOptions& options);

  // Error(kInvalidArgument) unless the epoch has such an index.
  void check(LoaderPosition position) const;
  // The batch at a position that passes check().
  Batch make(LoaderPosition position);
  int64_t batches_per_epoch() const;

 private:
  // How many samples an epoch visits.
  int64_t samples_per_epoch() const;
  void copy_image(uint32_t sample, uint64_t epoch, std::span<float> out) const;

  const Dataset& dataset_;
  const LoaderOptions& options_;
  std::vector<float> levels_;  // the normalised value of each of the 256 bytes
  std::vector<uint32_t> order_;
  uint64_t order_epoch_ = 0;
};

}  // namespace meganeura
