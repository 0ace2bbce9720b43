#include "fusion/evaluated_move.h"

#include <algorithm>

#include "support/hash.h"

namespace tokamak {
namespace {

// A move pays if it saves more than this fraction of the cost of the groups that it replaces.
// kMinFraction: chosen, for a move that keeps the number of kernels. kMinFractionOfCuts: a move
// that adds kernels saves neither bytes nor launches for certain, only work, and only as far as the
// cost model is right. So it must save more than the model's median error (bound 20 %,
// docs/results/model.md). A move that removes kernels may save next to nothing: the values between
// two reductions of a row are small, but without them the reductions can become one kernel.
constexpr double kMinFraction = 0.02, kMinFractionOfCuts = 0.2;

uint64_t MixedMove(uint64_t x) {
  Hasher hasher;
  hasher.Add(x);
  return hasher.digest();
}

}  // namespace

bool EvaluatedMove::pays() const {
  size_t removed = move.change.removed.size(), added = move.change.added.size();
  double least = added > removed ? kMinFractionOfCuts : added < removed ? 0 : kMinFraction;
  return gain() > least * before;
}

uint64_t MoveHasher::Of(const Move& move) {
  Hasher hasher;
  numbers_.Begin();
  hasher.Add(move.rule);
  // In a canonical order, so that the hash does not depend on group numbers.
  removed_.clear();
  for (size_t at = 0; at < move.change.removed.size(); ++at)
    removed_.push_back({candidate_.HashOf(move.change.removed[at]), at, move.change.removed[at]});
  std::sort(removed_.begin(), removed_.end());
  for (const auto& [hash, at, i] : removed_) {
    hasher.Add(hash);
    hasher.Add(candidate_.group(i).recomputed.size());
    for (const Instr* end : candidate_.InterfaceOf(i)) hasher.Add(numbers_.Of(*end));
  }
  // How many of their instructions are distinct: common ones are computed once after a merge.
  uint32_t met = numbers_.size();
  if (removed_.size() > 1)
    for (const auto& [hash, at, i] : removed_)
      for (const Instr* instr : candidate_.region(i).instrs) numbers_.Of(*instr);
  hasher.Add(numbers_.size() - met);
  uint64_t added = 0;
  for (const FusionGroup& group : move.change.added) {
    uint64_t roots = 0;
    for (const Instr* root : group.roots) roots += MixedMove(numbers_.Of(*root));
    Hasher own;
    own.Add(group.recomputed.size());
    own.Add(roots);
    added += own.digest();
  }
  hasher.Add(added);
  // The position of an internal value that becomes a root.
  if (candidate_.GroupOf(*move.subject) < 0)
    hasher.Add(candidate_.NumberIn(move.change.removed[0], *move.subject));
  return hasher.digest();
}

Decision RecordOf(const EvaluatedMove& evaluated, Verdict verdict) {
  return {.pass = "fuse",
          .rule = evaluated.move.rule,
          .verdict = verdict,
          .subject = LabelOf(*evaluated.move.subject),
          .other = LabelOf(*evaluated.move.other),
          .origins = evaluated.move.subject->origins(),
          .before_us = evaluated.before,
          .after_us = evaluated.after};
}

void RejectedMoves::Add(const EvaluatedMove& evaluated, std::string because) {
  hashes_.insert(evaluated.hash);
  Record(evaluated, std::move(because));
}

void RejectedMoves::Record(const EvaluatedMove& evaluated, std::string because) {
  std::vector<Rejection>& last = last_[evaluated.move.subject];
  auto same = [&](const Rejection& reason) { return reason.rule == evaluated.move.rule; };
  auto it = std::find_if(last.begin(), last.end(), same);
  if (it == last.end()) it = last.emplace(last.end());
  *it = {evaluated.move.rule, evaluated.move.other, evaluated.before, evaluated.after,
         std::move(because)};
}

void RejectedMoves::AddTo(DecisionLog& log) const {
  for (const Instr* subject : candidate_.order()) {
    if (candidate_.GroupOf(*subject) < 0) continue;
    for (const Rejection& reason : last_[subject])
      log.Add({.pass = "fuse",
               .rule = reason.rule,
               .verdict = Verdict::kRejected,
               .subject = LabelOf(*subject),
               .other = LabelOf(*reason.other),
               .origins = subject->origins(),
               .before_us = reason.before,
               .after_us = reason.after,
               .because = reason.because});
  }
}

}  // namespace tokamak
