#include "passes/passes.h"
#include "rewrite/fuse/fuser.h"

namespace tokamak {
namespace {

class Merger : public fuse::Fuser {
 public:
  using Fuser::Fuser;

  // Merged fusions are new, and looked at again.
  Changed Run(Computation& computation) {
    constexpr int kMostRounds = 8;
    Changed changed = Changed::kNo;
    for (int round = 0; round < kMostRounds; ++round) {
      Changed once = MergeAll(computation);
      changed |= once;
      if (once == Changed::kNo) break;
    }
    return changed;
  }

 private:
  Changed MergeAll(Computation& computation) {
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
};

}  // namespace

// XLA's fusion merger: a fusion of loops that holds nothing dear goes into all of its users, when
// all of them are fusions that can take it and no more bytes are moved than before; else into none.
Result<Changed> FusionMerger(Module& module, PassContext& context) {
  return fuse::FuseAll<Merger>(module, context);
}

}  // namespace tokamak
