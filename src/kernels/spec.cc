#include "kernels/spec.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/check.h"
#include "base/format.h"
#include "kernels/spec_walk.h"

namespace meganeura::kernels {
namespace {

constexpr std::array<std::string_view, 4> kCombineNames = {"sum", "max", "min", "argmax"};

std::string text(const Affine& affine) {
  return cat(affine.offset, "+[", join(affine.strides), "]");
}

std::string text(const IndexTerm& term) {
  return cat(term.is_signed ? "i" : "u", "%", term.slot, "(", text(term.at), ")<=", term.limit, "*",
             term.stride);
}

std::string text(const Input& input) {
  std::string out = input.slot == Input::kIndexValue ? "index" : cat("%", input.slot);
  out += cat(":", input.dtype, "(", text(input.access), ")");
  for (const IndexTerm& term : input.terms) out += cat(" + ", text(term));
  for (const Guard& guard : input.guards) {
    out += cat(" where 0<=", text(guard.position));
    for (const IndexTerm& term : guard.terms) out += cat(" + ", text(term));
    out += cat("<", guard.extent);
  }
  return out;
}

std::string text(const Output& output) {
  return cat("%", output.slot, ":", output.dtype, "(", text(output.access), ")");
}

template <class Item>
void lines(std::string& out, std::string_view label, const std::vector<Item>& items) {
  for (const Item& item : items) out += cat("  ", label, " ", text(item), "\n");
}

std::string print(const PointwiseSpec& spec) {
  std::string out = cat("pointwise [", join(spec.extents), "]\n");
  lines(out, "input", spec.inputs);
  out += cat("  body ", to_string(spec.body), "\n");
  lines(out, "output", spec.outputs);
  return out;
}

std::string print(const ReductionSpec& spec) {
  std::string out = cat("reduction ", kCombineNames.at(static_cast<size_t>(spec.combine)), " [",
                        join(spec.outer), "] over [", join(spec.reduced), "]\n");
  lines(out, "input", spec.inputs);
  out += cat("  prologue ", to_string(spec.prologue), "\n");
  lines(out, "extra", spec.extras);
  out += cat("  epilogue ", to_string(spec.epilogue), "\n");
  lines(out, "output", spec.outputs);
  return out;
}

std::string print(const ContractionSpec& spec) {
  std::string out = cat("contraction b[", join(spec.batch), "] m[", join(spec.m), "] n[",
                        join(spec.n), "] k[", join(spec.k), "]\n");
  out += cat("  a ", text(spec.a), "\n  b ", text(spec.b), "\n");
  lines(out, "extra", spec.extras);
  out += cat("  epilogue ", to_string(spec.epilogue), "\n");
  lines(out, "output", spec.outputs);
  return out;
}

std::string print(const ScatterAddSpec& spec) {
  std::string out = cat("scatter_add rows ", spec.rows, " positions ", spec.positions, " [",
                        join(spec.inner), "]\n");
  if (spec.has_base) out += cat("  base ", text(spec.base), "\n");
  out += cat("  index ", text(spec.index), "\n  updates ", text(spec.updates), "\n");
  out += cat("  output ", text(spec.output), "\n");
  return out;
}

}  // namespace

uint32_t slot_count(const KernelSpec& spec) {
  uint32_t count = 0;
  auto see = [&](uint32_t slot) { count = std::max(count, slot + 1); };
  KernelSpec copy = spec;
  const SpecParts parts = parts_of(copy);
  for (const InputPart& part : parts.inputs) {
    if (part.input->slot != Input::kIndexValue) see(part.input->slot);
    for_each_term(*part.input, [&](const IndexTerm& term) { see(term.slot); });
  }
  for (const OutputPart& part : parts.outputs) see(part.output->slot);
  return count;
}

std::string to_string(const KernelSpec& spec) {
  return std::visit([](const auto& alternative) { return print(alternative); }, spec);
}

}  // namespace meganeura::kernels
