#include <algorithm>

#include "rewrite/pass_functions.h"
#include "xla_rules/fuser.h"

namespace tokamak {
namespace {

// Each user of a value is compared with at most this many others. Chosen: keeps the pass linear.
constexpr size_t kMostSiblings = 16;

class MultiOutputFuser : public fuse::Fuser {
 public:
  using Fuser::Fuser;

  Changed Run(Computation& computation) {
    Changed changed = Changed::kNo;
    for (int iteration = 0; iteration < fuse::kMaxFusionIterations; ++iteration) {
      Changed once = Changed::kNo;
      for (Instr* shared : computation.PostOrder())
        if (!shared->is_removed()) once |= JoinSiblings(*shared);
      for (Instr* producer : computation.PostOrder())
        if (!producer->is_removed()) once |= JoinWithUser(producer);
      changed |= once;
      if (once == Changed::kNo) break;
      computation.PutInOrder();
    }
    return changed;
  }

 private:
  Changed JoinSiblings(const Instr& shared) {
    Changed changed = Changed::kNo;
    if (!shared.shape().IsArray() || shared.shape().IsScalar()) return changed;
    std::vector<Instr*> users = KernelsAmong(fuse::DistinctUsers(shared));
    for (size_t i = 0; i < users.size(); ++i) {
      for (size_t j = i + 1; j < users.size() && j <= i + kMostSiblings; ++j) {
        if (Uses(*users[i], *users[j]) || Uses(*users[j], *users[i])) continue;
        if (!IsAllowed(*users[i], *users[j])) continue;
        records_.Moved(FusionRule::kSibling, *users[j], users[i], LabelOf(shared));
        users[i] = editor_.Join(users[i], users[j]);
        users.erase(users.begin() + static_cast<std::ptrdiff_t>(j--));
        changed = Changed::kYes;
      }
    }
    return changed;
  }

  // A value with other users: its kernel is merged into that of one user.
  Changed JoinWithUser(Instr* producer) {
    if (!IsKernel(*producer) || !producer->shape().IsArray()) return Changed::kNo;
    if (fuse::HasOneUser(*producer) || producer->users().empty()) return Changed::kNo;
    for (Instr* user : KernelsAmong(fuse::DistinctUsers(*producer))) {
      if (fuse::MaybeRejection rejection = rules_.MayEnter(*producer, *user)) {
        records_.RecordRejection(*rejection, *producer, user);
        continue;
      }
      if (!IsAllowed(*producer, *user)) continue;
      records_.Moved(FusionRule::kKeptAndUsed, *producer, user);
      editor_.Join(producer, user);
      return Changed::kYes;
    }
    return Changed::kNo;
  }

  bool IsAllowed(const Instr& a, const Instr& b) {
    fuse::MaybeRejection rejection = rules_.MayShareLoop(a, b);
    if (!rejection && !rules_.IsAcyclic(a, b)) rejection = fuse::Rejection{FusionRule::kCycle, ""};
    if (rejection) records_.RecordRejection(*rejection, a, &b);
    return !rejection;
  }

  // One depends on the other; JoinWithUser handles that case.
  static bool Uses(const Instr& user, const Instr& producer) {
    return std::ranges::count(user.operands(), &producer) > 0;
  }

  // An op without cost is not a kernel whose reads could be shared.
  static bool IsKernel(const Instr& instr) {
    return fuse::MayEnd(instr) && instr.op() != Op::kReshape && instr.op() != Op::kBitcast &&
           instr.op() != Op::kBroadcast;
  }
  static std::vector<Instr*> KernelsAmong(std::vector<Instr*> users) {
    std::erase_if(users, [](const Instr* user) { return !IsKernel(*user); });
    return users;
  }
};

}  // namespace

// XLA's multi-output fusion: kernels that read one array with the same loop shape become one kernel
// with several results; then a value that is stored for several users is computed in the kernel of
// one of them.
Result<Changed> MultiOutputFusion(Module& module, PassContext& context) {
  return fuse::FuseAll<MultiOutputFuser>(module, context);
}

}  // namespace tokamak
