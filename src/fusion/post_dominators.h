#pragma once

#include <vector>

#include "gen/region.h"

namespace tokamak {

// The post-dominators of an input within a region, the nearest to the input first: every path from
// the input to a root passes through each of them. A kernel that loads a stored post-dominator does
// not need the input. Move fusion.store-narrower (moves.h) uses this to store a smaller value.
//
// The list ends before the first root, in the order of the region, that depends on the input. The
// root is stored already, and no later instruction is on the path to it.
std::vector<const Instr*> PostDominatorsOf(const FusedRegion& region, const Instr& input);

}  // namespace tokamak
