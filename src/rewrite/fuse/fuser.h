#pragma once

#include "rewrite/fuse/edit.h"
#include "rewrite/fuse/facts.h"
#include "rewrite/fuse/judge.h"

namespace tokamak::fuse {

// What the passes that make fusions are made of: they judge, edit and tell why.
class Fuser {
 public:
  Fuser(Module& module, PassContext& context)
      : records_(context), judge_(module, context), editor_(module) {
    editor_.large_reduction = context.limits.fused_small_reduction;
  }
  void Finish() { editor_.Finish(); }

 protected:
  Records records_;
  Judge judge_;
  FusionEditor editor_;
};

// Runs a Fuser, which has Changed Run(Computation&), over all that runs step by step.
template <typename Pass>
Result<Changed> FuseAll(Module& module, PassContext& context) {
  Pass pass(module, context);
  Changed changed = Changed::kNo;
  for (Computation* computation : RunningComputations(module)) changed |= pass.Run(*computation);
  pass.Finish();
  return changed;
}

}  // namespace tokamak::fuse
