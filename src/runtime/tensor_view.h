// Checking and copying what callers hand in.
#pragma once

#include <cstddef>
#include <string_view>

#include "meganeura/session.h"

namespace meganeura {

// What a view is copied to; `what` begins messages: "The input \"image\"".
struct ViewTarget {
  std::string_view what;
  DType dtype = DType::kF32;
  const Shape& shape;
  int64_t limit = 0;  // integers must be in [0, limit); 0: unchecked
};

// Copies the view densely to `out`, which has room for storage_bytes. Error(kShape) when dtype,
// shape or rank of the strides differ, Error(kInvalidArgument) naming position and value of an
// integer outside the limit or of a bool that is neither 0 nor 1; `out` is unchanged then.
void copy_view(const ViewTarget& target, const TensorView& view, std::byte* out);

}  // namespace meganeura
