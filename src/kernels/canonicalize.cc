#include <algorithm>
#include <numeric>

#include "kernels/spec_walk.h"

namespace meganeura::kernels {
namespace {

// Where the strides of one group begin in one affine.
struct AffineUse {
  Affine* affine = nullptr;
  size_t first = 0;
};

void erase_dimension(std::vector<int64_t>& extents, const std::vector<AffineUse>& uses, size_t d) {
  extents.erase(extents.begin() + static_cast<ptrdiff_t>(d));
  for (const AffineUse& use : uses) {
    use.affine->strides.erase(use.affine->strides.begin() + static_cast<ptrdiff_t>(use.first + d));
  }
}

void drop_unit_dimensions(std::vector<int64_t>& extents, const std::vector<AffineUse>& uses) {
  for (size_t d = extents.size(); d-- > 0;) {
    if (extents[d] == 1) erase_dimension(extents, uses, d);
  }
}

// Largest stride first, as the first access has them, ties by the next accesses.
void sort_dimensions(std::vector<int64_t>& extents, const std::vector<AffineUse>& uses) {
  std::vector<size_t> order(extents.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    for (const AffineUse& use : uses) {
      const int64_t x = std::abs(use.affine->strides[use.first + a]);
      const int64_t y = std::abs(use.affine->strides[use.first + b]);
      if (x != y) return x > y;
    }
    return false;
  });
  auto permute = [&](auto begin) {
    const std::vector<int64_t> old(begin, begin + static_cast<ptrdiff_t>(order.size()));
    for (size_t d = 0; d < order.size(); ++d) *(begin + static_cast<ptrdiff_t>(d)) = old[order[d]];
  };
  permute(extents.begin());
  for (const AffineUse& use : uses) {
    permute(use.affine->strides.begin() + static_cast<ptrdiff_t>(use.first));
  }
}

void merge_dimensions(std::vector<int64_t>& extents, const std::vector<AffineUse>& uses) {
  for (size_t d = extents.size(); d-- > 1;) {
    const bool contiguous = std::all_of(uses.begin(), uses.end(), [&](const AffineUse& use) {
      const auto strides = use.affine->strides.begin() + static_cast<ptrdiff_t>(use.first + d);
      return *(strides - 1) == *strides * extents[d];
    });
    if (!contiguous) continue;
    const int64_t merged = extents[d - 1] * extents[d];
    for (const AffineUse& use : uses) {
      auto strides = use.affine->strides.begin() + static_cast<ptrdiff_t>(use.first + d);
      *(strides - 1) = *strides;
    }
    erase_dimension(extents, uses, d);
    extents[d - 1] = merged;
  }
}

}  // namespace

KernelSpec canonicalize(const KernelSpec& spec) {
  validate(spec);
  KernelSpec result = spec;
  const SpecParts parts = parts_of(result);
  for (size_t g = parts.groups.size(); g-- > 0;) {
    const DimensionGroup& group = parts.groups[g];
    if (group.extents == nullptr) continue;
    const bool empty =
        std::find(group.extents->begin(), group.extents->end(), 0) != group.extents->end();
    std::vector<AffineUse> uses;
    auto add = [&](const std::vector<uint32_t>& order, Affine& affine) {
      // Other groups may stand behind this one in the access, so count from the front.
      size_t first = 0;
      for (uint32_t other : order) {
        if (other == g) {
          uses.push_back({&affine, first});
          return;
        }
        first += parts.groups[other].extents ? parts.groups[other].extents->size() : 1;
      }
    };
    // Narrow outputs must be walked contiguously, so their strides decide the order first.
    for (bool narrow : {true, false}) {
      for (const OutputPart& part : parts.outputs) {
        const bool is_narrow = info(part.output->dtype).bits < 32;
        if (is_narrow == narrow) add(part.groups, part.output->access);
      }
    }
    for (const InputPart& part : parts.inputs) {
      for_each_affine(*part.input, [&](Affine& affine) { add(part.groups, affine); });
    }
    drop_unit_dimensions(*group.extents, uses);
    if (empty) continue;
    if (!group.ordered) sort_dimensions(*group.extents, uses);
    merge_dimensions(*group.extents, uses);
  }
  return result;
}

}  // namespace meganeura::kernels
