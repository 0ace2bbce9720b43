#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "rewrite/pass_functions.h"
#include "xla_rules/fuser.h"

namespace tokamak {
namespace {

using fuse::MaybeRejection;

class InstructionFuser : public fuse::Fuser {
 public:
  using Fuser::Fuser;

  // First producers with one user, then those that must be duplicated. Iterates until nothing
  // changes, because a new fusion may absorb more producers than its root could.
  Changed Run(Computation& computation) {
    Changed changed = Changed::kNo;
    for (int iteration = 0; iteration < fuse::kMaxFusionIterations; ++iteration) {
      Changed once = Walk(computation, false);
      once |= Walk(computation, true);
      changed |= once;
      if (once == Changed::kNo) break;
      computation.PutInOrder();
    }
    return changed;
  }

 private:
  Changed Walk(Computation& computation, bool copying) {
    std::vector<Instr*> order = computation.PostOrder();
    positions_.clear();
    rejected_.clear();
    copied_.clear();
    copies_.clear();
    for (size_t i = 0; i < order.size(); ++i) positions_[order[i]] = i;
    Changed changed = Changed::kNo;
    for (size_t i = order.size(); i-- > 0;) {
      Instr* user = order[i];
      if (user->is_removed() || !fuse::MayEnd(*user)) continue;
      while (Instr* producer = NextProducer(*user, copying)) {
        records_.Moved(copying ? FusionRule::kIntoAllUsers : FusionRule::kIntoUser, *producer,
                       user);
        if (copying) copied_.insert(producer);
        user = editor_.Fuse(producer, user);
        positions_[user] = i;
        if (producer->users().empty() && computation.root() != producer)
          computation.Remove(producer);
        changed = Changed::kYes;
      }
      rejected_.clear();
    }
    return changed;
  }

  // The operand that is computed last among those that may be fused into the user. Each pair is
  // recorded as rejected at most once.
  Instr* NextProducer(const Instr& user, bool copying) {
    std::vector<Instr*> operands = fuse::DistinctOperands(user);
    std::sort(operands.begin(), operands.end(),
              [&](const Instr* a, const Instr* b) { return positions_.at(a) > positions_.at(b); });
    for (Instr* producer : operands) {
      if (!IsCandidate(*producer, user, copying) || rejected_.contains(producer)) continue;
      MaybeRejection rejection = Ask(*producer, user, copying);
      if (!rejection) return producer;
      rejected_.insert(producer);
      records_.RecordRejection(*rejection, *producer, &user);
    }
    return nullptr;
  }

  bool IsCandidate(const Instr& producer, const Instr& user, bool copying) const {
    if (producer.op() == Op::kParameter || producer.op() == Op::kGetTupleElement) return false;
    // A scalar constant is emitted as an immediate in every fusion that uses it.
    if (producer.op() == Op::kConstant)
      return !producer.shape().IsScalar() || user.op() == Op::kFusion;
    return (fuse::HasOneUser(producer) && !copied_.contains(&producer)) != copying;
  }

  MaybeRejection Ask(const Instr& producer, const Instr& user, bool copying) {
    if (producer.op() == Op::kFusion)
      return fuse::Rejection{FusionRule::kFusionProducer, "the merger's"};
    MaybeRejection rejection = rules_.MayEnter(producer, user);
    if (rejection || !copying || producer.op() == Op::kConstant) return rejection;
    // Evaluated once for all users.
    auto [it, is_new] = copies_.try_emplace(&producer);
    if (is_new) it->second = rules_.MayBeCopied(producer);
    return it->second;
  }

  std::unordered_map<const Instr*, size_t> positions_;
  std::unordered_map<const Instr*, MaybeRejection> copies_;
  std::unordered_set<const Instr*> copied_;    // duplicated before, so its last user does not count
                                               // as an only user
  std::unordered_set<const Instr*> rejected_;  // rejected for the current user
};

}  // namespace

// XLA's instruction fusion (arXiv 2301.13062): from the results to the parameters, fuses each
// instruction with one user into that user unless a rule rejects it; then duplicates each cheap
// instruction with several users into all of them. It creates fusion instructions, which `inline`
// dissolves again.
Result<Changed> InstructionFusion(Module& module, PassContext& context) {
  return fuse::FuseAll<InstructionFuser>(module, context);
}

}  // namespace tokamak
