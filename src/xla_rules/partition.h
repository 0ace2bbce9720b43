#pragma once

#include "cost/machine.h"
#include "fusion/kernel_partition.h"
#include "ir/ir.h"
#include "rewrite/pass.h"

namespace tokamak {

// The kernels of the fusions that the passes of this folder have formed: the partition of each
// computation that runs step by step. `tags` are those of inline-fusions. No planner improves the
// partition. It changes only where no generator supports a region (BuildKernels splits it), or
// where the user's fusion constraints require it.
//
// Fusions that the program already had, as in an HLO dump, have been inlined before, without tags.
//
// The instructions of a fusion are one region. Those of a horizontal fusion are several regions
// that share a launch. Every other instruction that needs a kernel is its own region.
//
// A fusion is divided, so that each of its instructions is treated like these, if it contains
//
//   - an instruction that cannot be in a kernel (library call, host step, control flow) or a
//     get-tuple-element; or
//   - a partial update (IsPartialUpdate) that another instruction of the fusion uses, or whose
//     operand 0 is computed in the fusion.
ModulePartition PartitionOfFusions(const Module& module, const FusionTags& tags,
                                   const Machine& machine);

}  // namespace tokamak
