// Copies between host and device memory through staging buffers.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "device/device.h"

namespace meganeura {

// Copies move whole words: what lies up to three bytes behind a tensor is padding.
inline constexpr uint64_t kCopyBytes = 4;
inline uint64_t whole_words(uint64_t bytes) {
  return (bytes + kCopyBytes - 1) / kCopyBytes * kCopyBytes;
}

// Collects copies to the device and submits them together.
class Uploader {
 public:
  // `most_bytes`: the staging buffer need not be larger than everything that will be added.
  Uploader(device::Device& device, uint64_t most_bytes);

  // Copies the bytes to `destination`, which must not overlap what was added since flush(). The
  // destination's last word is written whole.
  void add(const device::Span& destination, std::span<const std::byte> bytes);
  // Returns when everything added has arrived.
  void flush();

 private:
  device::Device& device_;
  std::unique_ptr<device::Memory> staging_;
  uint64_t used_ = 0;
  std::vector<device::Command> commands_;
};

// Copies from the device after everything submitted before; returns when done.
void download(device::Device& device, const device::Span& source, std::span<std::byte> bytes);

// Runs the commands and waits.
void run_commands(device::Device& device, std::span<const device::Command> commands);

device::Command copy_command(const device::Span& source, const device::Span& destination,
                             std::string label);

}  // namespace meganeura
