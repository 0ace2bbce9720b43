#include "fusion/priced_move.h"

#include <algorithm>

#include "support/hash.h"

namespace tokamak {
namespace {

// A move pays when it saves this share of what it touches. One that makes more kernels of fewer
// saves no bytes and no launch that is certain, only work as far as it is counted right: prices err
// by a fifth (docs/results/model.md).
constexpr double kLeastShare = 0.02, kLeastShareOfCuts = 0.2;

}  // namespace

bool PricedMove::pays() const {
  bool cuts = move.change.added.size() > move.change.removed.size();
  return gain() > (cuts ? kLeastShareOfCuts : kLeastShare) * before;
}

uint64_t MoveHasher::Of(const Move& move) {
  Hasher hasher;
  numbers_.Begin();
  hasher.Add(move.rule);
  for (int i : move.change.removed) {
    hasher.Add(draft_.HashOf(i));
    hasher.Add(draft_.group(i).again.size());
    for (const Instr* input : draft_.region(i).inputs) hasher.Add(numbers_.Of(*input));
    for (const Instr* root : draft_.region(i).roots) hasher.Add(numbers_.Of(*root));
  }
  for (const Group& group : move.change.added) {
    hasher.Add(group.again.size());
    for (const Instr* root : group.roots) hasher.Add(numbers_.Of(*root));
  }
  // Where something inside begins a group of its own.
  if (draft_.HomeOf(*move.subject) < 0) {
    const std::vector<const Instr*>& instrs = draft_.region(move.change.removed[0]).instrs;
    auto at = std::find(instrs.begin(), instrs.end(), move.subject);
    hasher.Add(static_cast<uint64_t>(at - instrs.begin()));
  }
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
