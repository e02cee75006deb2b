#include "runtime/tensor_view.h"

#include <cstring>
#include <optional>
#include <vector>

#include "base/check.h"

namespace meganeura {
namespace {

// Calls visit(pointer to the element) in row-major order.
template <class Visit>
void for_each_element(const TensorView& view, const std::vector<int64_t>& strides,
                      int64_t element_bytes, const Visit& visit) {
  const int rank = view.shape.rank();
  std::vector<int64_t> index(static_cast<size_t>(rank), 0);
  const auto* at = static_cast<const std::byte*>(view.data);
  for (int64_t count = view.shape.elements(); count > 0; --count) {
    visit(at);
    for (int axis = rank - 1; axis >= 0; --axis) {
      const size_t a = static_cast<size_t>(axis);
      at += strides[a] * element_bytes;
      if (++index[a] < view.shape[axis]) break;
      at -= strides[a] * element_bytes * view.shape[axis];
      index[a] = 0;
    }
  }
}

template <class T>
int64_t read_as(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return static_cast<int64_t>(value);
}

using Reader = int64_t (*)(const std::byte*);

Reader integer_reader(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return read_as<int8_t>;
    case DType::kU8:
    case DType::kBool:
      return read_as<uint8_t>;
    case DType::kI16:
      return read_as<int16_t>;
    case DType::kI32:
      return read_as<int32_t>;
    case DType::kU32:
      return read_as<uint32_t>;
    case DType::kI64:
      return read_as<int64_t>;
    default:
      return nullptr;
  }
}

std::string position_text(const Shape& shape, int64_t flat) {
  std::vector<int64_t> index(static_cast<size_t>(shape.rank()));
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    index[static_cast<size_t>(axis)] = flat % shape[axis];
    flat /= shape[axis];
  }
  return cat("[", join(index), "]");
}

void check_type(const ViewTarget& target, const TensorView& view) {
  if (view.dtype != target.dtype || view.shape != target.shape) {
    fail(ErrorKind::kShape, target.what, " is ", target.dtype, " ", target.shape,
         ", and the value is ", view.dtype, " ", view.shape, ".");
  }
  if (!view.strides.empty() && static_cast<int>(view.strides.size()) != view.shape.rank()) {
    fail(ErrorKind::kShape, target.what, " of shape ", target.shape, " was given ",
         view.strides.size(), " strides; one per axis is needed.");
  }
  if (!view.data && view.shape.elements() > 0) {
    fail(ErrorKind::kInvalidArgument, target.what, " was given a null pointer.");
  }
}

void check_range(const ViewTarget& target, const TensorView& view,
                 const std::vector<int64_t>& strides, int64_t element_bytes) {
  const bool is_bool = target.dtype == DType::kBool;
  const int64_t limit = is_bool ? 2 : target.limit;
  const Reader reader = integer_reader(target.dtype);
  if (limit <= 0 || !reader) return;
  int64_t flat = 0;
  for_each_element(view, strides, element_bytes, [&](const std::byte* at) {
    const int64_t value = reader(at);
    if (value < 0 || value >= limit) {
      fail(ErrorKind::kInvalidArgument, target.what, " holds ", value, " at ",
           position_text(target.shape, flat), "; its values must be from 0 to ", limit - 1, ".");
    }
    ++flat;
  });
}

}  // namespace

void copy_view(const ViewTarget& target, const TensorView& view, std::byte* out) {
  check_type(target, view);
  const std::vector<int64_t> dense = view.shape.strides();
  const std::vector<int64_t>& strides = view.strides.empty() ? dense : view.strides;
  const uint32_t element_bytes = info(target.dtype).bits / 8;
  check_range(target, view, strides, element_bytes);
  const uint64_t bytes = storage_bytes(target.shape, target.dtype);
  if (bytes == 0) return;
  if (strides == dense) {
    std::memcpy(out, view.data, bytes);
    return;
  }
  for_each_element(view, strides, element_bytes, [&](const std::byte* at) {
    std::memcpy(out, at, element_bytes);
    out += element_bytes;
  });
}

}  // namespace meganeura
