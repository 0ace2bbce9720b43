#include "fusion/priced_move.h"

#include <algorithm>

#include "support/hash.h"

namespace tokamak {
namespace {

// A move pays when it saves this share of what it touches. One that makes more kernels of fewer
// saves no bytes and no launch that is certain, only work as far as it is counted right: prices err
// by a fifth (docs/results/model.md). One that makes fewer of more need save next to nothing: what
// lies between two folds of a row is little, and the folds become one kernel when it is gone.
constexpr double kLeastShare = 0.02, kLeastShareOfCuts = 0.2;

uint64_t MixedMove(uint64_t x) {
  Hasher hasher;
  hasher.Add(x);
  return hasher.digest();
}

}  // namespace

bool PricedMove::pays() const {
  size_t removed = move.change.removed.size(), added = move.change.added.size();
  double least = added > removed ? kLeastShareOfCuts : added < removed ? 0 : kLeastShare;
  return gain() > least * before;
}

uint64_t MoveHasher::Of(const Move& move) {
  Hasher hasher;
  numbers_.Begin();
  hasher.Add(move.rule);
  // In an order that follows from what they compute, like all that is hashed here.
  removed_.clear();
  for (size_t at = 0; at < move.change.removed.size(); ++at)
    removed_.push_back({draft_.HashOf(move.change.removed[at]), at, move.change.removed[at]});
  std::sort(removed_.begin(), removed_.end());
  for (const auto& [hash, at, i] : removed_) {
    hasher.Add(hash);
    hasher.Add(draft_.group(i).again.size());
    for (const Instr* end : draft_.EndsOf(i)) hasher.Add(numbers_.Of(*end));
  }
  // What several of them compute is computed once when they are one.
  uint32_t met = numbers_.size();
  if (removed_.size() > 1)
    for (const auto& [hash, at, i] : removed_)
      for (const Instr* instr : draft_.region(i).instrs) numbers_.Of(*instr);
  hasher.Add(numbers_.size() - met);
  uint64_t added = 0;
  for (const Group& group : move.change.added) {
    uint64_t roots = 0;
    for (const Instr* root : group.roots) roots += MixedMove(numbers_.Of(*root));
    Hasher own;
    own.Add(group.again.size());
    own.Add(roots);
    added += own.digest();
  }
  hasher.Add(added);
  // Where something inside begins a group of its own.
  if (draft_.HomeOf(*move.subject) < 0)
    hasher.Add(draft_.NumberIn(move.change.removed[0], *move.subject));
  return hasher.digest();
}

Decision RecordOf(const PricedMove& priced, Verdict verdict) {
  return {.pass = "fuse",
          .rule = priced.move.rule,
          .verdict = verdict,
          .subject = LabelOf(*priced.move.subject),
          .other = LabelOf(*priced.move.other),
          .origins = priced.move.subject->origins(),
          .before_us = priced.before,
          .after_us = priced.after};
}

void Refusals::Add(const PricedMove& priced, std::string because) {
  hashes_.insert(priced.hash);
  Record(priced, std::move(because));
}

void Refusals::Record(const PricedMove& priced, std::string because) {
  std::vector<Refusal>& last = last_[priced.move.subject];
  auto same = [&](const Refusal& refusal) { return refusal.rule == priced.move.rule; };
  auto it = std::find_if(last.begin(), last.end(), same);
  if (it == last.end()) it = last.emplace(last.end());
  *it = {priced.move.rule, priced.move.other, priced.before, priced.after, std::move(because)};
}

void Refusals::AddTo(DecisionLog& log) const {
  for (const Instr* subject : draft_.order()) {
    if (draft_.HomeOf(*subject) < 0) continue;
    for (const Refusal& refusal : last_[subject])
      log.Add({.pass = "fuse",
               .rule = refusal.rule,
               .verdict = Verdict::kRejected,
               .subject = LabelOf(*subject),
               .other = LabelOf(*refusal.other),
               .origins = subject->origins(),
               .before_us = refusal.before,
               .after_us = refusal.after,
               .because = refusal.because});
  }
}

}  // namespace tokamak
