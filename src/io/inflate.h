// Decompression that never trusts a size it was told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace meganeura {

// Whether the bytes start like a gzip file.
bool is_gzip(std::span<const std::byte> bytes);

// Reads the uncompressed bytes of a gzip file (all of its members) in order.
class InflateStream {
 public:
  // Borrows the bytes; `name` is what errors call them.
  InflateStream(std::span<const std::byte> bytes, std::string_view name);
  ~InflateStream();
  InflateStream(const InflateStream&) = delete;
  InflateStream& operator=(const InflateStream&) = delete;

  // Fills `out` and returns how many bytes there were: fewer only at the end of the data, which is
  // then complete and matches its checksums. Error(kFile) for damaged or truncated data.
  size_t read(std::span<std::byte> out);
  // The most bytes that the compressed bytes could possibly hold.
  uint64_t upper_bound() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace meganeura
