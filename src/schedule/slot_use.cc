#include "schedule/slot_use.h"

#include <algorithm>
#include <optional>

namespace meganeura::schedule {
namespace {

// Calls visit(input) for every input of a spec, with whether it iterates like the outputs.
template <class Visit>
void visit_inputs(const kernels::KernelSpec& spec, const Visit& visit) {
  using namespace kernels;
  if (const auto* p = std::get_if<PointwiseSpec>(&spec)) {
    for (const Input& input : p->inputs) visit(input, true);
  } else if (const auto* r = std::get_if<ReductionSpec>(&spec)) {
    for (const Input& input : r->inputs) visit(input, false);
    for (const Input& input : r->extras) visit(input, true);
  } else if (const auto* c = std::get_if<ContractionSpec>(&spec)) {
    visit(c->a, false);
    visit(c->b, false);
    for (const Input& input : c->extras) visit(input, true);
  } else if (const auto* s = std::get_if<ScatterAddSpec>(&spec)) {
    if (s->has_base) visit(s->base, true);
    visit(s->index, false);
    visit(s->updates, false);
  }
}

std::vector<kernels::Output> outputs_of(const kernels::KernelSpec& spec) {
  return std::visit(
      [](const auto& s) -> std::vector<kernels::Output> {
        if constexpr (requires { s.outputs; }) {
          return s.outputs;
        } else {
          return {s.output};
        }
      },
      spec);
}

void mark_terms(const std::vector<kernels::IndexTerm>& terms, std::vector<bool>& reads) {
  for (const kernels::IndexTerm& term : terms) reads[term.slot] = true;
}

}  // namespace

bool reads_elsewhere(const kernels::KernelSpec& spec, uint32_t slot) {
  std::optional<kernels::Affine> written;
  for (const kernels::Output& output : outputs_of(spec)) {
    if (output.slot == slot) written = output.access;
  }
  bool elsewhere = false;
  visit_inputs(spec, [&](const kernels::Input& input, bool like_outputs) {
    if (input.slot == slot) {
      elsewhere = elsewhere || !like_outputs || !input.terms.empty() || !input.guards.empty() ||
                  input.access != written;
    }
    std::vector<bool> reads(slot + 1u > 64 ? slot + 1u : 64u, false);
    mark_terms(input.terms, reads);
    for (const kernels::Guard& guard : input.guards) mark_terms(guard.terms, reads);
    elsewhere = elsewhere || reads[slot];
  });
  return elsewhere;
}

SlotUse slot_use(const kernels::KernelSpec& spec) {
  const uint32_t slots = kernels::slot_count(spec);
  SlotUse use{std::vector<bool>(slots, false), std::vector<bool>(slots, false)};
  visit_inputs(spec, [&](const kernels::Input& input, bool) {
    if (input.slot != kernels::Input::kIndexValue) use.reads[input.slot] = true;
    mark_terms(input.terms, use.reads);
    for (const kernels::Guard& guard : input.guards) mark_terms(guard.terms, use.reads);
  });
  for (const kernels::Output& output : outputs_of(spec)) use.writes[output.slot] = true;
  return use;
}

}  // namespace meganeura::schedule
