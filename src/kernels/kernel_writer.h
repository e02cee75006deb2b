// What all archetypes share: slots of any storage dtype, cursors over accesses, launches.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kernel_ir/builder.h"
#include "kernel_ir/capabilities.h"
#include "kernels/archetypes.h"
#include "kernels/spec.h"

namespace meganeura::kernels {

// The addresses of one input at some iteration point, summed dimension by dimension, so that the
// part that does not change stands outside of a loop.
struct Cursor {
  const Input* input = nullptr;
  std::vector<kir::Value> partial;  // one per affine, in the order of for_each_affine
  size_t dimensions = 0;            // how many are summed
};

// The value of an input and, for guarded ones, whether it was valid.
struct Loaded {
  kir::Value value;
  kir::Value valid;
};

// One invocation walks items start, start + stride, …; `groups` workgroups of `local` invocations.
struct Launch {
  uint32_t items = 0;
  uint32_t local = 1;
  uint32_t groups = 1;
  bool loop = false;  // an invocation may have more than one item
};
// At most `steps` items an invocation unless the device's grid is too small for that.
Launch plan_launch(uint32_t items, uint32_t local, uint32_t steps,
                   const Capabilities& capabilities);

struct WriterOptions {
  std::string name;
  std::array<uint32_t, 3> local_size = {1, 1, 1};
  uint32_t subgroup_size = 0;
  // Offsets and strides other than 0 become arguments, so that shapes share a module.
  bool runtime_strides = false;
};

// Builds one stage. Inputs and outputs are known from the start, as slots declare their access.
class KernelWriter {
 public:
  KernelWriter(WriterOptions options, std::span<const Input* const> inputs,
               std::span<const Output* const> outputs);

  kir::Builder b;

  // A number that is not part of the kernel's text: a run-time argument.
  kir::Value argument(uint32_t value);
  // An offset or stride of an access, which must outlive the writer: a constant or, with
  // runtime_strides, one argument per place.
  kir::Value number(const int64_t& value);

  // Operations on 32-bit integers, and changes of type.
  kir::Value bit_and(kir::Value a, kir::Value b_);
  kir::Value bit_or(kir::Value a, kir::Value b_);
  kir::Value shift_left(kir::Value a, kir::Value count);
  kir::Value shift_right(kir::Value a, kir::Value count);
  kir::Value bitcast(kir::Value a, kir::Type type);
  kir::Value not_equal(kir::Value a, kir::Value b_);
  // offset + Σ strides·coordinates, modulo 2^32.
  kir::Value address(const Affine& affine, std::span<const kir::Value> coordinates);
  // Row-major coordinates of a flat index that is below the product of the extents.
  std::vector<kir::Value> coordinates(kir::Value flat, std::span<const int64_t> extents);

  Cursor start(const Input& input);
  Cursor advance(const Cursor& cursor, std::span<const kir::Value> coordinates);
  Loaded load(const Cursor& cursor);
  // Four consecutive points of the last dimension; the cursor stands at the first, whose last
  // coordinate is a multiple of 4. Loads whole vectors where the access allows it.
  Loaded load4(const Cursor& cursor);
  // One element of a slot in its compute type.
  kir::Value load_element(uint32_t spec_slot, DType dtype, kir::Value index);
  // Four elements from an index that is a multiple of 4.
  kir::Value load_elements4(uint32_t spec_slot, DType dtype, kir::Value index);

  // A value (or vector) of a 32-bit dtype.
  void store(const Output& output, kir::Value index, kir::Value value);
  // The element's storage bits in the low bits of a u32.
  kir::Value storage_bits(DType dtype, kir::Value value);
  void store_word(const Output& output, kir::Value word_index, kir::Value word);

  // Values, then the flags of guarded inputs: the arguments of a body after `leading`.
  static std::vector<kir::Value> arguments(std::span<const kir::Value> leading,
                                           std::span<const Loaded> loaded);

  // for (i = 0; i < count; ++i).
  std::vector<kir::Value> loop(kir::Value count, std::span<const kir::Value> initial,
                               const kir::Builder::LoopBody& body);
  // Calls `body` with every item of this invocation, in a loop or under a bounds check.
  using ItemBody = std::function<void(kir::Value item)>;
  void for_items(const Launch& launch, const ItemBody& body);
  // The same where `index` numbers the workers of a workgroup (of which there are launch.local).
  void for_items(const Launch& launch, kir::Value index, const ItemBody& body);

  // Computes and stores the item-th element of row-major `extents`; `compute` gives the values at
  // the coordinates, one per output. With narrow outputs an item is 4 elements, else one.
  using Compute = std::function<std::vector<kir::Value>(std::span<const kir::Value> coordinates)>;
  void store_item(kir::Value item, std::span<const int64_t> extents,
                  std::span<const Output* const> outputs, const Compute& compute);

  Stage finish(std::array<uint32_t, 3> grid);

 private:
  struct SlotState {
    uint32_t spec_slot = 0;
    kir::Type element = kir::Type::kU32;
    bool read = false;
    bool write = false;
  };
  uint32_t kernel_slot(uint32_t spec_slot) const;
  void use(uint32_t spec_slot, DType dtype, bool write);
  kir::Value widen(DType dtype, kir::Value raw);
  kir::Value clamped_terms(std::span<const IndexTerm> terms, std::span<const kir::Value> at,
                           kir::Value sum);
  void store_packed(kir::Value item, uint32_t total, std::span<const int64_t> extents,
                    std::span<const Output* const> outputs, const Compute& compute);

  bool runtime_strides_;
  std::vector<SlotState> slots_;
  std::vector<uint32_t> params_;
  std::vector<std::pair<const int64_t*, uint32_t>> numbers_;  // place, argument
};

// Bits of one element in a slot: bool takes a byte.
uint32_t storage_bits_of(DType dtype);
// Whether elements of the dtype are narrower than a word.
bool is_narrow(DType dtype);
bool any_narrow(std::span<const Output* const> outputs);
// The words of narrow outputs belong to one invocation: Error(kUnsupported) unless every narrow
// output walks the extents row-major from its start.
void require_packed(std::span<const int64_t> extents, std::span<const Output* const> outputs);
// Items that store_item needs for that many elements.
uint32_t store_items(uint32_t elements, std::span<const Output* const> outputs);

// How load4 can read: the same element four times, one aligned vector, or one by one.
enum class Load4 : uint8_t { kSame, kVector, kSingle };
Load4 load4_mode(const Input& input);
// Whether four consecutive outputs are one aligned vector.
bool stores_vectors(const Output& output);

// The body with everything primitive on the device.
scalar::Body lower(const scalar::Body& body, const Capabilities& capabilities);

template <class Item>
std::vector<const Item*> pointers(const std::vector<Item>& items) {
  std::vector<const Item*> out;
  for (const Item& item : items) out.push_back(&item);
  return out;
}

// Whether a kernel with that many slots and arguments fits the push constants.
bool fits(const Capabilities& capabilities, size_t slots, size_t params);
void require_fit(const Capabilities& capabilities, const std::string& name, size_t slots,
                 size_t params);

}  // namespace meganeura::kernels
