#include "kernels/spec.h"

#include <gtest/gtest.h>

#include "kernels/spec_walk.h"
#include "meganeura/error.h"

namespace meganeura::kernels {
namespace {

using scalar::Type;

scalar::Body add_body() {
  const scalar::Scalar a = scalar::argument(0, Type::kF32);
  const scalar::Scalar b = scalar::argument(1, Type::kF32);
  const scalar::Scalar sum = a + b;
  return scalar::linearize(std::array{sum}, std::array{Type::kF32, Type::kF32});
}

// out[i, j, k] = x[i, j, k] + bias[k] over [2, 3, 4].
PointwiseSpec bias_spec() {
  PointwiseSpec spec;
  spec.extents = {2, 3, 4};
  spec.inputs = {{0, DType::kF32, {0, {12, 4, 1}}, {}, {}},
                 {1, DType::kF32, {0, {0, 0, 1}}, {}, {}}};
  spec.body = add_body();
  spec.outputs = {{2, DType::kF32, {0, {12, 4, 1}}}};
  return spec;
}

std::string error_of(const KernelSpec& spec, ErrorKind kind) {
  try {
    canonicalize(spec);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

TEST(Spec, CountsTheSlotsOfInputsTermsGuardsAndOutputs) {
  PointwiseSpec spec = bias_spec();
  EXPECT_EQ(slot_count(spec), 3u);
  spec.inputs[0].guards.push_back({{0, {0, 0, 0}}, {{6, {0, {0, 0, 0}}, 3, 1, false}}, 5});
  EXPECT_EQ(slot_count(spec), 7u);
}

TEST(Spec, PrintsOnePartALine) {
  EXPECT_EQ(to_string(KernelSpec(bias_spec())),
            "pointwise [2, 3, 4]\n"
            "  input %0:f32(0+[12, 4, 1])\n"
            "  input %1:f32(0+[0, 0, 1])\n"
            "  body (a0: f32, a1: f32) { %2 = add a0 a1; return %2 }\n"
            "  output %2:f32(0+[12, 4, 1])\n");
}

TEST(Canonicalize, MergesOnlyWhatEveryAccessWalksContiguously) {
  const auto merged = std::get<PointwiseSpec>(canonicalize(bias_spec()));
  EXPECT_EQ(merged.extents, (std::vector<int64_t>{6, 4}));
  EXPECT_EQ(merged.inputs[1].access.strides, (std::vector<int64_t>{0, 1}));
  PointwiseSpec flat = bias_spec();
  flat.inputs[1].access.strides = {12, 4, 1};
  const auto one = std::get<PointwiseSpec>(canonicalize(flat));
  EXPECT_EQ(one.extents, std::vector<int64_t>{24});
  EXPECT_EQ(one.outputs[0].access.strides, std::vector<int64_t>{1});
}

TEST(Canonicalize, DropsUnitDimensionsAndSortsByTheOutput) {
  PointwiseSpec spec = bias_spec();
  // The same work over [4, 1, 2, 3], dimensions in another order.
  spec.extents = {4, 1, 2, 3};
  spec.inputs[0].access.strides = {1, 77, 12, 4};
  spec.inputs[1].access.strides = {1, 77, 0, 0};
  spec.outputs[0].access.strides = {1, 77, 12, 4};
  EXPECT_EQ(std::get<PointwiseSpec>(canonicalize(spec)),
            std::get<PointwiseSpec>(canonicalize(bias_spec())));
}

TEST(Canonicalize, LeavesCanonicalSpecsAlone) {
  const KernelSpec once = canonicalize(bias_spec());
  EXPECT_EQ(canonicalize(once), once);
}

TEST(Canonicalize, KeepsTheOrderOfReducedDimensionsForArgMax) {
  ReductionSpec spec;
  spec.reduced = {3, 4};
  spec.combine = Combine::kArgMax;
  spec.inputs = {{0, DType::kF32, {0, {1, 3}}, {}, {}}};
  spec.prologue = scalar::identity(Type::kF32);
  spec.epilogue = scalar::identity(Type::kU32);
  spec.outputs = {{1, DType::kU32, {0, {}}}};
  EXPECT_EQ(std::get<ReductionSpec>(canonicalize(spec)).reduced, (std::vector<int64_t>{3, 4}));
  spec.combine = Combine::kMax;
  spec.epilogue = scalar::identity(Type::kF32);
  spec.outputs[0].dtype = DType::kF32;
  EXPECT_EQ(std::get<ReductionSpec>(canonicalize(spec)).reduced, std::vector<int64_t>{12});
}

TEST(Validate, NamesWhatContradictsItself) {
  PointwiseSpec spec = bias_spec();
  spec.inputs[0].access.strides.pop_back();
  EXPECT_NE(error_of(spec, ErrorKind::kInvalidArgument).find("2 strides"), std::string::npos);
  spec = bias_spec();
  spec.inputs[1].access.offset = -1;
  EXPECT_NE(error_of(spec, ErrorKind::kInvalidArgument).find("element -1 of slot 1"),
            std::string::npos);
  spec = bias_spec();
  spec.inputs[1].dtype = DType::kI32;
  EXPECT_NE(error_of(spec, ErrorKind::kInvalidArgument).find("(f32, i32)"), std::string::npos);
  spec = bias_spec();
  spec.outputs.clear();
  error_of(spec, ErrorKind::kInvalidArgument);
}

TEST(Validate, RefusesDTypesAndSizesThatNoKernelHandles) {
  PointwiseSpec spec = bias_spec();
  spec.inputs[0].dtype = DType::kF64;
  error_of(spec, ErrorKind::kUnsupported);
  spec = bias_spec();
  spec.outputs[0].access.strides[0] = int64_t{1} << 31;
  EXPECT_NE(error_of(spec, ErrorKind::kUnsupported).find("2^31"), std::string::npos);
  spec = bias_spec();
  spec.extents = {1 << 16, 1 << 10, 1 << 6};
  spec.inputs = {};
  spec.body = scalar::linearize(std::array{scalar::constant_f32(1)}, {});
  spec.outputs[0].access.strides = {0, 0, 1};
  EXPECT_NE(error_of(spec, ErrorKind::kUnsupported).find("2^31"), std::string::npos);
}

}  // namespace
}  // namespace meganeura::kernels
