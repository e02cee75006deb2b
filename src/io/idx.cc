#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "base/check.h"
#include "base/platform_file.h"
#include "io/inflate.h"
#include "meganeura/data.h"

namespace meganeura {

namespace {

constexpr uint32_t kMostAxes = 8;
constexpr size_t kChunk = size_t{1} << 20;

// The element types that the format knows, by the third byte of the magic number.
struct IdxType {
  uint8_t code;
  std::string_view name;
};
constexpr std::array<IdxType, 6> kTypes = {{{0x08, "unsigned byte"},
                                            {0x09, "signed byte"},
                                            {0x0b, "16-bit integer"},
                                            {0x0c, "32-bit integer"},
                                            {0x0d, "32-bit float"},
                                            {0x0e, "64-bit float"}}};

// Plain or compressed bytes, read in order.
class Source {
 public:
  Source(std::span<const std::byte> bytes, std::string_view name) : plain_(bytes) {
    if (is_gzip(bytes)) inflate_.emplace(bytes, name);
  }

  size_t read(std::span<std::byte> out) {
    if (inflate_) return inflate_->read(out);
    const size_t count = std::min(out.size(), plain_.size());
    if (count > 0) std::memcpy(out.data(), plain_.data(), count);
    plain_ = plain_.subspan(count);
    return count;
  }

  // The most bytes that can still come.
  uint64_t upper_bound() const { return inflate_ ? inflate_->upper_bound() : plain_.size(); }

 private:
  std::span<const std::byte> plain_;
  std::optional<InflateStream> inflate_;
};

uint32_t read_big_endian(Source& source, std::string_view name, std::string_view what) {
  std::array<std::byte, 4> bytes;
  const size_t count = source.read(bytes);
  if (count < bytes.size())
    fail(ErrorKind::kFile, name, " is truncated: it ends inside ", what, ".");
  uint32_t value = 0;
  for (std::byte byte : bytes) value = value << 8 | std::to_integer<uint32_t>(byte);
  return value;
}

// Checks the magic number and returns the number of axes.
uint32_t read_rank(Source& source, std::string_view name) {
  const uint32_t magic = read_big_endian(source, name, "the magic number");
  const uint8_t code = static_cast<uint8_t>(magic >> 8);
  const auto type = std::find_if(kTypes.begin(), kTypes.end(),
                                 [&](const IdxType& row) { return row.code == code; });
  if (magic >> 16 != 0 || type == kTypes.end())
    fail(ErrorKind::kFile, name, " is not an IDX file: its magic number is ", magic,
         " but two zero bytes and a type were expected.");
  if (type != kTypes.begin())
    fail(ErrorKind::kUnsupported, name, " holds elements of the type ", type->name,
         "; only IDX files of unsigned bytes can be read.");
  const uint32_t rank = magic & 0xff;
  if (rank == 0 || rank > kMostAxes)
    fail(ErrorKind::kFile, name, " claims ", rank, " axes; an IDX file has 1 to ", kMostAxes, ".");
  return rank;
}

uint64_t product(const std::vector<uint32_t>& extents, std::string_view name) {
  uint64_t size = 1;
  for (uint32_t extent : extents) {
    if (__builtin_mul_overflow(size, uint64_t{extent}, &size))
      fail(ErrorKind::kFile, name, " claims the extents [", join(extents),
           "], whose product overflows.");
  }
  return size;
}

}  // namespace

IdxArray parse_idx(std::span<const std::byte> bytes, std::string_view name) {
  Source source(bytes, name);
  IdxArray array;
  array.extents.resize(read_rank(source, name));
  for (uint32_t& extent : array.extents) extent = read_big_endian(source, name, "the extents");
  const uint64_t size = product(array.extents, name);
  if (size > source.upper_bound())
    fail(ErrorKind::kFile, name, " is truncated: its extents [", join(array.extents), "] need ",
         size, " bytes, but what follows them can hold at most ", source.upper_bound(), ".");
  while (array.bytes.size() < size) {
    const size_t done = array.bytes.size();
    const size_t wanted = static_cast<size_t>(std::min<uint64_t>(size - done, kChunk));
    array.bytes.resize(done + wanted);
    const size_t count = source.read(std::as_writable_bytes(std::span(array.bytes)).subspan(done));
    if (count < wanted)
      fail(ErrorKind::kFile, name, " is truncated: its extents [", join(array.extents), "] need ",
           size, " bytes, but only ", done + count, " are there.");
  }
  std::byte extra;
  if (source.read({&extra, 1}) != 0)
    fail(ErrorKind::kFile, name, " has bytes behind the ", size, " that its extents [",
         join(array.extents), "] need.");
  return array;
}

IdxArray read_idx(const std::filesystem::path& path) {
  const std::vector<std::byte> bytes = read_file(path);
  return parse_idx(bytes, path.string());
}

}  // namespace meganeura
