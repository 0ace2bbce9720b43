#pragma once

#include <unordered_map>
#include <vector>

#include "cost/machine.h"
#include "fusion/kernel_partition.h"
#include "ir/ir.h"
#include "rewrite/pass.h"

namespace tokamak {

// The fusions of a module that were formed before planning (FusionMode::kXlaPasses). No planner
// improves them. They change only where no kernel can compute a fusion (PartitionOf below divides
// it, or BuildKernels splits it because no generator supports it), or where the user's fusion
// constraints require it.
//
// Tokamak's version of XLA's fusion passes formed them. Two passes replace fusions by their bodies,
// one before and one after these passes:
//
//   inline          replaces calls, composites and the fusions that the program already had, as in
//                   an HLO dump. It does not record what was in which fusion, so these fusions are
//                   not predetermined, except those that it keeps.
//   inline-fusions  replaces all fusions that exist then and tags their instructions (FusionTags,
//                   rewrite/pass.h). This class reads the tags.
//
// Tokamak's fusion passes follow the rules of D. Snider and R. Liang, "Operator Fusion in XLA:
// Analysis and Evaluation" (arXiv 2301.13062, 2023), not a particular commit of XLA; docs/paper.md
// compares.
class PredeterminedFusions {
 public:
  // The module and the tags must outlive it and must not change.
  PredeterminedFusions(const Module& module, const FusionTags& tags);

  // The instructions of a fusion are one region. Those of a horizontal fusion are several regions
  // that share a launch. Every other instruction that needs a kernel is its own region.
  //
  // A fusion is divided, so that each of its instructions is treated like these, if it contains
  //
  //   - an instruction that cannot be in a kernel (library call, host step, control flow) or a
  //     get-tuple-element; or
  //   - a partial update (IsPartialUpdate) that another instruction of the fusion uses, or whose
  //     operand 0 is computed in the fusion.
  KernelPartition PartitionOf(const Computation& computation, const Machine& machine) const;

 private:
  FusionTag TagOf(const Instr& instr) const;

  std::unordered_map<const Computation*, const std::vector<FusionTag>*> tags_;
};

}  // namespace tokamak
