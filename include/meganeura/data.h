// Data sets on disk and the batches that training draws from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meganeura/export.h"

namespace meganeura {

// Unsigned bytes with their extents, as an IDX file holds them.
struct IdxArray {
  std::vector<uint32_t> extents;
  std::vector<uint8_t> bytes;
};

// Parses the bytes of an IDX file, plain or gzipped (recognised by content). Nothing larger than
// the data that is really there is allocated. Error(kFile) naming `name` when anything is wrong
// with it, Error(kUnsupported) for element types other than unsigned bytes.
MEGANEURA_API IdxArray parse_idx(std::span<const std::byte> bytes, std::string_view name);
// Reads and parses an IDX file.
MEGANEURA_API IdxArray read_idx(const std::filesystem::path& path);

// Images with one label each.
struct MEGANEURA_API Dataset {
  std::string name;
  int64_t channels = 1;
  int64_t height = 0;
  int64_t width = 0;
  uint32_t classes = 0;
  std::vector<uint8_t> images;   // [size, channels, height, width], 0 to 255
  std::vector<uint32_t> labels;  // [size], each below `classes`

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  int64_t image_elements() const { return channels * height * width; }
  // The pixels of one image; Error(kInvalidArgument) when there is no such image.
  std::span<const uint8_t> image(int64_t index) const;
  // Throws Error(kInvalidArgument) unless extents, sizes and labels fit each other.
  void check() const;
  // Keeps the first `count` images; a larger count keeps all.
  void truncate(int64_t count);
};

// Pairs an IDX file of images [N, H, W] with one of labels [N]. Error(kFile) when they do not fit
// or a label is not below `classes`.
MEGANEURA_API Dataset read_idx_dataset(const std::filesystem::path& images,
                                       const std::filesystem::path& labels, uint32_t classes);

enum class Split { kTrain, kTest };

// Reads a split of MNIST, or of a data set laid out like it, from the files
// {train,test,t10k}-{images-idx3,labels-idx1}-ubyte[.gz] of a directory. Error(kFile) listing the
// names that were tried.
MEGANEURA_API Dataset read_mnist(const std::filesystem::path& directory, Split split);

// Where a loader stands: `index` samples of epoch `epoch` have been drawn.
struct LoaderPosition {
  uint64_t epoch = 0;
  int64_t index = 0;
  bool operator==(const LoaderPosition&) const = default;
};

// What a step consumes. The buffers always hold `batch_size` rows, because graphs are static; rows
// from `count` on are padding (blank pixels, label 0) and occur in an epoch's last batch only.
struct Batch {
  int64_t count = 0;
  std::vector<float> images;      // [batch_size, channels, height, width]
  std::vector<uint32_t> labels;   // [batch_size]
  std::vector<uint32_t> indices;  // [count], which samples of the data set these are
  LoaderPosition position;        // of its first sample
  LoaderPosition next;            // of the batch after it
  bool last_of_epoch = false;
};

struct LoaderOptions {
  int64_t batch_size = 64;
  uint64_t seed = 0;
  bool shuffle = true;     // each epoch in an order drawn from (seed, epoch)
  bool drop_last = false;  // leaves out an epoch's last batch when it is not full
  int max_shift = 0;  // moves each image by up to so many pixels, drawn from (seed, epoch, sample)
  float mean = 0.0f;  // a pixel p becomes (p / 255 - mean) / deviation
  float deviation = 1.0f;
  int prefetch = 2;  // batches prepared ahead on a thread; 0 prepares them in next()
  // Changes a finished batch, on the prefetching thread; what it throws comes out of next().
  std::function<void(Batch&)> transform;
};

// Draws batches for ever, epoch after epoch: a function of the data set, the options and the
// position, identical on every platform and whatever the prefetching. Not thread-safe.
class MEGANEURA_API DataLoader {
 public:
  // Error(kInvalidArgument) when an option makes no sense for the data set.
  DataLoader(std::shared_ptr<const Dataset> dataset, LoaderOptions options);
  DataLoader(Dataset dataset, LoaderOptions options);
  ~DataLoader();
  DataLoader(DataLoader&&) noexcept;
  DataLoader& operator=(DataLoader&&) noexcept;

  // The next batch. After an exception, further calls throw it again until seek().
  Batch next();
  // The position of the batch that next() returns next; store it to continue later.
  LoaderPosition position() const;
  // Continues from a stored position; Error(kInvalidArgument) when the epoch has no such index.
  void seek(LoaderPosition position);

  int64_t batches_per_epoch() const;
  const Dataset& dataset() const;
  const LoaderOptions& options() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace meganeura
