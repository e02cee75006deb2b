// Kernel specs: what a kernel computes, as data. Archetypes turn spec + tile + capabilities into
// kernel IR (archetypes.h); the schedule writes specs. No op names, no vendors.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "meganeura/dtype.h"
#include "scalar/scalar.h"

namespace meganeura::kernels {

// offset + Σ strides[d]·i[d] over the iteration space, in elements.
struct Affine {
  int64_t offset = 0;
  std::vector<int64_t> strides;
  bool operator==(const Affine&) const = default;
};

// An index read from memory: value = clamp(memory[slot][at], 0, limit) as a signed or unsigned
// 32-bit integer; contributes value·stride to whatever it belongs to.
struct IndexTerm {
  uint32_t slot = 0;  // an i32 or u32 slot of the spec
  Affine at;
  int64_t limit = 0;  // inclusive upper clamp
  int64_t stride = 0;
  bool is_signed = false;
  bool operator==(const IndexTerm&) const = default;
};

// The input is valid only where 0 ≤ position + Σ terms < extent.
struct Guard {
  Affine position;
  std::vector<IndexTerm> terms;
  int64_t extent = 0;
  bool operator==(const Guard&) const = default;
};

// One value read per iteration point. With `slot` == kIndexValue the value is the (u32) address
// itself: an iota. Where a guard fails nothing is loaded and the value is 0.
struct Input {
  static constexpr uint32_t kIndexValue = ~0u;
  uint32_t slot = kIndexValue;
  DType dtype = DType::kF32;
  Affine access;
  std::vector<IndexTerm> terms;
  std::vector<Guard> guards;
  bool operator==(const Input&) const = default;
};

// One value written per iteration point; affine, injective. Elements narrower than 32 bits share
// words, so such an output is written contiguously from element 0, and the rest of its last word
// becomes 0: one kernel writes the whole tensor.
struct Output {
  uint32_t slot = 0;
  DType dtype = DType::kF32;
  Affine access;
  bool operator==(const Output&) const = default;
};

// Bodies take, in order, the value of every input and then, for every input with guards, a bool
// that says whether it was valid. Bodies are not lowered yet (they may hold exp, …).

// outputs[j][i…] = body_j(inputs at i…) for every point of `extents`.
struct PointwiseSpec {
  std::vector<int64_t> extents;
  std::vector<Input> inputs;
  scalar::Body body;
  std::vector<Output> outputs;
  bool operator==(const PointwiseSpec&) const = default;
};

enum class Combine : uint8_t { kSum, kMax, kMin, kArgMax };  // integers or f32; NaN propagates

// r[outer…] = combine over the reduced extents of prologue(inputs); out = epilogue(r, extras).
// The inputs iterate over outer + reduced extents, extras and the outputs over outer extents.
// The epilogue's argument 0 is r (u32 for kArgMax: flat index over the reduced extents, first
// maximum), then the extras as above. f32 sums follow a fixed order for a given tile.
struct ReductionSpec {
  std::vector<int64_t> outer;
  std::vector<int64_t> reduced;
  Combine combine = Combine::kSum;
  std::vector<Input> inputs;
  scalar::Body prologue;
  std::vector<Input> extras;
  scalar::Body epilogue;
  std::vector<Output> outputs;
  bool operator==(const ReductionSpec&) const = default;
};

// c[b…, m…, n…] = Σ_k a[b…, m…, k…]·b[b…, k…, n…]; out = epilogue(c, extras). Accesses of `a`
// iterate over batch+m+k, of `b` over batch+k+n, of extras and outputs over batch+m+n. a and b have
// no guards or terms in this version; f32 accumulation.
struct ContractionSpec {
  std::vector<int64_t> batch;
  std::vector<int64_t> m;
  std::vector<int64_t> n;
  std::vector<int64_t> k;
  Input a;
  Input b;
  std::vector<Input> extras;
  scalar::Body epilogue;  // argument 0: f32 accumulator
  std::vector<Output> outputs;
  bool operator==(const ContractionSpec&) const = default;
};

// out[v, j…] = base[v, j…] + Σ over positions p in order with index[p] == v of updates[p, j…].
// rows: extent of v; positions: extent of p; inner: extents of j. `base`, out over (v, inner…);
// `index` over (p); `updates` over (p, inner…). Without a base (has_base false) it counts as 0.
struct ScatterAddSpec {
  int64_t rows = 0;
  int64_t positions = 0;
  std::vector<int64_t> inner;
  bool has_base = true;
  Input base;
  Input index;
  Input updates;
  Output output;
  bool operator==(const ScatterAddSpec&) const = default;
};

using KernelSpec = std::variant<PointwiseSpec, ReductionSpec, ContractionSpec, ScatterAddSpec>;

// The number of slots a spec names (largest slot + 1).
uint32_t slot_count(const KernelSpec& spec);
// Merges iteration dimensions that every access walks contiguously, drops extents of 1, so that
// equal work has equal specs.
KernelSpec canonicalize(const KernelSpec& spec);
// One line per part; for dumps and cache keys.
std::string to_string(const KernelSpec& spec);

}  // namespace meganeura::kernels
