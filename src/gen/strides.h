#pragma once

#include <vector>

#include "gen/region.h"

namespace tokamak {

// How a load moves through its input when one coordinate of the domain grows by one.
struct LoadStrides {
  const Instr* input = nullptr;
  bool is_linear = false;  // else the strides mean nothing
  Dims strides;            // elements, per dimension of the domain
  int64_t base = 0;        // the index at coordinates 0
};

// All loads of a region whose roots all have the dimensions `domain` (an update's: its update has).
std::vector<LoadStrides> StridesOfLoads(const Region& region, const Dims& domain);

// An input that is read across: its elements are neighbours along another dimension than the last.
struct Across {
  const Instr* input = nullptr;  // null: there is none
  size_t dimension = 0;          // along which they are neighbours
  Dims strides;                  // as in LoadStrides
  int64_t base = 0;              // the index at coordinates 0
  bool is_only = false;          // all loads of the input are this one
};

// The largest such input that the nearest cache does not hold: it is read tile by tile.
Across FindAcross(const Region& region, const Dims& domain);

}  // namespace tokamak
