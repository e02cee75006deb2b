#include "runtime/session.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "runtime/program_check.h"
#include "runtime/tensor_view.h"
#include "runtime/transfer.h"

namespace meganeura {
namespace {

using device::Command;
using device::MemoryKind;
using device::Span;

constexpr uint64_t kAlignment = 256;

uint64_t align(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

bool overlap(const Region& a, const Region& b) {
  return a.space == b.space && a.tensor == b.tensor && a.offset < b.offset + b.bytes &&
         b.offset < a.offset + a.bytes;
}

}  // namespace

Session::Implementation::Implementation(Device device, const Program& program,
                                        std::shared_ptr<ParameterStore::Implementation> store,
                                        int in_flight)
    : device_(std::move(device)), store_(std::move(store)) {
  if (in_flight < 1) {
    fail(ErrorKind::kInvalidArgument, "A session needs at least one run in flight, not ", in_flight,
         ".");
  }
  if (store_->device.share() != device_.share()) {
    fail(ErrorKind::kInvalidArgument, "The parameter store lives on ", store_->device.name(),
         " and was made from another Device than the session's. Share one Device.");
  }
  verify_program(program);
  check_program_fits(program, device_.implementation());
  program_ = std::make_shared<const Program>(program);
  list_inputs();
  list_outputs();
  pipelines_ = this->device().create_pipelines(program_->modules);
  store_->add(*program_);
  allocate_arenas();
  record_segments();
  make_ring(in_flight);
}

Session::Implementation::~Implementation() {
  for (RingSlot& slot : ring_) {
    try {
      retire(slot);
    } catch (const std::exception&) {
      // The handle of the run keeps the failure.
    }
  }
}

void Session::Implementation::allocate_arenas() {
  struct Arena {
    std::string_view what;
    uint64_t bytes;
  };
  const Arena arenas[] = {{"inputs", program_->input_bytes},
                          {"outputs", program_->output_bytes},
                          {"constants", program_->constants.size()},
                          {"intermediate values", program_->scratch_bytes}};
  const uint64_t most = device().capabilities().max_allocation_bytes;
  arenas_.emplace_back();
  for (const Arena& arena : arenas) {
    const uint64_t bytes = align(arena.bytes);
    if (bytes > most) {
      fail(ErrorKind::kOutOfMemory, "The program's ", arena.what, " take ", bytes,
           " bytes, and the largest allocation of ", device_.name(), " is ", most,
           " bytes. Use a smaller batch.");
    }
    arenas_.push_back(device().allocate(bytes, MemoryKind::kDevice));
  }
  const std::vector<std::byte>& constants = program_->constants;
  Uploader uploader(device(), constants.size());
  const Region all{Region::Space::kConstants, 0, 0, constants.size()};
  uploader.add(resolve(all), constants);
  uploader.flush();
}

bool Session::Implementation::touches(size_t segment, const Region& region,
                                      bool Binding::*access) const {
  for (const Level& level : program_->segments[segment].levels) {
    for (const Dispatch& dispatch : level.dispatches) {
      for (const Binding& binding : dispatch.bindings) {
        if (binding.*access && overlap(binding.region, region)) return true;
      }
    }
  }
  return false;
}

void Session::Implementation::list_inputs() {
  for (const ProgramTensor& tensor : program_->tensors) {
    if (tensor.kind != TensorKind::kInput) continue;
    InputSlot slot;
    slot.tensor = &tensor;
    slot.bytes = storage_bytes(tensor.shape, tensor.dtype);
    for (size_t segment = 0; segment < program_->segments.size(); ++segment) {
      slot.readers.push_back(touches(segment, tensor.region, &Binding::read));
    }
    input_index_.emplace(tensor.name, inputs_.size());
    inputs_.push_back(std::move(slot));
  }
  input_values_.resize(align(program_->input_bytes));
  submitted_versions_.resize(inputs_.size());
}

void Session::Implementation::list_outputs() {
  outputs_ = std::make_shared<OutputTable>();
  outputs_->program = program_;
  for (const ProgramTensor& tensor : program_->tensors) {
    if (tensor.kind != TensorKind::kOutput) continue;
    OutputSlot slot;
    slot.tensor = &tensor;
    slot.bytes = storage_bytes(tensor.shape, tensor.dtype);
    slot.offset = readback_bytes_;
    readback_bytes_ += align(slot.bytes);
    for (size_t segment = 0; segment < program_->segments.size(); ++segment) {
      if (touches(segment, tensor.region, &Binding::write)) slot.writers.push_back(segment);
    }
    MG_CHECK(slot.bytes == 0 || !slot.writers.empty(), "No segment writes the output \"",
             tensor.name, "\".");
    outputs_->index.emplace(tensor.name, outputs_->slots.size());
    outputs_->slots.push_back(std::move(slot));
  }
}

Span Session::Implementation::resolve(const Region& region) const {
  if (region.space != Region::Space::kTensor) {
    return {arenas_[static_cast<size_t>(region.space)].get(), region.offset, region.bytes};
  }
  const Span& tensor = store_->entry(program_->tensors[region.tensor].name).span;
  return {tensor.memory, tensor.offset + region.offset, region.bytes};
}

std::vector<Command> Session::Implementation::segment_commands(const Segment& segment) const {
  std::vector<Command> commands;
  for (const Level& level : segment.levels) {
    if (level.dispatches.empty()) continue;
    if (!commands.empty()) commands.emplace_back();
    for (const Dispatch& dispatch : level.dispatches) {
      Command command;
      command.kind = Command::Kind::kDispatch;
      command.label = dispatch.label;
      command.pipeline = pipelines_[dispatch.module].get();
      command.grid = dispatch.grid;
      command.params = dispatch.params;
      for (const Binding& binding : dispatch.bindings) {
        command.bindings.push_back({resolve(binding.region), binding.read, binding.write});
      }
      commands.push_back(std::move(command));
    }
  }
  return commands;
}

void Session::Implementation::record_segments() {
  for (const Segment& segment : program_->segments) {
    segments_.push_back(device().record(segment_commands(segment)));
  }
}

void Session::Implementation::make_ring(int in_flight) {
  for (int i = 0; i < in_flight; ++i) {
    RingSlot slot;
    slot.versions.resize(inputs_.size());
    slot.upload = device().allocate(align(program_->input_bytes), MemoryKind::kUpload);
    slot.readback = device().allocate(readback_bytes_, MemoryKind::kReadback);
    std::vector<Command> in;
    for (const InputSlot& input : inputs_) {
      if (input.bytes == 0) continue;
      const Region& region = input.tensor->region;
      const uint64_t bytes = whole_words(input.bytes);
      in.push_back(copy_command({slot.upload.get(), region.offset, bytes},
                                {resolve(region).memory, region.offset, bytes},
                                cat("set ", input.tensor->name)));
    }
    std::vector<Command> out;
    for (const OutputSlot& output : outputs_->slots) {
      if (output.bytes == 0) continue;
      const Span source = resolve(output.tensor->region);
      const uint64_t bytes = whole_words(output.bytes);
      out.push_back(copy_command({source.memory, source.offset, bytes},
                                 {slot.readback.get(), output.offset, bytes},
                                 cat("read ", output.tensor->name)));
    }
    if (!in.empty()) slot.copy_in = device().record(in);
    if (!out.empty()) slot.copy_out = device().record(out);
    ring_.push_back(std::move(slot));
  }
}

void Session::Implementation::set(std::string_view name, const TensorView& value) {
  const auto found = input_index_.find(name);
  if (found == input_index_.end()) {
    std::vector<std::string_view> names;
    for (const InputSlot& input : inputs_) names.push_back(input.tensor->name);
    fail(ErrorKind::kInvalidArgument, "The program has no input \"", name, "\"; it has ",
         names.empty() ? "none" : join(names), ".");
  }
  InputSlot& input = inputs_[found->second];
  const ProgramTensor& tensor = *input.tensor;
  const std::string what = cat("The input \"", name, "\"");
  copy_view({what, tensor.dtype, tensor.shape, tensor.limit}, value,
            input_values_.data() + tensor.region.offset);
  ++input.version;
}

std::vector<bool> Session::Implementation::choose(std::span<const std::string> names,
                                                  std::vector<size_t>& order) const {
  const std::vector<Segment>& segments = program_->segments;
  std::vector<bool> ran(segments.size(), names.empty());
  if (names.empty()) {
    for (size_t i = 0; i < segments.size(); ++i) order.push_back(i);
  }
  for (const std::string& name : names) {
    const auto found = std::ranges::find(segments, name, &Segment::name);
    if (found == segments.end()) {
      std::vector<std::string_view> known;
      for (const Segment& segment : segments) known.push_back(segment.name);
      fail(ErrorKind::kInvalidArgument, "The program has no segment \"", name, "\"; it has ",
           known.empty() ? "none" : join(known), ".");
    }
    order.push_back(static_cast<size_t>(found - segments.begin()));
    ran[order.back()] = true;
  }
  return ran;
}

void Session::Implementation::check_inputs_set(const std::vector<bool>& ran) const {
  std::vector<std::string_view> missing;
  for (const InputSlot& input : inputs_) {
    if (input.version > 0 || input.bytes == 0) continue;
    for (size_t segment = 0; segment < ran.size(); ++segment) {
      if (!ran[segment] || !input.readers[segment]) continue;
      missing.push_back(input.tensor->name);
      break;
    }
  }
  if (missing.empty()) return;
  fail(ErrorKind::kInvalidArgument, "The run reads inputs that were never set: ", join(missing),
       ". Call set() for each before run().");
}

// Waits for the slot's previous run and hands its results to whoever still holds the run.
void Session::Implementation::retire(RingSlot& slot) {
  const std::shared_ptr<RunHandle::Implementation> run = slot.run.lock();
  slot.run.reset();
  try {
    if (slot.ticket > 0) device().wait(slot.ticket);
    if (run && readback_bytes_ > 0) {
      const std::byte* data = slot.readback->mapped();
      run->bytes.assign(data, data + readback_bytes_);
    }
  } catch (const Error& error) {
    if (run) {
      run->failure = error;
      run->session = nullptr;
    }
    throw;
  }
  if (run) run->session = nullptr;
  slot.ticket = 0;
}

// Brings the upload slot up to date; whether the device's arena then needs the copy.
bool Session::Implementation::stage_inputs(RingSlot& slot) {
  bool changed = false;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const InputSlot& input = inputs_[i];
    if (input.bytes == 0) continue;
    changed = changed || submitted_versions_[i] != input.version;
    if (slot.versions[i] == input.version) continue;
    const uint64_t offset = input.tensor->region.offset;
    std::memcpy(slot.upload->mapped() + offset, input_values_.data() + offset,
                whole_words(input.bytes));
    slot.versions[i] = input.version;
  }
  return changed;
}

std::shared_ptr<RunHandle::Implementation> Session::Implementation::run(
    std::span<const std::string> segments) {
  std::vector<size_t> order;
  std::vector<bool> ran = choose(segments, order);
  check_inputs_set(ran);
  RingSlot& slot = ring_[next_];
  retire(slot);

  std::vector<device::Recording*> recordings;
  if (stage_inputs(slot)) recordings.push_back(slot.copy_in.get());
  for (size_t segment : order) recordings.push_back(segments_[segment].get());
  if (slot.copy_out) recordings.push_back(slot.copy_out.get());
  auto run = std::make_shared<RunHandle::Implementation>();
  run->ticket = device().submit(recordings);
  for (size_t i = 0; i < inputs_.size(); ++i) submitted_versions_[i] = inputs_[i].version;
  run->session = this;
  run->outputs = outputs_;
  run->ring = next_;
  run->ran = std::move(ran);
  slot.ticket = run->ticket;
  slot.run = run;
  next_ = (next_ + 1) % ring_.size();
  return run;
}

void Session::Implementation::wait() {
  for (const RingSlot& slot : ring_) {
    if (slot.ticket > 0) device().wait(slot.ticket);
  }
}

uint64_t Session::Implementation::device_bytes() const {
  uint64_t bytes = 0;
  for (const auto& arena : arenas_) bytes += arena ? arena->bytes() : 0;
  return bytes;
}

Session::Session(Device device, const Program& program, ParameterStore& store, int in_flight)
    : implementation_(std::make_shared<Implementation>(std::move(device), program,
                                                       store.implementation_, in_flight)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;

void Session::set(std::string_view input, const TensorView& value) {
  implementation_->set(input, value);
}

void Session::set(std::string_view input, float value) {
  implementation_->set(input, {&value, DType::kF32, Shape{}});
}

void Session::set(std::string_view input, uint32_t value) {
  implementation_->set(input, {&value, DType::kU32, Shape{}});
}

RunHandle Session::run(std::span<const std::string> segments) {
  RunHandle handle;
  handle.implementation_ = implementation_->run(segments);
  return handle;
}

void Session::wait() { implementation_->wait(); }

const Program& Session::program() const { return implementation_->program(); }

uint64_t Session::device_bytes() const { return implementation_->device_bytes(); }

}  // namespace meganeura
