#pragma once

#include <vector>

#include "fusion/chain_slices.h"
#include "fusion/moves.h"

namespace tokamak {

// Adds the moves `fusion.chain` of a group that computes a second dot of a chain
// (analysis/dot_chains.h): of this dot alone, and of all second dots that use the same first dots,
// as in attention and its gradients. Of all:
//
//   * Each second dot computes the first dots and what is between in its own kernel, with the
//     reductions, if its kernel can.
//   * Other second dots load the results of reductions. Those are stored by a second dot that
//     computes them anyway, or else by a kernel that ends in the reduction.
//   * Groups that then store nothing that others read are removed.
//
// There are none if the machine has no kernels for chains.
void AddChainMoves(const CandidatePlan& candidate, int group, ChainSlices& slices,
                   std::vector<Move>& moves);

}  // namespace tokamak
