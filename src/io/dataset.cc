#include <array>
#include <filesystem>

#include "base/check.h"
#include "meganeura/data.h"

namespace meganeura {

namespace {

constexpr uint32_t kMnistClasses = 10;

// The first of the names, plain or compressed, that the directory has.
std::filesystem::path find_file(const std::filesystem::path& directory,
                                std::span<const std::string_view> prefixes,
                                std::string_view suffix) {
  std::vector<std::string> tried;
  for (std::string_view prefix : prefixes) {
    for (std::string_view ending : {"", ".gz"}) {
      tried.push_back(cat(prefix, suffix, ending));
      std::filesystem::path path = directory / tried.back();
      std::error_code ignored;
      if (std::filesystem::is_regular_file(path, ignored)) return path;
    }
  }
  fail(ErrorKind::kFile, "The directory ", directory.string(), " has none of the files ",
       join(tried), ". scripts/fetch_mnist.sh fetches the whole of MNIST.");
}

}  // namespace

std::span<const uint8_t> Dataset::image(int64_t index) const {
  if (index < 0 || index >= size())
    fail(ErrorKind::kInvalidArgument, "The data set ", name, " has ", size(),
         " images; there is no image ", index, ".");
  const size_t elements = static_cast<size_t>(image_elements());
  return std::span(images).subspan(static_cast<size_t>(index) * elements, elements);
}

void Dataset::check() const {
  if (channels <= 0 || height <= 0 || width <= 0)
    fail(ErrorKind::kInvalidArgument, "The images of the data set ", name, " have the shape [",
         channels, ", ", height, ", ", width, "]; every extent must be at least 1.");
  uint64_t elements = labels.size();
  for (int64_t extent : {channels, height, width}) {
    if (__builtin_mul_overflow(elements, static_cast<uint64_t>(extent), &elements))
      fail(ErrorKind::kInvalidArgument, "The size of the data set ", name, " overflows.");
  }
  if (images.size() != elements)
    fail(ErrorKind::kInvalidArgument, "The data set ", name, " has ", images.size(),
         " pixels, but its ", labels.size(), " labels and images of shape [", channels, ", ",
         height, ", ", width, "] ask for ", elements, ".");
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= classes)
      fail(ErrorKind::kInvalidArgument, "Label ", i, " of the data set ", name, " is ", labels[i],
           "; it must be below the number of classes, ", classes, ".");
  }
}

void Dataset::truncate(int64_t count) {
  if (count < 0)
    fail(ErrorKind::kInvalidArgument, "The data set ", name, " cannot be cut to ", count,
         " images.");
  if (count >= size()) return;
  labels.resize(static_cast<size_t>(count));
  images.resize(static_cast<size_t>(count * image_elements()));
}

Dataset read_idx_dataset(const std::filesystem::path& images, const std::filesystem::path& labels,
                         uint32_t classes) {
  IdxArray pixels = read_idx(images);
  const IdxArray numbers = read_idx(labels);
  if (pixels.extents.size() != 3)
    fail(ErrorKind::kFile, images.string(), " has the extents [", join(pixels.extents),
         "]; images need three: count, height and width.");
  if (numbers.extents.size() != 1)
    fail(ErrorKind::kFile, labels.string(), " has the extents [", join(numbers.extents),
         "]; labels need one: their count.");
  if (pixels.extents[0] != numbers.extents[0])
    fail(ErrorKind::kFile, images.string(), " has ", pixels.extents[0], " images, but ",
         labels.string(), " has ", numbers.extents[0], " labels.");
  Dataset dataset;
  dataset.name = images.string();
  dataset.height = pixels.extents[1];
  dataset.width = pixels.extents[2];
  dataset.classes = classes;
  dataset.images = std::move(pixels.bytes);
  dataset.labels.assign(numbers.bytes.begin(), numbers.bytes.end());
  try {
    dataset.check();
  } catch (const Error& error) {
    throw Error(ErrorKind::kFile, error.what());
  }
  return dataset;
}

Dataset read_mnist(const std::filesystem::path& directory, Split split) {
  static constexpr std::array<std::string_view, 1> kTrainNames = {"train"};
  static constexpr std::array<std::string_view, 2> kTestNames = {"test", "t10k"};
  const auto prefixes = split == Split::kTrain ? std::span<const std::string_view>(kTrainNames)
                                               : std::span<const std::string_view>(kTestNames);
  const std::filesystem::path images = find_file(directory, prefixes, "-images-idx3-ubyte");
  const std::filesystem::path labels = find_file(directory, prefixes, "-labels-idx1-ubyte");
  return read_idx_dataset(images, labels, kMnistClasses);
}

}  // namespace meganeura
