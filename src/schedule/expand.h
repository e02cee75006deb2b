// Expansion of graph values into scalar expressions over kernel inputs.
//
// A Point says where in a tensor an iteration point of the kernel reads: one coordinate per axis,
// affine in the iteration space, plus loaded index terms and guards. Walking a graph upwards from
// the kernel's root, views change the point, elementwise ops build expressions, and values that
// have a buffer become kernel inputs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "kernels/spec.h"
#include "meganeura/graph.h"
#include "scalar/scalar.h"

namespace meganeura::schedule {

struct Coordinate {
  kernels::Affine affine;
  std::vector<kernels::IndexTerm> terms;
};

struct Point {
  std::vector<Coordinate> coordinates;
  std::vector<kernels::Guard> guards;
};

// Thrown when a value must have a buffer before the kernel can be built.
struct NeedsBuffer {
  uint32_t tensor;
};

// Thrown when iteration dimension `dimension` must be split into (extent / factor, factor).
struct NeedsSplit {
  size_t dimension;
  int64_t factor;
};

// Slot table of one kernel: buffers in order of first use.
class SlotTable {
 public:
  // `hidden`: the tensor the kernel computes, which therefore cannot be read.
  SlotTable(const std::map<uint32_t, uint32_t>& buffer_of, std::optional<uint32_t> hidden)
      : buffer_of_(&buffer_of), hidden_(hidden) {}
  // The slot of the buffer that holds the tensor, or nothing.
  std::optional<uint32_t> slot(Tensor tensor);
  uint32_t slot_of_buffer(uint32_t buffer);
  const std::vector<uint32_t>& buffers() const { return buffers_; }
  // The tensors whose buffers were asked for.
  const std::set<uint32_t>& tensors() const { return tensors_; }

 private:
  const std::map<uint32_t, uint32_t>* buffer_of_;
  std::optional<uint32_t> hidden_;
  std::vector<uint32_t> buffers_;
  std::set<uint32_t> tensors_;
};

// Collects the inputs of one iteration space.
class Expander {
 public:
  Expander(SlotTable& slots, std::vector<int64_t> extents)
      : slots_(&slots), extents_(std::move(extents)) {}

  // Values the kernel itself computes: `tensor` read at exactly its own `point` is this expression.
  void provide(Tensor tensor, Point point, scalar::Scalar value);

  // The value of the tensor at the point. Throws NeedsBuffer or NeedsSplit.
  scalar::Scalar expand(Tensor tensor, const Point& point);
  // The tensor as one kernel input (its value is not transformed); views are looked through.
  kernels::Input input(Tensor tensor, const Point& point);

  const std::vector<int64_t>& extents() const { return extents_; }

  struct Result {
    std::vector<kernels::Input> inputs;
    scalar::Body body;
  };
  // The canonical body over `leading` extra arguments (already provided as arguments 0…) and the
  // inputs met so far.
  Result finish(std::span<const scalar::Scalar> outputs, std::span<const scalar::Type> leading);

 private:
  scalar::Scalar expand_new(Tensor tensor, const Point& point);
  scalar::Scalar load(Tensor tensor, uint32_t slot, const Point& point);
  scalar::Scalar expand_concat(Tensor tensor, const Point& point);
  scalar::Scalar expand_update(Tensor tensor, const Point& point);
  scalar::Scalar valid(const std::vector<kernels::Guard>& guards);
  size_t add_input(kernels::Input input);

  SlotTable* slots_;
  std::vector<int64_t> extents_;
  std::vector<kernels::Input> inputs_;
  std::map<std::string, scalar::Scalar> memo_;
};

// The point at which every axis of `shape` is one iteration dimension, given that dimension i of
// the shape is iterated by the dimensions [first[i], first[i + 1]) of `extents`.
Point identity_point(std::span<const size_t> first, std::span<const int64_t> extents);

// The point in a tensor of shape `to` with the same row-major position as `point` in shape `from`.
// `operand` is the tensor that NeedsBuffer names where the position is not affine.
Point reshape_point(const Shape& from, const Shape& to, const Point& point,
                    std::span<const int64_t> extents, uint32_t operand);

// The address of a point in a dense tensor of that shape.
void flatten(const Shape& shape, const Point& point, size_t rank, kernels::Affine& access,
             std::vector<kernels::IndexTerm>& terms);

// The tensor below any reshapes: the same elements in the same order.
Tensor through_reshapes(Tensor tensor);

// The value of a constant whose elements are all equal.
std::optional<scalar::Scalar> splat_value(const Node& node);

// The operand's point for a node that only moves values (view or identity); nothing if it is no
// such node. Throws NeedsBuffer or NeedsSplit.
std::optional<Point> view_point(Tensor tensor, const Point& point, SlotTable& slots,
                                std::span<const int64_t> extents);

// Rounds or wraps a computed value as storing it in the dtype would.
scalar::Scalar as_stored(const scalar::Scalar& value, DType dtype);

std::string key(const Point& point);

}  // namespace meganeura::schedule
