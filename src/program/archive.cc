#include "program/archive.h"

namespace meganeura::archive {

namespace {

constexpr uint32_t kMaxRank = 64;

}  // namespace

// FNV-1a, 64 bits.
uint64_t checksum(std::span<const std::byte> bytes) {
  uint64_t hash = 14695981039346656037ull;
  for (const std::byte byte : bytes) {
    hash = (hash ^ std::to_integer<uint64_t>(byte)) * 1099511628211ull;
  }
  return hash;
}

void Writer::text(const std::string& value) {
  number(static_cast<uint64_t>(value.size()));
  const std::span<const std::byte> bytes = std::as_bytes(std::span(value));
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

void Writer::shape(const Shape& value) {
  number(static_cast<uint32_t>(value.rank()));
  for (const int64_t extent : value) number(extent);
}

void Writer::words(const std::vector<uint32_t>& value) {
  number(static_cast<uint64_t>(value.size()));
  for (const uint32_t word : value) number(word);
}

std::span<const std::byte> Reader::take(uint64_t count) {
  if (count > bytes_.size()) refuse("its end too early");
  const std::span<const std::byte> taken = bytes_.first(count);
  bytes_ = bytes_.subspan(count);
  return taken;
}

uint64_t Reader::length(uint64_t each) {
  uint64_t count = 0;
  number(count);
  if (count > bytes_.size() / each) {
    refuse(cat("a count of ", count, " where ", bytes_.size(), " bytes are left"));
  }
  return count;
}

void Reader::refuse(const std::string& found) const {
  fail(ErrorKind::kFile, "The section \"", what_, "\" of the program has ", found, ".");
}

void Reader::boolean(bool& value) {
  uint8_t bits = 0;
  number(bits);
  if (bits > 1) refuse(cat("a truth value of ", bits));
  value = bits == 1;
}

void Reader::text(std::string& value) {
  const std::span<const std::byte> bytes = take(length(1));
  value.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void Reader::shape(Shape& value) {
  uint32_t rank = 0;
  number(rank);
  if (rank > kMaxRank) refuse(cat("a tensor of rank ", rank));
  std::vector<int64_t> extents(rank);
  for (int64_t& extent : extents) number(extent);
  value = Shape(std::move(extents));
}

void Reader::words(std::vector<uint32_t>& value) {
  value.resize(length(sizeof(uint32_t)));
  for (uint32_t& word : value) number(word);
}

void Reader::finish() const {
  if (!bytes_.empty()) refuse(cat(bytes_.size(), " bytes too many"));
}

}  // namespace meganeura::archive
