#include "runtime/parameter_store.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "graph/initialize.h"
#include "program/program.h"
#include "runtime/tensor_view.h"
#include "runtime/transfer.h"

namespace meganeura {
namespace {

constexpr uint64_t kAlignment = 256;

uint64_t align(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

bool is_persistent(const ProgramTensor& tensor) {
  return tensor.kind == TensorKind::kParameter || tensor.kind == TensorKind::kState;
}

Initializer initializer_of(const ProgramTensor& tensor) {
  return tensor.initializer.empty() ? Initializer::zeros() : Initializer::parse(tensor.initializer);
}

}  // namespace

void ParameterStore::Implementation::check_known(const ProgramTensor& tensor) const {
  const Entry& known = entry(tensor.name);
  if (known.dtype != tensor.dtype || known.shape != tensor.shape) {
    fail(ErrorKind::kShape, "The store holds \"", tensor.name, "\" as ", known.dtype, " ",
         known.shape, ", and the program wants it as ", tensor.dtype, " ", tensor.shape,
         ". Use another name or another store.");
  }
  MG_CHECK(tensor.region.bytes <= known.span.bytes, "The program reaches ", tensor.region.bytes,
           " bytes of \"", tensor.name, "\", and the store keeps ", known.span.bytes, ".");
}

std::vector<ParameterStore::Implementation::Addition> ParameterStore::Implementation::plan(
    const Program& program, std::vector<uint64_t>& arena_bytes) const {
  const uint64_t most = device.implementation().capabilities().max_allocation_bytes;
  std::vector<Addition> additions;
  for (const ProgramTensor& tensor : program.tensors) {
    if (!is_persistent(tensor)) continue;
    if (index.contains(tensor.name)) {
      check_known(tensor);
      continue;
    }
    const uint64_t bytes =
        align(std::max(tensor.region.bytes, storage_bytes(tensor.shape, tensor.dtype)));
    if (bytes > most) {
      fail(ErrorKind::kOutOfMemory, "\"", tensor.name, "\" of ", tensor.dtype, " ", tensor.shape,
           " takes ", bytes, " bytes, and the largest allocation of ", device.name(), " is ", most,
           " bytes.");
    }
    if (arena_bytes.empty() || bytes > most - arena_bytes.back()) arena_bytes.push_back(0);
    additions.push_back({&tensor, arena_bytes.size() - 1, arena_bytes.back(), bytes});
    arena_bytes.back() += bytes;
  }
  return additions;
}

void ParameterStore::Implementation::initialize(
    const std::vector<Addition>& additions,
    const std::vector<std::unique_ptr<device::Memory>>& memories) const {
  device::Device& target = device.implementation();
  std::vector<device::Command> fills;
  for (const auto& memory : memories) {
    device::Command fill;
    fill.kind = device::Command::Kind::kFill;
    fill.label = "clear parameters";
    fill.destination = {memory.get(), 0, memory->bytes()};
    fills.push_back(std::move(fill));
  }
  run_commands(target, fills);

  uint64_t total = 0;
  for (const Addition& addition : additions) total += addition.bytes;
  Uploader uploader(target, total);
  for (const Addition& addition : additions) {
    const ProgramTensor& tensor = *addition.tensor;
    const Initializer initializer = initializer_of(tensor);
    if (initializer.kind == Initializer::Kind::kZeros) continue;
    const std::vector<std::byte> bytes =
        initial_bytes(tensor.name, tensor.shape, tensor.dtype, initializer, seed);
    uploader.add({memories[addition.arena].get(), addition.offset, bytes.size()}, bytes);
  }
  uploader.flush();
}

void ParameterStore::Implementation::add(const Program& program) {
  std::vector<uint64_t> arena_bytes;
  const std::vector<Addition> additions = plan(program, arena_bytes);
  if (additions.empty()) return;
  std::vector<std::unique_ptr<device::Memory>> memories;
  for (uint64_t bytes : arena_bytes) {
    memories.push_back(device.implementation().allocate(bytes, device::MemoryKind::kDevice));
  }
  initialize(additions, memories);
  for (const Addition& addition : additions) {
    const ProgramTensor& tensor = *addition.tensor;
    index.emplace(tensor.name, entries.size());
    entries.push_back({tensor.name,
                       tensor.dtype,
                       tensor.shape,
                       {memories[addition.arena].get(), addition.offset, addition.bytes}});
  }
  std::ranges::move(memories, std::back_inserter(arenas));
}

const ParameterStore::Implementation::Entry& ParameterStore::Implementation::entry(
    std::string_view name) const {
  const auto found = index.find(name);
  if (found == index.end()) {
    std::vector<std::string_view> names;
    for (const Entry& entry : entries) names.push_back(entry.name);
    fail(ErrorKind::kInvalidArgument, "The parameter store holds no \"", name, "\"; it holds ",
         names.empty() ? "nothing" : join(names), ".");
  }
  return entries[found->second];
}

ParameterStore::ParameterStore(Device device, uint64_t seed)
    : implementation_(std::make_shared<Implementation>(std::move(device), seed)) {}
ParameterStore::~ParameterStore() = default;
ParameterStore::ParameterStore(ParameterStore&&) noexcept = default;

void ParameterStore::add(const Program& program) { implementation_->add(program); }

bool ParameterStore::contains(std::string_view name) const {
  return implementation_->index.contains(name);
}

std::vector<std::string> ParameterStore::names() const {
  std::vector<std::string> names;
  for (const auto& entry : implementation_->entries) names.push_back(entry.name);
  return names;
}

TensorType ParameterStore::type(std::string_view name) const {
  const Implementation::Entry& entry = implementation_->entry(name);
  return {entry.dtype, entry.shape};
}

HostTensor ParameterStore::read(std::string_view name) const {
  const Implementation::Entry& entry = implementation_->entry(name);
  HostTensor tensor{entry.dtype, entry.shape, {}};
  tensor.bytes.resize(storage_bytes(entry.shape, entry.dtype));
  download(implementation_->device.implementation(), entry.span, tensor.bytes);
  return tensor;
}

void ParameterStore::write(std::string_view name, const TensorView& value) {
  const Implementation::Entry& entry = implementation_->entry(name);
  std::vector<std::byte> bytes(storage_bytes(entry.shape, entry.dtype));
  const std::string what = cat("The tensor \"", name, "\"");
  copy_view({what, entry.dtype, entry.shape}, value, bytes.data());
  Uploader uploader(implementation_->device.implementation(), bytes.size());
  uploader.add(entry.span, bytes);
  uploader.flush();
}

uint64_t ParameterStore::bytes() const {
  uint64_t bytes = 0;
  for (const auto& arena : implementation_->arenas) bytes += arena->bytes();
  return bytes;
}

}  // namespace meganeura
