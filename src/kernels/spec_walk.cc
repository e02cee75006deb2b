#include "kernels/spec_walk.h"

#include <algorithm>
#include <string_view>

#include "base/check.h"
#include "base/format.h"

namespace meganeura::kernels {
namespace {

constexpr int64_t kAddressLimit = int64_t{1} << 31;

struct PartsVisitor {
  SpecParts parts;

  void inputs(std::vector<Input>& items, const std::vector<uint32_t>& groups) {
    for (Input& input : items) parts.inputs.push_back({&input, groups});
  }
  void outputs(std::vector<Output>& items, const std::vector<uint32_t>& groups) {
    for (Output& output : items) parts.outputs.push_back({&output, groups});
  }
  void operator()(PointwiseSpec& spec) {
    parts.groups = {{&spec.extents}};
    inputs(spec.inputs, {0});
    outputs(spec.outputs, {0});
  }
  void operator()(ReductionSpec& spec) {
    parts.groups = {{&spec.outer}, {&spec.reduced, 0, spec.combine == Combine::kArgMax}};
    inputs(spec.inputs, {0, 1});
    inputs(spec.extras, {0});
    outputs(spec.outputs, {0});
  }
  void operator()(ContractionSpec& spec) {
    parts.groups = {{&spec.batch}, {&spec.m}, {&spec.n}, {&spec.k}};
    parts.inputs.push_back({&spec.a, {0, 1, 3}});
    parts.inputs.push_back({&spec.b, {0, 3, 2}});
    inputs(spec.extras, {0, 1, 2});
    outputs(spec.outputs, {0, 1, 2});
  }
  void operator()(ScatterAddSpec& spec) {
    parts.groups = {{nullptr, spec.rows}, {nullptr, spec.positions}, {&spec.inner}};
    if (spec.has_base) parts.inputs.push_back({&spec.base, {0, 2}});
    parts.inputs.push_back({&spec.index, {1}});
    parts.inputs.push_back({&spec.updates, {1, 2}});
    parts.outputs.push_back({&spec.output, {0, 2}});
  }
};

// The least and greatest value of an affine over a non-empty iteration space.
struct Interval {
  int64_t low = 0;
  int64_t high = 0;
};

Interval interval(const Affine& affine, const std::vector<int64_t>& extents,
                  std::string_view what) {
  if (affine.strides.size() != extents.size()) {
    fail(ErrorKind::kInvalidArgument, "A kernel spec has ", what, " with ", affine.strides.size(),
         " strides, but it iterates over ", extents.size(), " dimensions [", join(extents), "].");
  }
  Interval range{affine.offset, affine.offset};
  for (size_t d = 0; d < extents.size(); ++d) {
    const int64_t stride = affine.strides[d];
    if (stride <= -kAddressLimit || stride >= kAddressLimit) {
      // A dimension of one element never moves, whatever its stride.
      if (extents[d] <= 1) continue;
      fail(ErrorKind::kUnsupported, "A kernel spec has ", what, " with stride ", stride,
           ", but strides must be below 2^31 elements. Split the tensor.");
    }
    const int64_t reach = stride * (extents[d] - 1);
    (reach < 0 ? range.low : range.high) += reach;
    if (range.low <= -kAddressLimit || range.high >= kAddressLimit) {
      fail(ErrorKind::kUnsupported, "A kernel spec has ", what, " that reaches element ",
           range.low <= -kAddressLimit ? range.low : range.high,
           ", but slots hold fewer than 2^31 elements. Split the tensor.");
    }
  }
  return range;
}

void add_term(Interval& range, const IndexTerm& term, const std::vector<int64_t>& extents) {
  if (term.limit < 0 || term.limit >= kAddressLimit) {
    fail(ErrorKind::kInvalidArgument, "A kernel spec clamps an index read from slot ", term.slot,
         " to [0, ", term.limit, "]. The limit must lie in [0, 2^31).");
  }
  if (interval(term.at, extents, "an index term").low < 0) {
    fail(ErrorKind::kInvalidArgument, "A kernel spec reads an index before the start of slot ",
         term.slot, ".");
  }
  const int64_t reach = term.limit * term.stride;
  (reach < 0 ? range.low : range.high) += reach;
}

void check_slot(const Interval& range, uint32_t slot, std::string_view what, bool guarded) {
  if (range.low <= -kAddressLimit || range.high >= kAddressLimit) {
    fail(ErrorKind::kUnsupported, "A kernel spec has ", what, " in slot ", slot,
         " that reaches element ", range.high, ", but slots hold fewer than 2^31 elements.");
  }
  if (!guarded && range.low < 0) {
    fail(ErrorKind::kInvalidArgument, "A kernel spec has ", what, " that reaches element ",
         range.low, " of slot ", slot, ". Guard it or fix its offset.");
  }
}

void check_input(const Input& input, const std::vector<int64_t>& extents) {
  scalar::compute_type(input.dtype);
  Interval range = interval(input.access, extents, "an input");
  for (const IndexTerm& term : input.terms) add_term(range, term, extents);
  for (const Guard& guard : input.guards) {
    Interval position = interval(guard.position, extents, "a guard");
    for (const IndexTerm& term : guard.terms) add_term(position, term, extents);
    check_slot(position, input.slot, "a guard", true);
    if (guard.extent < 0 || guard.extent >= kAddressLimit) {
      fail(ErrorKind::kInvalidArgument, "A kernel spec has a guard of extent ", guard.extent,
           ". It must lie in [0, 2^31).");
    }
  }
  if (input.slot != Input::kIndexValue) {
    check_slot(range, input.slot, "an input", !input.guards.empty());
  }
}

// What a body takes: values, then flags of the guarded ones.
void add_arguments(std::vector<scalar::Type>& types, const std::vector<Input>& inputs) {
  for (const Input& input : inputs) types.push_back(value_type(input));
  for (const Input& input : inputs) {
    if (!input.guards.empty()) types.push_back(scalar::Type::kBool);
  }
}

std::string type_list(const std::vector<scalar::Type>& types) {
  std::vector<std::string_view> names;
  for (scalar::Type type : types) names.push_back(scalar::to_string(type));
  return join(names);
}

void check_arguments(const scalar::Body& body, const std::vector<scalar::Type>& expected,
                     std::string_view what) {
  scalar::verify(body);
  if (body.arguments != expected) {
    fail(ErrorKind::kInvalidArgument, "The ", what, " of a kernel spec takes (",
         type_list(body.arguments), "), but its inputs give (", type_list(expected), ").");
  }
}

void check_results(const scalar::Body& body, const std::vector<Output>& outputs,
                   std::string_view what) {
  std::vector<scalar::Type> given;
  std::vector<scalar::Type> expected;
  for (uint32_t node : body.outputs) given.push_back(body.nodes.at(node).type);
  for (const Output& output : outputs) expected.push_back(scalar::compute_type(output.dtype));
  if (given != expected) {
    fail(ErrorKind::kInvalidArgument, "The ", what, " of a kernel spec returns (", type_list(given),
         "), but its outputs store (", type_list(expected), ").");
  }
}

void check_bodies(const PointwiseSpec& spec) {
  std::vector<scalar::Type> types;
  add_arguments(types, spec.inputs);
  check_arguments(spec.body, types, "body");
  check_results(spec.body, spec.outputs, "body");
}

void check_bodies(const ReductionSpec& spec) {
  std::vector<scalar::Type> types;
  add_arguments(types, spec.inputs);
  check_arguments(spec.prologue, types, "prologue");
  if (spec.prologue.outputs.size() != 1) {
    fail(ErrorKind::kInvalidArgument, "The prologue of a reduction returns ",
         spec.prologue.outputs.size(), " values instead of one.");
  }
  const scalar::Type reduced = spec.prologue.nodes.at(spec.prologue.outputs[0]).type;
  if (reduced == scalar::Type::kBool) {
    fail(ErrorKind::kInvalidArgument,
         "The prologue of a reduction returns bool. Convert it to an integer first.");
  }
  types = {spec.combine == Combine::kArgMax ? scalar::Type::kU32 : reduced};
  add_arguments(types, spec.extras);
  check_arguments(spec.epilogue, types, "epilogue");
  check_results(spec.epilogue, spec.outputs, "epilogue");
}

void check_bodies(const ContractionSpec& spec) {
  for (const Input* input : {&spec.a, &spec.b}) {
    if (!input->guards.empty() || !input->terms.empty()) {
      fail(ErrorKind::kUnsupported,
           "A contraction's operand has guards or index terms. Materialise it with a pointwise "
           "kernel first.");
    }
    if (value_type(*input) != scalar::Type::kF32) {
      fail(ErrorKind::kUnsupported, "A contraction's operand has dtype ", input->dtype,
           ", but products accumulate in f32. Convert it to f32 first.");
    }
  }
  std::vector<scalar::Type> types = {scalar::Type::kF32};
  add_arguments(types, spec.extras);
  check_arguments(spec.epilogue, types, "epilogue");
  check_results(spec.epilogue, spec.outputs, "epilogue");
}

void check_bodies(const ScatterAddSpec& spec) {
  const scalar::Type type = scalar::compute_type(spec.output.dtype);
  const scalar::Type index = value_type(spec.index);
  if (index != scalar::Type::kU32 && index != scalar::Type::kI32) {
    fail(ErrorKind::kInvalidArgument, "A scatter's index has dtype ", spec.index.dtype,
         ", but it must be an integer.");
  }
  if (type == scalar::Type::kBool || value_type(spec.updates) != type ||
      (spec.has_base && value_type(spec.base) != type)) {
    fail(ErrorKind::kInvalidArgument,
         "A scatter's updates and base must have the numeric type of "
         "its output, ",
         spec.output.dtype, ".");
  }
}

}  // namespace

SpecParts parts_of(KernelSpec& spec) {
  PartsVisitor visitor;
  std::visit(visitor, spec);
  return std::move(visitor.parts);
}

scalar::Type value_type(const Input& input) {
  return input.slot == Input::kIndexValue ? scalar::Type::kU32 : scalar::compute_type(input.dtype);
}

uint32_t element_count(const std::vector<int64_t>& extents) {
  int64_t count = 1;
  for (int64_t extent : extents) {
    if (extent == 0) return 0;
  }
  for (int64_t extent : extents) {
    if (extent >= kAddressLimit || count * extent >= kAddressLimit) {
      fail(ErrorKind::kUnsupported, "A kernel iterates over [", join(extents),
           "], but 2^31 points or more are not supported. Split the tensor.");
    }
    count *= extent;
  }
  return static_cast<uint32_t>(count);
}

void validate(const KernelSpec& spec) {
  KernelSpec copy = spec;
  const SpecParts parts = parts_of(copy);
  for (const DimensionGroup& group : parts.groups) {
    for (int64_t extent : group.list()) {
      if (extent < 0) {
        fail(ErrorKind::kInvalidArgument, "A kernel spec has the extent ", extent,
             ". Extents are at least 0.");
      }
    }
  }
  auto space = [&](const std::vector<uint32_t>& groups) {
    std::vector<int64_t> extents;
    for (uint32_t group : groups) {
      const std::vector<int64_t> list = parts.groups[group].list();
      extents.insert(extents.end(), list.begin(), list.end());
    }
    // Of an empty space only the ranks are checked.
    if (element_count(extents) == 0) std::fill(extents.begin(), extents.end(), 1);
    return extents;
  };
  for (const InputPart& part : parts.inputs) check_input(*part.input, space(part.groups));
  for (const OutputPart& part : parts.outputs) {
    scalar::compute_type(part.output->dtype);
    const Interval range = interval(part.output->access, space(part.groups), "an output");
    check_slot(range, part.output->slot, "an output", false);
  }
  if (parts.outputs.empty()) {
    fail(ErrorKind::kInvalidArgument, "A kernel spec has no outputs.");
  }
  std::visit([](const auto& alternative) { check_bodies(alternative); }, spec);
}

}  // namespace meganeura::kernels
