// Files in memory for the tests of this layer.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meganeura/error.h"

namespace meganeura::test {

using Bytes = std::vector<std::byte>;

inline Bytes to_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// An IDX file of unsigned bytes with any magic number.
inline Bytes idx_file(uint32_t magic, const std::vector<uint32_t>& extents,
                      const std::vector<uint8_t>& payload) {
  Bytes out;
  const auto put = [&](uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) out.push_back(std::byte(value >> shift & 0xff));
  };
  put(magic);
  for (uint32_t extent : extents) put(extent);
  for (uint8_t byte : payload) out.push_back(std::byte{byte});
  return out;
}

inline Bytes gzip(std::span<const std::byte> plain) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  Bytes out(deflateBound(&stream, plain.size()) + 32);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// A safetensors file: the header's length, the header, the data.
inline Bytes safetensors_file(std::string_view header, size_t data_bytes) {
  Bytes out(8);
  const uint64_t length = header.size();
  std::memcpy(out.data(), &length, 8);
  const Bytes text = to_bytes(header);
  out.insert(out.end(), text.begin(), text.end());
  for (size_t i = 0; i < data_bytes; ++i) out.push_back(std::byte(i & 0xff));
  return out;
}

// Expects an Error of that kind whose message contains `part`.
inline void expect_error(ErrorKind kind, std::string_view part, const std::function<void()>& call) {
  try {
    call();
    ADD_FAILURE() << "nothing was thrown; expected: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.kind()), to_string(kind)) << error.what();
    EXPECT_NE(std::string_view(error.what()).find(part), std::string_view::npos)
        << "message: " << error.what() << "\nexpected in it: " << part;
  }
}

}  // namespace meganeura::test
