// Counter-based random numbers.
#include <limits>
#include <numbers>

#include "ops/philox.h"
#include "ops/rows.h"
#include "ops/rule.h"

namespace meganeura {
namespace ops {

using scalar::Op;
using scalar::Scalar;

std::array<Scalar, 4> philox4x32(std::array<Scalar, 4> counter, std::array<Scalar, 2> key) {
  constexpr int kRounds = 10;
  const Scalar multiplier0 = scalar::constant_u32(0xD2511F53);
  const Scalar multiplier1 = scalar::constant_u32(0xCD9E8D57);
  const Scalar weyl0 = scalar::constant_u32(0x9E3779B9);
  const Scalar weyl1 = scalar::constant_u32(0xBB67AE85);
  for (int round = 0; round < kRounds; ++round) {
    const Scalar high0 = scalar::make(Op::kMulHigh, {multiplier0, counter[0]});
    const Scalar high1 = scalar::make(Op::kMulHigh, {multiplier1, counter[2]});
    counter = {high1 ^ counter[1] ^ key[0], multiplier1 * counter[2], high0 ^ counter[3] ^ key[1],
               multiplier0 * counter[0]};
    key = {key[0] + weyl0, key[1] + weyl1};
  }
  return counter;
}

namespace {

constexpr AttributeField kStreamFields[] = {{"stream", AttributeType::kInt}};
constexpr uint32_t kNormalKey = 0x243F6A88;  // the first bits of pi's fraction

InferredType infer_random(const Node& node) {
  const Shape& shape = node.operands[0].shape();
  for (Tensor operand : node.operands) {
    if (operand.dtype() != DType::kU32 || operand.shape() != shape) {
      refuse(node, "needs seed, step and element of one shape, all u32.");
    }
  }
  const auto stream = node.get<int64_t>("stream");
  if (stream < 0 || stream > std::numeric_limits<uint32_t>::max()) {
    refuse(node, "has the stream ", stream, ". Use a number from 0 to 4294967295.");
  }
  return {shape, DType::kU32};
}

Scalar random_body(std::span<const Scalar> arguments, const Node& node) {
  const Scalar stream = scalar::constant_u32(static_cast<uint32_t>(node.get<int64_t>("stream")));
  const Scalar zero = scalar::constant_u32(0);
  return philox4x32({arguments[2], arguments[1], zero, zero}, {arguments[0], stream})[0];
}

constexpr OpRow kRows[] = {{
    .name = "random_bits",
    .min_operands = 3,
    .max_operands = 3,
    .fields = kStreamFields,
    .lowering = Lowering::kMap,
    .infer = infer_random,
    .body = random_body,
    .differentiability = Differentiability::kZero,
    .doc = "Word 0 of Philox4x32-10 with key (seed, stream) and counter (element, step, 0, 0).",
}};

void check_source(std::string_view name, const Operand& source) {
  require("random_bits", source);
  if (source.tensor.dtype() == DType::kU32 && source.tensor.rank() == 0) return;
  refuse("random_bits", source.place, "needs a ", name, " that is u32[], not ",
         source.tensor.dtype(), source.tensor.shape(), ". Use a u32 input or constant of rank 0.");
}

}  // namespace

std::span<const OpRow> random_rows() { return kRows; }

}  // namespace ops

Tensor random_bits(Operand seed, Operand step, const Shape& shape, int64_t stream) {
  const ops::Composite scope("random_bits", seed);
  ops::check_source("seed", seed);
  ops::check_source("step", step);
  const Tensor index = iota(seed.tensor.graph(), {shape.elements()}, 0);
  return ops::make(
      "random_bits", seed.place,
      {broadcast_to(seed, shape), broadcast_to(step, shape), reshape(index, ops::extents(shape))},
      {stream});
}

Tensor random_uniform(Operand seed, Operand step, const Shape& shape, int64_t stream) {
  const Tensor bits = random_bits(seed, step, shape, stream);
  const ops::Composite scope("random_uniform", seed);
  const Tensor eight = bits.graph().scalar(8.0, u32);
  return cast(shift_right(bits, eight), f32) * 0x1p-24;
}

Tensor random_normal(Operand seed, Operand step, const Shape& shape, int64_t stream) {
  const ops::Composite scope("random_normal", seed);
  ops::check_source("seed", seed);
  const Tensor key = bit_xor(seed, seed.tensor.graph().scalar(ops::kNormalKey, u32));
  const Tensor first = random_uniform(key, step, shape, 2 * stream);
  const Tensor second = random_uniform(key, step, shape, 2 * stream + 1);
  const Tensor radius = sqrt(log(1.0 - first) * -2.0);
  return radius * cos(second * (2.0 * std::numbers::pi));
}

}  // namespace meganeura
