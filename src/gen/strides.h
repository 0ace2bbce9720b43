#pragma once

#include <vector>

#include "gen/region.h"

namespace tokamak {

// How a load moves through its input when one coordinate of the domain grows by one.
struct LoadStrides {
  const Instr* input = nullptr;
  bool is_linear = false;  // else the strides mean nothing
  Dims strides;            // elements, per dimension of the domain
};

// All loads of a region whose roots all have the dimensions `domain` (an update's: its update has).
std::vector<LoadStrides> StridesOfLoads(const Region& region, const Dims& domain);

// The dimension that the elements of a large input are neighbours along, when that is another than
// the last: a transposed input is read tile by tile. -1: there is none.
int64_t TransposedDimension(const Region& region, const Dims& domain);

}  // namespace tokamak
