#pragma once

#include <vector>

#include "gen/region.h"

namespace tokamak {

// Cut points: the post-dominators of an input within a region, in order. Every path from the input
// to a root passes through each of them, so a kernel that loads a stored cut point does not need
// the input. Roots, and instructions after the first root, are not included.
std::vector<const Instr*> CutPointsOf(const FusedRegion& region, const Instr& input);

}  // namespace tokamak
