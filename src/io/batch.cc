#include "io/batch.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "graph/initialize.h"

namespace meganeura {

namespace {

constexpr int kByteValues = 256;

// What a random number is for; part of its counter, so that no two uses share one.
enum class Purpose : uint32_t { kOrder = 0x6f72, kShift = 0x7368 };

std::array<uint32_t, 4> draw(uint32_t item, uint64_t epoch, uint64_t seed, Purpose purpose) {
  return philox4x32({item, static_cast<uint32_t>(epoch), static_cast<uint32_t>(epoch >> 32),
                     static_cast<uint32_t>(purpose)},
                    {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
}

// A number in [0, bound) from 64 random bits; the bias is below bound / 2^64.
uint32_t below(uint32_t bound, uint32_t high, uint32_t low) {
  const uint64_t carry = uint64_t{low} * bound >> 32;
  return static_cast<uint32_t>((uint64_t{high} * bound + carry) >> 32);
}

void check_options(const Dataset& dataset, const LoaderOptions& options) {
  dataset.check();
  const auto refuse = [](const auto&... parts) { fail(ErrorKind::kInvalidArgument, parts...); };
  if (dataset.size() == 0)
    refuse("The data set ", dataset.name, " is empty, so no batch can be drawn from it.");
  if (dataset.size() > std::numeric_limits<uint32_t>::max())
    refuse("The data set ", dataset.name, " has ", dataset.size(),
           " samples; at most 2^32 - 1 are supported.");
  if (options.batch_size < 1)
    refuse("The batch size is ", options.batch_size, "; it must be at least 1.");
  if (options.batch_size > std::numeric_limits<int64_t>::max() / 8 / dataset.image_elements())
    refuse("The batch size ", options.batch_size, " needs more memory than can be addressed.");
  if (options.drop_last && options.batch_size > dataset.size())
    refuse("The data set ", dataset.name, " has ", dataset.size(),
           " samples, fewer than one batch of ", options.batch_size,
           ", and drop_last leaves nothing. Choose a smaller batch size.");
  const int64_t smaller_side = std::min(dataset.height, dataset.width);
  if (options.max_shift < 0 || options.max_shift >= smaller_side)
    refuse("max_shift is ", options.max_shift, "; for images of ", dataset.height, " x ",
           dataset.width, " pixels it must be between 0 and ", smaller_side - 1, ".");
  if (!(options.deviation > 0.0f) || !std::isfinite(options.deviation))
    refuse("The deviation is ", options.deviation, "; it must be positive and finite.");
  if (!std::isfinite(options.mean)) refuse("The mean is ", options.mean, "; it must be finite.");
  if (options.prefetch < 0) refuse("prefetch is ", options.prefetch, "; it must not be negative.");
}

}  // namespace

std::vector<uint32_t> epoch_order(int64_t size, uint64_t seed, uint64_t epoch) {
  std::vector<uint32_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0u);
  for (uint32_t i = static_cast<uint32_t>(size); i > 1; --i) {
    const std::array<uint32_t, 4> bits = draw(i - 1, epoch, seed, Purpose::kOrder);
    std::swap(order[i - 1], order[below(i, bits[0], bits[1])]);
  }
  return order;
}

Shift sample_shift(uint32_t sample, int most, uint64_t seed, uint64_t epoch) {
  const std::array<uint32_t, 4> bits = draw(sample, epoch, seed, Purpose::kShift);
  const uint32_t choices = 2 * static_cast<uint32_t>(most) + 1;
  return {static_cast<int>(below(choices, bits[0], bits[1])) - most,
          static_cast<int>(below(choices, bits[2], bits[3])) - most};
}

BatchMaker::BatchMaker(const Dataset& dataset, const LoaderOptions& options)
    : dataset_(dataset), options_(options) {
  check_options(dataset, options);
  levels_.reserve(kByteValues);
  for (int byte = 0; byte < kByteValues; ++byte) {
    const double level = (byte / 255.0 - double{options.mean}) / double{options.deviation};
    levels_.push_back(static_cast<float>(level));
  }
}

int64_t BatchMaker::samples_per_epoch() const {
  const int64_t size = dataset_.size();
  return options_.drop_last ? size - size % options_.batch_size : size;
}

int64_t BatchMaker::batches_per_epoch() const {
  const int64_t samples = samples_per_epoch();
  return samples / options_.batch_size + (samples % options_.batch_size != 0 ? 1 : 0);
}

void BatchMaker::check(LoaderPosition position) const {
  const int64_t most = samples_per_epoch() - (options_.drop_last ? options_.batch_size : 1);
  if (position.index < 0 || position.index > most)
    fail(ErrorKind::kInvalidArgument, "An epoch of the data set ", dataset_.name,
         " cannot continue at sample ", position.index, "; 0 to ", most, " are possible.");
}

void BatchMaker::copy_image(uint32_t sample, uint64_t epoch, std::span<float> out) const {
  const std::span<const uint8_t> image = dataset_.image(sample);
  const Shift shift = options_.max_shift > 0
                          ? sample_shift(sample, options_.max_shift, options_.seed, epoch)
                          : Shift{};
  const int64_t height = dataset_.height;
  const int64_t width = dataset_.width;
  const int64_t first = std::max<int64_t>(0, shift.x);
  const int64_t last = std::min<int64_t>(width, width + shift.x);
  std::fill(out.begin(), out.end(), levels_[0]);
  for (int64_t channel = 0; channel < dataset_.channels; ++channel) {
    for (int64_t y = 0; y < height; ++y) {
      const int64_t from = y - shift.y;
      if (from < 0 || from >= height) continue;
      const uint8_t* row = image.data() + (channel * height + from) * width;
      float* target = out.data() + (channel * height + y) * width;
      for (int64_t x = first; x < last; ++x) target[x] = levels_[row[x - shift.x]];
    }
  }
}

Batch BatchMaker::make(LoaderPosition position) {
  if (order_.empty() || order_epoch_ != position.epoch) {
    if (options_.shuffle) {
      order_ = epoch_order(dataset_.size(), options_.seed, position.epoch);
    } else if (order_.empty()) {
      order_.resize(static_cast<size_t>(dataset_.size()));
      std::iota(order_.begin(), order_.end(), 0u);
    }
    order_epoch_ = position.epoch;
  }
  const int64_t elements = dataset_.image_elements();
  Batch batch;
  batch.position = position;
  batch.count = std::min(options_.batch_size, samples_per_epoch() - position.index);
  batch.images.assign(static_cast<size_t>(options_.batch_size * elements), levels_[0]);
  batch.labels.assign(static_cast<size_t>(options_.batch_size), 0u);
  for (int64_t i = 0; i < batch.count; ++i) {
    const uint32_t sample = order_[static_cast<size_t>(position.index + i)];
    batch.indices.push_back(sample);
    batch.labels[static_cast<size_t>(i)] = dataset_.labels[sample];
    copy_image(sample, position.epoch,
               std::span(batch.images)
                   .subspan(static_cast<size_t>(i * elements), static_cast<size_t>(elements)));
  }
  const int64_t rest = samples_per_epoch() - position.index - batch.count;
  batch.last_of_epoch = rest == 0 || (options_.drop_last && rest < options_.batch_size);
  batch.next = batch.last_of_epoch ? LoaderPosition{position.epoch + 1, 0}
                                   : LoaderPosition{position.epoch, position.index + batch.count};
  return batch;
}

}  // namespace meganeura
