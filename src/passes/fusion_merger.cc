#include "passes/passes.h"
#include "rewrite/fuse/edit.h"
#include "rewrite/fuse/facts.h"
#include "rewrite/fuse/judge.h"

namespace tokamak {
namespace {

class Merger {
 public:
  Merger(Module& module, PassContext& context)
      : records_(context), judge_(module, context), editor_(module) {
    editor_.large_reduction = context.limits.fused_small_reduction;
  }

  Changed Run(Computation& computation) {
    Changed changed = Changed::kNo;
    for (Instr* fusion : computation.PostOrder()) {
      if (fusion->is_removed() || !fuse::IsFusion(*fusion) || fusion->users().empty()) continue;
      if (fuse::Judgement refused = judge_.MayBeMerged(*fusion)) {
        records_.Refused(*refused, *fusion, nullptr);
        continue;
      }
      changed |= Merge(fusion, computation);
    }
    return changed;
  }

  void Finish() { editor_.Finish(); }

 private:
  Changed Merge(Instr* fusion, Computation& computation) {
    Changed changed = Changed::kNo;
    for (Instr* user : fuse::DistinctUsers(*fusion)) {
      if (judge_.MayEnter(*fusion, *user)) continue;  // all-or-none is lifted
      records_.Moved(FusionRule::kMerged, *fusion, user);
      editor_.Fuse(fusion, user);
      changed = Changed::kYes;
    }
    if (fusion->users().empty()) computation.Remove(fusion);
    return changed;
  }

  fuse::Records records_;
  fuse::Judge judge_;
  fuse::Editor editor_;
};

}  // namespace

// XLA's fusion merger: a fusion of loops that holds nothing dear goes into all of its users, when
// all of them are fusions that can take it and no more bytes are moved than before; else into none.
Result<Changed> FusionMerger(Module& module, PassContext& context) {
  Merger merger(module, context);
  Changed changed = Changed::kNo;
  for (Computation* computation : fuse::RunningComputations(module)) {
    // Merged fusions are new, and looked at again.
    constexpr int kMostRounds = 8;
    for (int round = 0; round < kMostRounds; ++round) {
      Changed once = merger.Run(*computation);
      changed |= once;
      if (once == Changed::kNo) break;
    }
  }
  merger.Finish();
  return changed;
}

}  // namespace tokamak
