#include "rewrite/pass_functions.h"
#include "xla_rules/fuser.h"

namespace tokamak {
namespace {

class ProducerFusionMerger : public fuse::Fuser {
 public:
  using Fuser::Fuser;

  // Merged fusions are new and are visited again.
  Changed Run(Computation& computation) {
    Changed changed = Changed::kNo;
    for (int iteration = 0; iteration < fuse::kMaxFusionIterations; ++iteration) {
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
      if (fuse::MaybeRejection rejection = rules_.MayBeMerged(*fusion)) {
        records_.RecordRejection(*rejection, *fusion, nullptr);
        continue;
      }
      changed |= Merge(fusion, computation);
    }
    return changed;
  }

  Changed Merge(Instr* fusion, Computation& computation) {
    Changed changed = Changed::kNo;
    for (Instr* user : fuse::DistinctUsers(*fusion)) {
      if (rules_.MayEnter(*fusion, *user)) continue;  // the all-or-none rule is disabled
      records_.Moved(FusionRule::kMerged, *fusion, user);
      editor_.Fuse(fusion, user);
      changed = Changed::kYes;
    }
    if (fusion->users().empty()) computation.Remove(fusion);
    return changed;
  }
};

}  // namespace

// XLA's fusion merger: merges a loop fusion without expensive ops into all of its users, if all of
// them are fusions that can absorb it and the memory traffic does not grow; otherwise into none.
Result<Changed> FusionMerger(Module& module, PassContext& context) {
  return fuse::FuseAll<ProducerFusionMerger>(module, context);
}

}  // namespace tokamak
