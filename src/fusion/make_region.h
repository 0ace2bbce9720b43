#pragma once

#include <string>
#include <vector>

#include "gen/region.h"
#include "ir/ir.h"

namespace tokamak {

// Makes a region of instructions in any order: sorts them topologically and computes the inputs.
// `positions`: of each instruction in the topological order of the computation.
FusedRegion MakeRegion(const std::vector<const Instr*>& instrs,
                       const std::vector<const Instr*>& roots, const InstrMap<size_t>& positions);

// The name of a region's kernel, after its first root.
std::string KernelNameOf(const FusedRegion& region);

}  // namespace tokamak
