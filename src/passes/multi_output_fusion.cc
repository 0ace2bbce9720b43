#include <algorithm>

#include "passes/passes.h"
#include "rewrite/fuse/fuser.h"

namespace tokamak {
namespace {

// Of the users of one value, each is compared with so many others.
constexpr size_t kMostSiblings = 16;

class MultiOutputFuser : public fuse::Fuser {
 public:
  using Fuser::Fuser;

  Changed Run(Computation& computation) {
    constexpr int kMostRounds = 8;
    Changed changed = Changed::kNo;
    for (int round = 0; round < kMostRounds; ++round) {
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
        if (!Judged(*users[i], *users[j])) continue;
        records_.Moved(FusionRule::kSibling, *users[j], users[i], LabelOf(shared));
        users[i] = editor_.Join(users[i], users[j]);
        users.erase(users.begin() + static_cast<std::ptrdiff_t>(j--));
        changed = Changed::kYes;
      }
    }
    return changed;
  }

  // A value that others need besides: its kernel becomes that of one user.
  Changed JoinWithUser(Instr* producer) {
    if (!IsKernel(*producer) || !producer->shape().IsArray()) return Changed::kNo;
    if (fuse::HasOneUser(*producer) || producer->users().empty()) return Changed::kNo;
    for (Instr* user : KernelsAmong(fuse::DistinctUsers(*producer))) {
      if (fuse::Judgement refused = judge_.MayEnter(*producer, *user)) {
        records_.Refused(*refused, *producer, user);
        continue;
      }
      if (!Judged(*producer, *user)) continue;
      records_.Moved(FusionRule::kKeptAndUsed, *producer, user);
      editor_.Join(producer, user);
      return Changed::kYes;
    }
    return Changed::kNo;
  }

  bool Judged(const Instr& a, const Instr& b) {
    fuse::Judgement refused = judge_.MayShareLoop(a, b);
    if (!refused && !judge_.IsAcyclic(a, b)) refused = fuse::Refusal{FusionRule::kCycle, ""};
    if (refused) records_.Refused(*refused, a, &b);
    return !refused;
  }

  // One of them needs the other: that is for JoinWithUser.
  static bool Uses(const Instr& user, const Instr& producer) {
    return std::ranges::count(user.operands(), &producer) > 0;
  }

  // What is free to compute is no kernel whose reads could be shared.
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

// XLA's multi-output fusion: kernels that read one array and run over the same loop become one with
// several results; then a value that is stored for others is computed in the kernel of a user.
Result<Changed> MultiOutputFusion(Module& module, PassContext& context) {
  return fuse::FuseAll<MultiOutputFuser>(module, context);
}

}  // namespace tokamak
