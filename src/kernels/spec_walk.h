// Walks over the parts of a spec, so that checks and rewrites need not know the archetypes.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/spec.h"

namespace meganeura::kernels {

// Iteration dimensions that belong together: merging and sorting stay inside a group.
struct DimensionGroup {
  std::vector<int64_t>* extents = nullptr;  // none: a single dimension that cannot merge
  int64_t single = 0;                       // its extent
  bool ordered = false;  // the flat index has a meaning (arg max): dimensions keep their order

  std::vector<int64_t> list() const { return extents ? *extents : std::vector<int64_t>{single}; }
};

// `groups` are indices into SpecParts::groups, in the order of the access's strides.
struct InputPart {
  Input* input = nullptr;
  std::vector<uint32_t> groups;
};
struct OutputPart {
  Output* output = nullptr;
  std::vector<uint32_t> groups;
};

// Pointers into the spec, which must outlive them. Inputs in the order of the spec's fields.
struct SpecParts {
  std::vector<DimensionGroup> groups;
  std::vector<InputPart> inputs;
  std::vector<OutputPart> outputs;
};
SpecParts parts_of(KernelSpec& spec);

// The type of an input's value in a body.
scalar::Type value_type(const Input& input);

// The product of some extents; Error(kUnsupported) at 2^31 and above.
uint32_t element_count(const std::vector<int64_t>& extents);

// Throws Error(kInvalidArgument) where a spec contradicts itself (ranks, body types, addresses
// below 0) and Error(kUnsupported) for dtypes that are not computable and slots of 2^31 elements.
void validate(const KernelSpec& spec);

// Calls with every IndexTerm of the input: of its address first, then of its guards.
template <class Function>
void for_each_term(const Input& input, Function&& function) {
  for (const IndexTerm& term : input.terms) function(term);
  for (const Guard& guard : input.guards) {
    for (const IndexTerm& term : guard.terms) function(term);
  }
}

// Calls with every Affine of the input in a fixed order: address, its terms, then for every guard
// its position and terms.
template <class InputType, class Function>
void for_each_affine(InputType& input, Function&& function) {
  function(input.access);
  for (auto& term : input.terms) function(term.at);
  for (auto& guard : input.guards) {
    function(guard.position);
    for (auto& term : guard.terms) function(term.at);
  }
}

}  // namespace meganeura::kernels
