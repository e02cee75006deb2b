#include "io/test_support.h"
#include "meganeura/data.h"

namespace meganeura {
namespace {

using test::Bytes;
using test::expect_error;
using test::idx_file;

constexpr uint32_t kImages = 0x803;

TEST(Idx, ReadsExtentsAndBytes) {
  const IdxArray array = parse_idx(idx_file(kImages, {1, 2, 3}, {1, 2, 3, 4, 5, 255}), "x");
  EXPECT_EQ(array.extents, (std::vector<uint32_t>{1, 2, 3}));
  EXPECT_EQ(array.bytes, (std::vector<uint8_t>{1, 2, 3, 4, 5, 255}));
}

TEST(Idx, ReadsGzipByItsContent) {
  const Bytes plain = idx_file(0x801, {4}, {9, 8, 7, 6});
  EXPECT_EQ(parse_idx(test::gzip(plain), "x").bytes, parse_idx(plain, "x").bytes);
}

TEST(Idx, ReadsGzipOfSeveralMembers) {
  const Bytes plain = idx_file(0x801, {4}, {9, 8, 7, 6});
  Bytes file = test::gzip(std::span(plain).first(7));
  const Bytes rest = test::gzip(std::span(plain).subspan(7));
  file.insert(file.end(), rest.begin(), rest.end());
  EXPECT_EQ(parse_idx(file, "x").bytes, (std::vector<uint8_t>{9, 8, 7, 6}));
}

TEST(Idx, ReadsMoreThanOneChunk) {
  std::vector<uint8_t> payload(3'000'001);
  for (size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<uint8_t>(i * 7 + i / 251);
  const Bytes plain = idx_file(0x801, {3'000'001}, payload);
  EXPECT_EQ(parse_idx(plain, "x").bytes, payload);
  EXPECT_EQ(parse_idx(test::gzip(plain), "x").bytes, payload);
}

TEST(Idx, ReadsZeroItems) {
  const IdxArray array = parse_idx(idx_file(kImages, {0, 28, 28}, {}), "x");
  EXPECT_EQ(array.extents[0], 0u);
  EXPECT_TRUE(array.bytes.empty());
}

TEST(Idx, RefusesAForeignFile) {
  expect_error(ErrorKind::kFile, "not an IDX file",
               [] { parse_idx(test::to_bytes("PNG..."), "x"); });
  expect_error(ErrorKind::kFile, "not an IDX file",
               [] { parse_idx(idx_file(0x10803, {0}, {}), "x"); });
  expect_error(ErrorKind::kFile, "not an IDX file",
               [] { parse_idx(idx_file(0x0a01, {0}, {}), "x"); });
}

TEST(Idx, NamesElementTypesItCannotRead) {
  expect_error(ErrorKind::kUnsupported, "32-bit float", [] {
    parse_idx(idx_file(0x0d01, {1}, {0, 0, 0, 0}), "x");
  });
}

TEST(Idx, RefusesImpossibleRanks) {
  expect_error(ErrorKind::kFile, "0 axes", [] { parse_idx(idx_file(0x800, {}, {}), "x"); });
  expect_error(ErrorKind::kFile, "9 axes", [] {
    parse_idx(idx_file(0x809, {1, 1, 1, 1, 1, 1, 1, 1, 1}, {1}), "x");
  });
}

TEST(Idx, RefusesTruncation) {
  const Bytes whole = idx_file(kImages, {1, 2, 3}, {1, 2, 3, 4, 5, 6});
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto cut = std::span(whole).first(size);
    expect_error(ErrorKind::kFile, "truncated", [&] { parse_idx(cut, "x"); });
    expect_error(ErrorKind::kFile, "truncated", [&] { parse_idx(test::gzip(cut), "x"); });
  }
}

TEST(Idx, RefusesTruncatedCompression) {
  const Bytes whole = test::gzip(idx_file(kImages, {1, 2, 3}, {1, 2, 3, 4, 5, 6}));
  for (size_t size = 2; size < whole.size(); ++size) {
    expect_error(ErrorKind::kFile, "truncated",
                 [&] { parse_idx(std::span(whole).first(size), "x"); });
  }
}

TEST(Idx, RefusesDamagedCompression) {
  Bytes file = test::gzip(idx_file(0x801, {4}, {9, 8, 7, 6}));
  file[file.size() - 6] ^= std::byte{1};  // its checksum
  expect_error(ErrorKind::kFile, "damaged", [&] { parse_idx(file, "x"); });
}

TEST(Idx, RefusesTrailingBytes) {
  expect_error(ErrorKind::kFile, "behind the 2", [] {
    parse_idx(idx_file(0x801, {2}, {1, 2, 3}), "x");
  });
  expect_error(ErrorKind::kFile, "behind the 2", [] {
    parse_idx(test::gzip(idx_file(0x801, {2}, {1, 2, 3})), "x");
  });
  Bytes file = test::gzip(idx_file(0x801, {2}, {1, 2}));
  file.push_back(std::byte{'x'});
  expect_error(ErrorKind::kFile, "", [&] { parse_idx(file, "x"); });
}

TEST(Idx, RefusesOverflowingExtents) {
  expect_error(ErrorKind::kFile, "overflows", [] {
    parse_idx(idx_file(kImages, {0xffffffff, 0xffffffff, 0xffffffff}, {1}), "x");
  });
}

// A claim of 4 GiB in a file of a few bytes must fail before memory is taken.
TEST(Idx, RefusesClaimsTheDataCannotHold) {
  const Bytes plain = idx_file(0x801, {0xffffffff}, {1, 2, 3});
  expect_error(ErrorKind::kFile, "at most", [&] { parse_idx(plain, "x"); });
  expect_error(ErrorKind::kFile, "at most", [&] { parse_idx(test::gzip(plain), "x"); });
}

TEST(Idx, NamesAMissingFile) {
  expect_error(ErrorKind::kFile, "no/such/file", [] { read_idx("no/such/file"); });
}

}  // namespace
}  // namespace meganeura
