#include <gtest/gtest.h>

#include "base/check.h"
#include "meganeura/shape.h"

namespace meganeura {
namespace {

TEST(Shape, CountsElementsOfScalarsAndEmptyTensors) {
  EXPECT_EQ(Shape().elements(), 1);
  EXPECT_EQ((Shape{3, 0, 5}).elements(), 0);
  EXPECT_EQ((Shape{3, 4}).elements(), 12);
}

TEST(Shape, RefusesNegativeAndOverflowingExtents) {
  EXPECT_THROW((Shape{2, -1}), Error);
  EXPECT_THROW((Shape{int64_t{1} << 40, int64_t{1} << 40}), Error);
}

TEST(Shape, BroadcastsAsNumPy) {
  EXPECT_EQ(broadcast_shapes(Shape{3, 4}, Shape{1, 4}), (Shape{3, 4}));
  EXPECT_EQ(broadcast_shapes(Shape{2, 1}, Shape{1, 3}), (Shape{2, 3}));
  EXPECT_EQ(broadcast_shapes(Shape{}, Shape{0}), (Shape{0}));
  EXPECT_EQ(broadcast_shapes(Shape{1}, Shape{0}), (Shape{0}));
  try {
    broadcast_shapes(Shape{3, 4}, Shape{5});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kShape);
    EXPECT_NE(std::string(error.what()).find("[3, 4] and [5]"), std::string::npos);
  }
}

TEST(Shape, StorageBytesFollowTheTable) {
  EXPECT_EQ(storage_bytes(Shape{3}, f16), 6u);
  EXPECT_EQ(storage_bytes(Shape{}, f32), 4u);
  EXPECT_EQ(storage_bytes(Shape{0, 7}, f32), 0u);
}

TEST(Format, ConcatenatesAndRoundTripsNumbers) {
  EXPECT_EQ(cat("a", 3, 'b', 0.1f, true, Shape{1, 2}), "a3b0.1true[1, 2]");
}

TEST(DType, NamesAreFoundAgain) {
  EXPECT_EQ(dtype_from_name("bf16"), bf16);
  EXPECT_EQ(dtype_from_safetensors("BOOL"), boolean);
  EXPECT_FALSE(dtype_from_name("f8").has_value());
}

}  // namespace
}  // namespace meganeura
