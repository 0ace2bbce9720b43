#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "fusion/kernel_memo.h"
#include "fusion/plan.h"
#include "ir/ir.h"

namespace tokamak {

// Instructions that are to run as one kernel. An instruction may be in several regions.
struct CutRegion {
  std::vector<const Instr*> instrs;  // in any order, each once
  std::vector<const Instr*> roots;   // those whose values others need
  std::string generator = {};        // of the kernel that was made of it; "": not known
};

// A way to cut a computation into kernels. What is in no region is the same bytes as another value,
// control flow, a library's, or a host step.
struct Cut {
  std::vector<CutRegion> regions;
  std::vector<std::vector<int>> packs;  // regions, by number, that run as one launch
};

// How each computation of a program is cut.
using Cuts = std::unordered_map<const Computation*, Cut>;

// The cut that a plan was made of.
Cut CutOf(const ComputationPlan& plan);

// A kernel of a plan that makes its roots; all else in it exists only inside, unless some kernel
// makes it.
void AddKernel(ComputationPlan& plan, PlannedKernel planned);

// Builds the kernels. A region that has none is taken apart: a kernel for each of its instructions,
// and what has none then is a host step. Each such is a record.
ComputationPlan BuildCut(const Cut& cut, KernelMemo& kernels, DecisionLog& log);

}  // namespace tokamak
