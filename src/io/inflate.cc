#include "io/inflate.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace meganeura {

namespace {

constexpr int kGzipWindow = MAX_WBITS + 16;
// Deflate cannot shrink data by more than this factor (1032, rounded up).
constexpr uint64_t kMostExpansion = 1040;

}  // namespace

struct InflateStream::State {
  std::span<const std::byte> input;
  std::string name;
  z_stream stream{};
  bool finished = false;

  // Hands zlib the next piece of input; its counters have 32 bits.
  void feed() {
    const size_t piece = std::min<size_t>(input.size(), 1u << 30);
    // zlib does not write through next_in, but its type cannot say so.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(input.data()));
    stream.avail_in = static_cast<uInt>(piece);
    input = input.subspan(piece);
  }

  // At the end of a member: goes on with the one behind it, or finishes.
  void end_member() {
    if (stream.avail_in == 0) feed();
    if (stream.avail_in == 0) {
      finished = true;
    } else if (inflateReset(&stream) != Z_OK) {
      fail(ErrorKind::kInternal, "zlib could not be reset while reading ", name, ".");
    }
  }
};

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

InflateStream::InflateStream(std::span<const std::byte> bytes, std::string_view name)
    : state_(std::make_unique<State>()) {
  state_->input = bytes;
  state_->name = name;
  if (inflateInit2(&state_->stream, kGzipWindow) != Z_OK)
    fail(ErrorKind::kOutOfMemory, "zlib could not be started to read ", name, ".");
}

InflateStream::~InflateStream() { inflateEnd(&state_->stream); }

size_t InflateStream::read(std::span<std::byte> out) {
  State& state = *state_;
  size_t done = 0;
  while (done < out.size() && !state.finished) {
    if (state.stream.avail_in == 0) state.feed();
    const size_t wanted = std::min<size_t>(out.size() - done, 1u << 30);
    state.stream.next_out = reinterpret_cast<Bytef*>(out.data() + done);
    state.stream.avail_out = static_cast<uInt>(wanted);
    const int code = inflate(&state.stream, Z_NO_FLUSH);
    done += wanted - state.stream.avail_out;
    if (code == Z_STREAM_END) {
      state.end_member();
    } else if (code == Z_BUF_ERROR || (code == Z_OK && state.stream.avail_out > 0 &&
                                       state.stream.avail_in == 0 && state.input.empty())) {
      fail(ErrorKind::kFile, state.name, " is truncated: its compressed data ends too early.");
    } else if (code == Z_MEM_ERROR) {
      fail(ErrorKind::kOutOfMemory, "There is not enough memory to decompress ", state.name, ".");
    } else if (code != Z_OK) {
      fail(ErrorKind::kFile, state.name, " is damaged: its compressed data is invalid (",
           state.stream.msg ? state.stream.msg : "no details", ").");
    }
  }
  return done;
}

uint64_t InflateStream::upper_bound() const {
  const uint64_t left = state_->input.size() + state_->stream.avail_in;
  if (left > std::numeric_limits<uint64_t>::max() / kMostExpansion / 2)
    return std::numeric_limits<uint64_t>::max();
  // The window may still hold bytes that were inflated but not yet asked for.
  return left * kMostExpansion + (uint64_t{1} << 16);
}

}  // namespace meganeura
