#include "graph/leaves.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace meganeura {
namespace {

using Ints = std::vector<int64_t>;
using enum AttributeType;

constexpr AttributeField kInputFields[] = {
    {"name", kString}, {"dtype", kDType}, {"shape", kInts}, {"limit", kInt}};
constexpr AttributeField kParameterFields[] = {{"name", kString},
                                               {"dtype", kDType},
                                               {"shape", kInts},
                                               {"init", kString},
                                               {"trainable", kBool}};
constexpr AttributeField kStateFields[] = {
    {"name", kString}, {"dtype", kDType}, {"shape", kInts}, {"init", kString}};
constexpr AttributeField kConstantFields[] = {{"dtype", kDType}, {"shape", kInts}, {"data", kData}};

InferredType declared(const Node& node) {
  return {Shape(node.get<Ints>("shape")), node.get<DType>("dtype")};
}

void check_name(const Node& node) {
  if (leaf_name(node).empty()) {
    fail(ErrorKind::kInvalidArgument, "The name of ", describe(node),
         " is empty. Give every input, parameter and state a name.");
  }
}

InferredType infer_input(const Node& node) {
  check_name(node);
  const InferredType type = declared(node);
  const auto limit = node.get<int64_t>("limit");
  if (limit < 0 || (limit > 0 && !is_integer(type.dtype))) {
    fail(ErrorKind::kInvalidArgument, "The limit ", limit, " of the input \"", leaf_name(node),
         "\" (", describe(node), ") does not fit ", type.dtype,
         ". Integer inputs may have a positive limit; 0 means that values are not checked.");
  }
  return type;
}

InferredType infer_parameter(const Node& node) {
  check_name(node);
  Initializer::parse(node.get<std::string>("init"));
  if (node.get<bool>("trainable")) check_trainable(node);
  return declared(node);
}

InferredType infer_state(const Node& node) {
  check_name(node);
  Initializer::parse(node.get<std::string>("init"));
  return declared(node);
}

InferredType infer_constant(const Node& node) {
  const InferredType type = declared(node);
  const Bytes& data = node.get<Bytes>("data");
  const uint64_t expected = storage_bytes(type.shape, type.dtype);
  if (!data || data->size() != expected) {
    fail(ErrorKind::kShape, "The ", describe(node), " of type ", type.dtype, type.shape, " needs ",
         expected, " bytes but got ", data ? data->size() : 0,
         ". Give one value per element, row-major.");
  }
  const auto is_truth = [](std::byte byte) { return byte <= std::byte{1}; };
  if (type.dtype == DType::kBool && !std::all_of(data->begin(), data->end(), is_truth)) {
    fail(ErrorKind::kInvalidArgument, "The ", describe(node), " of type bool", type.shape,
         " holds a byte other than 0 and 1. Store truth values as 0 or 1.");
  }
  return type;
}

constexpr OpRow leaf(std::string_view name, std::span<const AttributeField> fields,
                     Lowering lowering, InferredType (*infer)(const Node&), std::string_view doc) {
  return {.name = name,
          .min_operands = 0,
          .max_operands = 0,
          .fields = fields,
          .lowering = lowering,
          .infer = infer,
          .differentiability = Differentiability::kZero,
          .doc = doc};
}

constexpr std::array<OpRow, 4> kRows = {
    leaf("input", kInputFields, Lowering::kInput, infer_input,
         "A value the caller provides at every run; integers may have an exclusive limit."),
    leaf("parameter", kParameterFields, Lowering::kParameter, infer_parameter,
         "A persistent value that gradients and optimizers see."),
    leaf("state", kStateFields, Lowering::kState, infer_state,
         "A persistent value that only assign changes."),
    leaf("constant", kConstantFields, Lowering::kConstant, infer_constant, "A dense constant."),
};

}  // namespace

std::span<const OpRow> leaf_rows() { return kRows; }

const OpRow& leaf_row(Lowering lowering) {
  const auto index = static_cast<size_t>(lowering);
  MG_CHECK(index < kRows.size() && kRows[index].lowering == lowering, "lowering ", index,
           " is no leaf's");
  return kRows[index];
}

void check_trainable(const Node& node) {
  if (is_float(node.get<DType>("dtype"))) return;
  fail(ErrorKind::kInvalidArgument, "The parameter \"", leaf_name(node), "\" (", describe(node),
       ") holds ", node.get<DType>("dtype"),
       " values, which have no gradient. Create it with trainable = false.");
}

}  // namespace meganeura
