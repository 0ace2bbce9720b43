#pragma once

#include <vector>

#include "gen/generator.h"
#include "ir/ir.h"

namespace tokamak {

// Instructions that are to run as one kernel. An instruction may be in several regions.
struct CutRegion {
  std::vector<const Instr*> instrs;  // in any order, each once
  std::vector<const Instr*> roots;   // those whose values others need
  RegionKind kind = RegionKind::kLoop;
};

// A way to cut a computation into kernels. What is in no region is the same bytes as another value,
// control flow, a library's, or a host step.
struct Cut {
  std::vector<CutRegion> regions;
  std::vector<std::vector<int>> packs;  // regions, by number, that run as one launch
};

}  // namespace tokamak
