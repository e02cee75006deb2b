// Running programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meganeura/device.h"
#include "meganeura/dtype.h"
#include "meganeura/export.h"
#include "meganeura/graph.h"
#include "meganeura/shape.h"

namespace meganeura {

struct Program;

// A borrowed view of host data; strides in elements, empty means row-major. Calls that take one
// copy before they return.
struct TensorView {
  const void* data = nullptr;
  DType dtype = DType::kF32;
  Shape shape;
  std::vector<int64_t> strides;

  TensorView(const void* data, DType dtype, Shape shape, std::vector<int64_t> strides = {})
      : data(data), dtype(dtype), shape(std::move(shape)), strides(std::move(strides)) {}
};

// A tensor owned by the host.
struct HostTensor {
  DType dtype = DType::kF32;
  Shape shape;
  std::vector<std::byte> bytes;

  template <class T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  TensorView view() const { return {bytes.data(), dtype, shape}; }
};

struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;
};

// Device values of parameters and states; outlives programs and is shared by several sessions.
class MEGANEURA_API ParameterStore {
 public:
  // `seed` draws the initial values: Philox by (seed, name).
  explicit ParameterStore(Device device, uint64_t seed = 0);
  ~ParameterStore();
  ParameterStore(ParameterStore&&) noexcept;

  // Allocates and initialises every persistent tensor of the program that is not here yet.
  // Error(kShape) when one exists with another shape or dtype.
  void add(const Program& program);
  bool contains(std::string_view name) const;
  std::vector<std::string> names() const;  // in order of addition
  TensorType type(std::string_view name) const;
  HostTensor read(std::string_view name) const;
  void write(std::string_view name, const TensorView& value);
  uint64_t bytes() const;

  struct Implementation;
  Implementation& implementation() const { return *implementation_; }

 private:
  std::shared_ptr<Implementation> implementation_;
  friend class Session;
};

// A submitted run. wait() or output() block; dropping it is fine.
class MEGANEURA_API RunHandle {
 public:
  void wait() const;
  bool done() const;
  HostTensor output(std::string_view name) const;
  float scalar(std::string_view name) const;  // an f32 rank-0 output

 private:
  friend class Session;
  struct Implementation;
  std::shared_ptr<Implementation> implementation_;
};

// A program with its memory, ready to run. Not thread-safe; use one per thread or lock.
class MEGANEURA_API Session {
 public:
  // Adds the program's persistent tensors to the store, allocates arenas, creates pipelines and
  // records every segment. `in_flight` runs may be pending before run() waits.
  Session(Device device, const Program& program, ParameterStore& store, int in_flight = 3);
  ~Session();
  Session(Session&&) noexcept;

  // Copies the value for the next run() (it stays set for later runs). Error(kShape) naming the
  // input, Error(kInvalidArgument) when an integer is outside the input's limit.
  void set(std::string_view input, const TensorView& value);
  void set(std::string_view input, float value);
  void set(std::string_view input, uint32_t value);
  // Submits the named segments in order (all when empty). Error(kInvalidArgument) when an input
  // that a segment reads was never set.
  RunHandle run(std::span<const std::string> segments = {});
  void wait();

  const Program& program() const;
  uint64_t device_bytes() const;  // arenas of this session, without the store

  struct Implementation;

 private:
  std::shared_ptr<Implementation> implementation_;
};

}  // namespace meganeura
