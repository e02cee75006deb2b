#include "runtime/transfer.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace meganeura {
namespace {

using device::Command;
using device::MemoryKind;
using device::Span;

constexpr uint64_t kStagingBytes = 16ull << 20;
constexpr uint64_t kAlignment = 16;  // of every copy in the staging buffer

uint64_t align(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

uint64_t staging_bytes(const device::Device& device, uint64_t most_bytes) {
  const uint64_t limit =
      std::min(kStagingBytes, device.capabilities().max_allocation_bytes / kAlignment * kAlignment);
  return std::min(limit, align(most_bytes));
}

}  // namespace

void run_commands(device::Device& device, std::span<const Command> commands) {
  const std::unique_ptr<device::Recording> recording = device.record(commands);
  device::Recording* recordings[] = {recording.get()};
  device.wait(device.submit(recordings));
}

Command copy_command(const Span& source, const Span& destination, std::string label) {
  Command command;
  command.kind = Command::Kind::kCopy;
  command.source = source;
  command.destination = destination;
  command.label = std::move(label);
  return command;
}

Uploader::Uploader(device::Device& device, uint64_t most_bytes)
    : device_(device),
      staging_(device.allocate(staging_bytes(device, most_bytes), MemoryKind::kUpload)) {}

void Uploader::add(const Span& destination, std::span<const std::byte> bytes) {
  uint64_t done = 0;
  while (done < bytes.size()) {
    if (used_ >= staging_->bytes()) flush();
    const uint64_t count = std::min<uint64_t>(bytes.size() - done, staging_->bytes() - used_);
    const uint64_t words = whole_words(count);
    std::memcpy(staging_->mapped() + used_, bytes.data() + done, count);
    std::memset(staging_->mapped() + used_ + count, 0, words - count);
    commands_.push_back(copy_command({staging_.get(), used_, words},
                                     {destination.memory, destination.offset + done, words},
                                     "upload"));
    used_ += align(count);
    done += count;
  }
}

void Uploader::flush() {
  if (!commands_.empty()) run_commands(device_, commands_);
  commands_.clear();
  used_ = 0;
}

void download(device::Device& device, const Span& source, std::span<std::byte> bytes) {
  if (bytes.empty()) return;
  const auto staging = device.allocate(staging_bytes(device, bytes.size()), MemoryKind::kReadback);
  for (uint64_t done = 0; done < bytes.size(); done += staging->bytes()) {
    const uint64_t count = std::min<uint64_t>(bytes.size() - done, staging->bytes());
    const uint64_t words = whole_words(count);
    const Command command = copy_command({source.memory, source.offset + done, words},
                                         {staging.get(), 0, words}, "download");
    run_commands(device, {&command, 1});
    std::memcpy(bytes.data() + done, staging->mapped(), count);
  }
}

}  // namespace meganeura
