#pragma once

#include <vector>

#include "gen/region.h"

// Strides of a region's loads: which inputs are read contiguously and which transposed.

namespace tokamak {

// The index of a load as a function of the coordinates c of the domain: base + sum of strides[d] *
// c[d].
struct LoadStrides {
  const Instr* input = nullptr;
  bool is_affine = false;  // whether the index has that form; if not, the strides are meaningless
  Dims strides;            // in elements, per dimension of the domain
  int64_t base = 0;        // index at coordinates 0
};

// All loads of a region whose roots all have the dimensions `domain` (for slice updates: the
// update's).
std::vector<LoadStrides> StridesOfLoads(const FusedRegion& region, const Dims& domain);

// An input that is read transposed: it is contiguous along another dimension than the last.
struct TransposedInput {
  const Instr* input = nullptr;  // null: none
  size_t dimension = 0;          // the dimension along which it is contiguous
  Dims strides;                  // as in LoadStrides
  int64_t base = 0;              // index at coordinates 0
  bool is_only_load = false;     // the region has no other load of the input
};

// The largest transposed input above kSmallInput bytes (strides.cc); it is read in tiles.
TransposedInput FindTransposedInput(const FusedRegion& region, const Dims& domain);

}  // namespace tokamak
