#include "fusion/evaluated_move.h"

#include <algorithm>

#include "support/hash.h"

namespace tokamak {
namespace {

uint64_t MixedMove(uint64_t x) {
  Hasher hasher;
  hasher.Add(x);
  return hasher.digest();
}

}  // namespace

bool EvaluatedMove::IsWorthwhile() const {
  if (is_accepted) return true;
  size_t removed = move.change.removed.size(), added = move.change.added.size();
  double least = added > removed   ? kMinRelativeGainOfSplits
                 : added < removed ? 0
                                   : kMinRelativeGain;
  return gain_us() > least * before_us;
}

uint64_t MoveHasher::HashOf(const Move& move) {
  Hasher hasher;
  numbers_.Reset();
  hasher.Add(move.rule);
  // In a canonical order, so that the hash does not depend on group numbers.
  removed_.clear();
  for (size_t at = 0; at < move.change.removed.size(); ++at)
    removed_.push_back(
        {candidate_.GroupHash(move.change.removed[at]), at, move.change.removed[at]});
  std::sort(removed_.begin(), removed_.end());
  for (const auto& [hash, at, i] : removed_) {
    hasher.Add(hash);
    hasher.Add(candidate_.group(i).recomputed.size());
    for (const Instr* end : candidate_.InterfaceOf(i)) hasher.Add(numbers_.NumberOf(*end));
  }
  // How many of their instructions are distinct: common ones are computed once after a merge.
  uint32_t met = numbers_.size();
  if (removed_.size() > 1)
    for (const auto& [hash, at, i] : removed_)
      for (const Instr* instr : candidate_.region(i).instrs) numbers_.NumberOf(*instr);
  hasher.Add(numbers_.size() - met);
  uint64_t added = 0;
  for (const FusionGroup& group : move.change.added) {
    uint64_t roots = 0;
    for (const Instr* root : group.roots) roots += MixedMove(numbers_.NumberOf(*root));
    Hasher own;
    own.Add(group.recomputed.size());
    own.Add(roots);
    added += own.digest();
  }
  hasher.Add(added);
  // The position of an internal value that becomes a root or an input.
  if (candidate_.GroupOf(*move.subject) < 0 || move.rule == "fusion.load")
    hasher.Add(candidate_.CanonicalNumberIn(move.change.removed[0], *move.subject));
  return hasher.digest();
}

Decision DecisionOf(const EvaluatedMove& evaluated, Verdict verdict) {
  return {.pass = "fuse",
          .rule = evaluated.move.rule,
          .verdict = verdict,
          .subject = LabelOf(*evaluated.move.subject),
          .other = LabelOf(*evaluated.move.other_value),
          .origins = evaluated.move.subject->origins(),
          .before_us = evaluated.before_us,
          .after_us = evaluated.after_us};
}

void RejectedMoves::RejectForGood(const EvaluatedMove& evaluated, std::string reason) {
  hashes_.insert(evaluated.hash);
  NoteReason(evaluated, std::move(reason));
}

void RejectedMoves::NoteReason(const EvaluatedMove& evaluated, std::string reason) {
  std::vector<Rejection>& last = last_rejections_[evaluated.move.subject];
  auto same = [&](const Rejection& rejection) { return rejection.rule == evaluated.move.rule; };
  auto it = std::find_if(last.begin(), last.end(), same);
  if (it == last.end()) it = last.emplace(last.end());
  *it = {evaluated.move.rule, evaluated.move.other_value, evaluated.before_us, evaluated.after_us,
         std::move(reason)};
}

void RejectedMoves::LogRejections(DecisionLog& log) const {
  for (const Instr* subject : candidate_.order()) {
    if (candidate_.GroupOf(*subject) < 0) continue;
    for (const Rejection& rejection : last_rejections_[subject])
      log.Add({.pass = "fuse",
               .rule = rejection.rule,
               .verdict = Verdict::kRejected,
               .subject = LabelOf(*subject),
               .other = LabelOf(*rejection.other_value),
               .origins = subject->origins(),
               .before_us = rejection.before_us,
               .after_us = rejection.after_us,
               .because = rejection.reason});
  }
}

}  // namespace tokamak
