#pragma once

#include <unordered_map>
#include <vector>

#include "cost/machine.h"
#include "fusion/kernel_partition.h"
#include "ir/ir.h"
#include "rewrite/pass.h"

namespace tokamak {

// The fusions of a module that were formed before planning (FusionMode::kXlaPasses). No planner
// improves them; they change only where kernels or the user's fusion constraints require it.
// Tokamak's version of XLA's fusion passes formed them. Fusions that the program already had, such
// as those of an HLO dump, are included only if the pass inline has not inlined them.
//
// The passes follow the rules of D. Snider and R. Liang, "Operator Fusion in XLA: Analysis and
// Evaluation" (arXiv 2301.13062, 2023), not a particular commit of XLA; docs/paper.md compares.
//
// The pass inline-fusions has replaced each fusion by its body and tagged the instructions.
class PredeterminedFusions {
 public:
  // The module and the tags must outlive it and must not change.
  PredeterminedFusions(const Module& module, const FusionTags& tags);

  // The instructions of a fusion are one region. Those of a horizontal fusion are several regions
  // that share a launch. Every other instruction that needs a kernel is its own region.
  KernelPartition PartitionOf(const Computation& computation, const Machine& machine) const;

 private:
  FusionTag TagOf(const Instr& instr) const;

  std::unordered_map<const Computation*, const std::vector<FusionTag>*> tags_;
};

}  // namespace tokamak
