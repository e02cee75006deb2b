#include "emit/spirv/writer.h"

#include "base/check.h"

namespace meganeura::spirv {

namespace {

constexpr uint32_t kVersion15 = 0x00010500;

void append(std::vector<uint32_t>& words, spv::Op op, std::span<const uint32_t> operands) {
  const size_t count = operands.size() + 1;
  MG_CHECK(count <= 0xffff, "A SPIR-V instruction has ", count, " words; 65535 fit.");
  words.push_back(static_cast<uint32_t>(count) << 16 | static_cast<uint32_t>(op));
  words.insert(words.end(), operands.begin(), operands.end());
}

void append(std::vector<uint32_t>& words, spv::Op op, std::initializer_list<uint32_t> operands) {
  append(words, op, std::span(operands.begin(), operands.size()));
}

// A literal string: UTF-8 octets, little-endian in words, with a terminating zero.
void append_string(std::vector<uint32_t>& words, std::string_view text) {
  const size_t first = words.size();
  words.resize(first + text.size() / 4 + 1, 0);
  for (size_t i = 0; i < text.size(); ++i) {
    words[first + i / 4] |= uint32_t{static_cast<unsigned char>(text[i])} << (8 * (i % 4));
  }
}

}  // namespace

void Writer::add(Section section, spv::Op op, std::span<const uint32_t> operands) {
  append(sections_[static_cast<size_t>(section)], op, operands);
}

Id Writer::add_result(spv::Op op, Id type, std::span<const uint32_t> operands) {
  Words words = {type, new_id()};
  words.insert(words.end(), operands.begin(), operands.end());
  add(Section::kFunctions, op, words);
  return words[1];
}

Id Writer::extended_instructions() {
  if (extended_ == 0) extended_ = new_id();
  return extended_;
}

void Writer::execution_mode(spv::ExecutionMode mode, std::initializer_list<uint32_t> operands) {
  Words words = {static_cast<uint32_t>(mode)};
  words.insert(words.end(), operands.begin(), operands.end());
  execution_modes_.push_back(std::move(words));
}

Id Writer::type(spv::Op op, std::initializer_list<uint32_t> operands) {
  Words key = {static_cast<uint32_t>(op)};
  key.insert(key.end(), operands.begin(), operands.end());
  Id& id = unique_[key];
  if (id == 0) id = distinct_type(op, std::span(operands.begin(), operands.size()));
  return id;
}

Id Writer::distinct_type(spv::Op op, std::span<const uint32_t> operands) {
  Words words = {new_id()};
  words.insert(words.end(), operands.begin(), operands.end());
  add(Section::kGlobals, op, words);
  return words[0];
}

Id Writer::constant(spv::Op op, Id type, std::span<const uint32_t> operands) {
  Words key = {static_cast<uint32_t>(op), type};
  key.insert(key.end(), operands.begin(), operands.end());
  Id& id = unique_[key];
  if (id == 0) {
    id = new_id();
    Words words = {type, id};
    words.insert(words.end(), operands.begin(), operands.end());
    add(Section::kGlobals, op, words);
  }
  return id;
}

Id Writer::variable(Id pointer_type, spv::StorageClass storage) {
  const Id id = new_id();
  add(Section::kGlobals, spv::Op::OpVariable, {pointer_type, id, static_cast<uint32_t>(storage)});
  interface_.push_back(id);
  return id;
}

void Writer::decorate(Id target, spv::Decoration decoration,
                      std::initializer_list<uint32_t> operands) {
  Words words = {target, static_cast<uint32_t>(decoration)};
  words.insert(words.end(), operands.begin(), operands.end());
  add(Section::kDecorations, spv::Op::OpDecorate, words);
}

void Writer::decorate_member(Id structure, uint32_t member, spv::Decoration decoration,
                             std::initializer_list<uint32_t> operands) {
  Words words = {structure, member, static_cast<uint32_t>(decoration)};
  words.insert(words.end(), operands.begin(), operands.end());
  add(Section::kDecorations, spv::Op::OpMemberDecorate, words);
}

std::vector<uint32_t> Writer::finish(Id entry) const {
  Words words = {spv::MagicNumber, kVersion15, 0, next_id_, 0};
  for (const spv::Capability capability : capabilities_) {
    append(words, spv::Op::OpCapability, {static_cast<uint32_t>(capability)});
  }
  if (extended_ != 0) {
    Words import = {extended_};
    append_string(import, "GLSL.std.450");
    append(words, spv::Op::OpExtInstImport, import);
  }
  append(words, spv::Op::OpMemoryModel,
         {static_cast<uint32_t>(addressing_), static_cast<uint32_t>(spv::MemoryModel::GLSL450)});
  Words point = {static_cast<uint32_t>(spv::ExecutionModel::GLCompute), entry};
  append_string(point, "main");
  point.insert(point.end(), interface_.begin(), interface_.end());
  append(words, spv::Op::OpEntryPoint, point);
  for (const Words& mode : execution_modes_) {
    Words operands = {entry};
    operands.insert(operands.end(), mode.begin(), mode.end());
    append(words, spv::Op::OpExecutionMode, operands);
  }
  for (const Words& section : sections_) words.insert(words.end(), section.begin(), section.end());
  return words;
}

}  // namespace meganeura::spirv
