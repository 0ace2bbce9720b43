#pragma once

// A cut is a plan without kernels: which instructions form one region, and which regions share a
// launch. It is the exchange format between planners, plans read from disk (plan_data.h), fusions
// of an XLA dump (predetermined_fusions.h) and the code that builds kernels.

#include <string>
#include <unordered_map>
#include <vector>

#include "fusion/kernel_memo.h"
#include "fusion/plan.h"
#include "ir/ir.h"

namespace tokamak {

// Instructions that should run as one kernel. An instruction may be in several regions.
struct CutRegion {
  std::vector<const Instr*> instrs;  // in any order, each once
  std::vector<const Instr*> roots;   // values that instructions outside the region need
  std::string generator = {};        // name of the generator of its kernel; empty if unknown
};

// A computation partitioned into kernels. An instruction in no region is an alias of another value,
// control flow, a library call or a host step.
struct Cut {
  std::vector<CutRegion> regions;
  std::vector<std::vector<int>> launch_groups;  // regions, by number, that share one launch
};

// The cut of each computation of a program.
using Cuts = std::unordered_map<const Computation*, Cut>;

// The cut that corresponds to a plan.
Cut CutOf(const ComputationPlan& plan);

// Adds a kernel that stores its roots to the plan. Its other instructions are marked as computed
// inside kernels only, unless another kernel stores them.
void AddKernel(ComputationPlan& plan, PlannedKernel planned);

// Builds the kernels. If no generator supports a region, it is split into one kernel per
// instruction; an instruction without a kernel becomes a host step. Both are logged as decisions.
ComputationPlan BuildCut(const Cut& cut, KernelMemo& kernels, DecisionLog& log);

}  // namespace tokamak
