#include <cstring>

#include "base/check.h"
#include "runtime/session.h"

namespace meganeura {

void RunHandle::Implementation::wait() const {
  if (failure) throw *failure;
  if (session) session->device().wait(ticket);
}

const OutputSlot& RunHandle::Implementation::find(std::string_view name) const {
  const auto found = outputs->index.find(name);
  if (found == outputs->index.end()) {
    std::vector<std::string_view> names;
    for (const OutputSlot& slot : outputs->slots) names.push_back(slot.tensor->name);
    fail(ErrorKind::kInvalidArgument, "The program has no output \"", name, "\"; it has ",
         names.empty() ? "none" : join(names), ".");
  }
  const OutputSlot& slot = outputs->slots[found->second];
  std::vector<std::string_view> writers;
  for (size_t segment : slot.writers) {
    if (ran[segment]) return slot;
    writers.push_back(outputs->program->segments[segment].name);
  }
  if (!writers.empty()) {
    fail(ErrorKind::kInvalidArgument, "This run did not compute the output \"", name,
         "\": run the segment ", join(writers, " or "), " with it.");
  }
  return slot;
}

std::span<const std::byte> RunHandle::Implementation::result(const OutputSlot& slot) const {
  wait();
  if (slot.bytes == 0) return {};
  const std::byte* base = session ? session->readback(ring) : bytes.data();
  return {base + slot.offset, slot.bytes};
}

void RunHandle::wait() const { implementation_->wait(); }

bool RunHandle::done() const {
  if (implementation_->failure) throw *implementation_->failure;
  return !implementation_->session ||
         implementation_->session->device().done(implementation_->ticket);
}

HostTensor RunHandle::output(std::string_view name) const {
  const OutputSlot& slot = implementation_->find(name);
  const std::span<const std::byte> bytes = implementation_->result(slot);
  return {slot.tensor->dtype, slot.tensor->shape, {bytes.begin(), bytes.end()}};
}

float RunHandle::scalar(std::string_view name) const {
  const OutputSlot& slot = implementation_->find(name);
  if (slot.tensor->dtype != DType::kF32 || slot.tensor->shape.rank() != 0) {
    fail(ErrorKind::kShape, "The output \"", name, "\" is ", slot.tensor->dtype, " ",
         slot.tensor->shape, ", and only an f32 of rank 0 is a scalar; use output().");
  }
  float value = 0;
  std::memcpy(&value, implementation_->result(slot).data(), sizeof(value));
  return value;
}

}  // namespace meganeura
