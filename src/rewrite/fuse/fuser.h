#pragma once

#include "analysis/running_computations.h"
#include "rewrite/fuse/edit.h"
#include "rewrite/fuse/facts.h"
#include "rewrite/fuse/fusion_rules.h"

namespace tokamak::fuse {

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
