#pragma once

// XLA's fusion passes as the paper describes them: D. Snider and R. Liang, "Operator Fusion in XLA:
// Analysis and Evaluation" (arXiv 2301.13062, 2023), not a particular commit of XLA. They decide by
// rules, edge by edge, without costs. `--fusion=rules` runs them for comparison; Tokamak's planner
// (src/fusion) uses nothing of this folder. docs/paper.md compares the two.
//
//   facts                 what the rules test: cheap and expensive ops, repeated reads, registers
//   fusion_rules          whether two instructions may be fused, and which rule rejects it
//                         (explain/rules.def has their names and meanings)
//   edit                  creates fusion instructions with their bodies
//   instruction_fusion    the passes, in the order of kPaperPipeline
//   fusion_merger
//   multi_output_fusion
//   horizontal_fusion
//   inline_fusions        replaces the fusions by their bodies, with tags
//   partition             makes kernels of the tagged instructions

#include "analysis/running_computations.h"
#include "xla_rules/edit.h"
#include "xla_rules/facts.h"
#include "xla_rules/fusion_rules.h"

namespace tokamak::fuse {

// Iterations of a pass over a computation. Chosen: a backstop for its run time, since most
// computations do not change after the second one.
inline constexpr int kMaxFusionIterations = 8;

// Base of the passes that create fusions: it bundles the rules, the editor and the decision log.
class Fuser {
 public:
  Fuser(Module& module, PassContext& context)
      : records_(context), rules_(module, context), editor_(module) {
    editor_.large_reduction = context.limits.fused_small_reduction;
  }
  void Finish() { editor_.Finish(); }

 protected:
  Records records_;
  FusionRules rules_;
  FusionEditor editor_;
};

// Runs a Fuser, which has Changed Run(Computation&), over all RunningComputations.
template <typename Pass>
Result<Changed> FuseAll(Module& module, PassContext& context) {
  Pass pass(module, context);
  Changed changed = Changed::kNo;
  for (Computation* computation : RunningComputations(module)) changed |= pass.Run(*computation);
  pass.Finish();
  return changed;
}

}  // namespace tokamak::fuse
