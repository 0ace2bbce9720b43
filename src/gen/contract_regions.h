#pragma once

#include <string>

#include "cost/machine.h"
#include "gen/region.h"

// The parts of a region that the CPU contract generator (contract.cc) computes.

namespace tokamak {

// The region, split around its dots.
struct ContractRegions {
  const Instr* dot = nullptr;    // the last dot
  const Instr* inner = nullptr;  // the dot that its lhs is computed from
  FusedRegion rows;              // produces lhs row by row; empty if lhs has no reductions
  FusedRegion rest;              // all other instructions
  // Equal column ranges that roots combine, such as the gates of a recurrent cell.
  int64_t columns = 1;
  bool left_is_root = false;  // lhs is also stored
  bool IsChain() const { return !rows.instrs.empty(); }
};

// Returns why the region is not a contraction, empty if it is.
std::string FindContractRegions(const FusedRegion& region, const Machine& machine,
                                ContractRegions& parts);

// Whether the region has a reduction. If `ContractRegions::rest` has one, a tile covers whole rows
// of results, which it reduces.
bool HasReduce(const FusedRegion& region);

}  // namespace tokamak
