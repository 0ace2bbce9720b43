#include "fusion/move_policy.h"

#include <algorithm>

#include <fmt/format.h>

#include "support/hash.h"

namespace tokamak {
namespace {

double BytesOfValues(const std::vector<const Instr*>& values) {
  double bytes = 0;
  for (const Instr* value : values)
    for (const Shape& shape : ResultShapesOf(value->shape()))
      if (shape.IsArray()) bytes += static_cast<double>(shape.ByteSize());
  return bytes;
}

double TrafficOf(const FusedRegion& region) {
  return BytesOfValues(region.inputs) + BytesOfValues(region.roots);
}

// Whether it replaces a kernel by smaller ones.
bool TakesApart(std::string_view rule) {
  return rule == "fusion.split" || rule == "fusion.store" || rule == "fusion.load";
}

MoveFacts FactsOf(const EvaluatedMove& evaluated, const CandidatePlan& candidate,
                  const std::vector<FusedRegion>& regions, RegionCosts& costs) {
  const Move& move = evaluated.move;
  MoveFacts facts{.rule = move.rule, .subject = move.subject, .other = move.other_value};
  facts.before_us = evaluated.before_us;
  facts.after_us = evaluated.after_us;
  int producer = candidate.GroupOf(*move.subject);
  if (producer < 0 && !candidate.ComputedIn(*move.subject).empty())
    producer = candidate.ComputedIn(*move.subject)[0];
  for (int group : move.change.removed) {
    const FusedRegion& region = candidate.region(group);
    std::vector<const Instr*>& instrs = group == producer ? facts.producer : facts.consumers;
    instrs.insert(instrs.end(), region.instrs.begin(), region.instrs.end());
    facts.saved_bytes += TrafficOf(region);
  }
  // A kernel that stays, because others read the value too, is not replaced.
  if (facts.producer.empty() && producer >= 0 && candidate.IsLive(producer))
    facts.producer = candidate.region(producer).instrs;
  facts.kernels_before = static_cast<int>(move.change.removed.size());
  facts.kernels_after = static_cast<int>(move.change.added.size());
  for (size_t i = 0; i < move.change.added.size(); ++i) {
    facts.saved_bytes -= TrafficOf(regions[i]);
    facts.registers = std::max(facts.registers, costs.EstimatedRegisters(regions[i]));
    facts.instructions = std::max(facts.instructions, regions[i].instrs.size());
  }
  return facts;
}

}  // namespace

uint64_t MovePolicy::HashOf(uint64_t structural, const Move& move) {
  Hasher hasher;
  hasher.Add(structural);
  hasher.Add(static_cast<uint64_t>(move.subject->id()));
  hasher.Add(static_cast<uint64_t>(move.other_value->id()));
  return hasher.digest();
}

bool MovePolicy::Allows(EvaluatedMove& evaluated, const CandidatePlan& candidate,
                        const std::vector<FusedRegion>& regions, RegionCosts& costs,
                        DecisionLog& log) {
  PolicyAnswer answer = extensions_.Decide(FactsOf(evaluated, candidate, regions, costs));
  evaluated.policy = answer.policy;
  if (answer.opinion != Opinion::kNone) influenced_ = true;
  const std::vector<int>& removed = evaluated.move.change.removed;
  bool undoes = TakesApart(evaluated.move.rule) &&
                std::any_of(removed.begin(), removed.end(),
                            [&](int group) { return accepted_groups_.contains(group); });
  switch (answer.opinion) {
    case Opinion::kVeto:
      Log("policy.veto", Verdict::kRejected, evaluated,
          fmt::format("the policy {} vetoes {}", answer.policy, evaluated.move.rule), log);
      return false;
    case Opinion::kAccept:
      evaluated.is_accepted = true;
      return true;
    case Opinion::kWeight:
      evaluated.weight = answer.weight;
      break;
    case Opinion::kNone:
      break;
  }
  return !undoes;
}

void MovePolicy::Made(const EvaluatedMove& evaluated, size_t first, DecisionLog& log) {
  const Change& change = evaluated.move.change;
  bool held = evaluated.is_accepted ||
              std::any_of(change.removed.begin(), change.removed.end(),
                          [&](int group) { return accepted_groups_.contains(group); });
  for (size_t i = 0; held && i < change.added.size(); ++i)
    accepted_groups_.insert(static_cast<int>(first + i));
  if (evaluated.is_accepted)
    Log("policy.accept", Verdict::kAccepted, evaluated,
        fmt::format("the policy {} accepts {}", evaluated.policy, evaluated.move.rule), log);
  else if (evaluated.weight != 1)
    Log("policy.weight", Verdict::kAccepted, evaluated,
        fmt::format("the policy {} weighs {} by {:g}", evaluated.policy, evaluated.move.rule,
                    evaluated.weight),
        log);
}

void MovePolicy::Impossible(const EvaluatedMove& evaluated, const std::string& why,
                            DecisionLog& log) {
  if (evaluated.is_accepted)
    Log("policy.accept", Verdict::kRejected, evaluated,
        fmt::format("the policy {} accepts {}, which is impossible: {}", evaluated.policy,
                    evaluated.move.rule, why),
        log);
  // Without the weight, the move would have been made.
  EvaluatedMove unweighted = evaluated;
  unweighted.weight = 1;
  if (evaluated.weight != 1 && unweighted.IsWorthwhile() && !evaluated.IsWorthwhile())
    Log("policy.weight", Verdict::kRejected, evaluated,
        fmt::format("the policy {} weighs {} by {:g}", evaluated.policy, evaluated.move.rule,
                    evaluated.weight),
        log);
}

void MovePolicy::Log(std::string_view rule, Verdict verdict, const EvaluatedMove& evaluated,
                     std::string because, DecisionLog& log) {
  const Move& move = evaluated.move;
  if (!logged_.insert({rule, move.subject, move.other_value, move.rule}).second) return;
  Decision decision = DecisionOf(evaluated, verdict);
  decision.rule = rule;
  decision.because = std::move(because);
  log.Add(std::move(decision));
}

}  // namespace tokamak
