#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "passes/passes.h"
#include "rewrite/fuse/fuser.h"

namespace tokamak {
namespace {

using fuse::Judgement;

class InstructionFuser : public fuse::Fuser {
 public:
  using Fuser::Fuser;

  // Producers with one user, then those that have to be copied: until nothing changes, since what
  // became a fusion may take what it could not before.
  Changed Run(Computation& computation) {
    constexpr int kMostRounds = 8;
    Changed changed = Changed::kNo;
    for (int round = 0; round < kMostRounds; ++round) {
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
    places_.clear();
    refused_.clear();
    copied_.clear();
    copies_.clear();
    for (size_t i = 0; i < order.size(); ++i) places_[order[i]] = i;
    Changed changed = Changed::kNo;
    for (size_t i = order.size(); i-- > 0;) {
      Instr* user = order[i];
      if (user->is_removed() || !fuse::MayEnd(*user)) continue;
      while (Instr* producer = NextProducer(*user, copying)) {
        records_.Moved(copying ? FusionRule::kIntoAllUsers : FusionRule::kIntoUser, *producer,
                       user);
        if (copying) copied_.insert(producer);
        user = editor_.Fuse(producer, user);
        places_[user] = i;
        if (producer->users().empty() && computation.root() != producer)
          computation.Remove(producer);
        changed = Changed::kYes;
      }
      refused_.clear();
    }
    return changed;
  }

  // The operand that is computed last among those that may go into the user. Refusals are recorded
  // once for each pair.
  Instr* NextProducer(const Instr& user, bool copying) {
    std::vector<Instr*> operands = fuse::DistinctOperands(user);
    std::sort(operands.begin(), operands.end(),
              [&](const Instr* a, const Instr* b) { return places_.at(a) > places_.at(b); });
    for (Instr* producer : operands) {
      if (!IsCandidate(*producer, user, copying) || refused_.contains(producer)) continue;
      Judgement refused = Ask(*producer, user, copying);
      if (!refused) return producer;
      refused_.insert(producer);
      records_.Refused(*refused, *producer, &user);
    }
    return nullptr;
  }

  bool IsCandidate(const Instr& producer, const Instr& user, bool copying) const {
    if (producer.op() == Op::kParameter || producer.op() == Op::kGetTupleElement) return false;
    // A number stands in the code of whatever fusion needs it.
    if (producer.op() == Op::kConstant)
      return !producer.shape().IsScalar() || user.op() == Op::kFusion;
    return (fuse::HasOneUser(producer) && !copied_.contains(&producer)) != copying;
  }

  Judgement Ask(const Instr& producer, const Instr& user, bool copying) {
    if (producer.op() == Op::kFusion)
      return fuse::Refusal{FusionRule::kFusionProducer, "the merger's"};
    Judgement refused = judge_.MayEnter(producer, user);
    if (refused || !copying || producer.op() == Op::kConstant) return refused;
    // Asked once for all users.
    auto [it, is_new] = copies_.try_emplace(&producer);
    if (is_new) it->second = judge_.MayBeCopied(producer);
    return it->second;
  }

  std::unordered_map<const Instr*, size_t> places_;
  std::unordered_map<const Instr*, Judgement> copies_;
  std::unordered_set<const Instr*> copied_;   // into some user; the last one is no other
  std::unordered_set<const Instr*> refused_;  // by the user that is looked at
};

}  // namespace

// XLA's instruction fusion, as the paper describes it: from the results to the parameters, each
// instruction that has one user is computed inside of it unless a rule refuses; then each that has
// several and is cheap enough to be computed in all of them. What is made are fusions, which
// `inline` dissolves again.
Result<Changed> InstructionFusion(Module& module, PassContext& context) {
  return fuse::FuseAll<InstructionFuser>(module, context);
}

}  // namespace tokamak
