#pragma once

// The opinions of fusion policies about the moves of one candidate plan.

#include <set>
#include <string>
#include <tuple>

#include "fusion/candidate_plan.h"
#include "fusion/evaluated_move.h"
#include "fusion/extensions.h"
#include "fusion/region_costs.h"

namespace tokamak {

// One per candidate plan: it remembers which groups exist because a policy accepted them.
class MovePolicy {
 public:
  explicit MovePolicy(const PlannerExtensions& extensions) : extensions_(extensions) {}

  // Asks about a move whose costs have been estimated, and stores the answer in it. `regions`:
  // those of the added groups; there may be more. False if the move is vetoed, or would undo what a
  // policy accepted.
  bool Allows(EvaluatedMove& evaluated, const CandidatePlan& candidate,
              const std::vector<FusedRegion>& regions, RegionCosts& costs, DecisionLog& log);
  // Structurally equal moves may get different answers, since names and source lines differ. The
  // hash of this very move.
  static uint64_t HashOf(uint64_t structural, const Move& move);
  // The move was made: its groups are numbered from `first`. Logs what the policy contributed.
  void Made(const EvaluatedMove& evaluated, size_t first, DecisionLog& log);
  // A move that a policy accepted is impossible.
  void Impossible(const EvaluatedMove& evaluated, const std::string& why, DecisionLog& log);
  // Whether any policy had an opinion.
  bool influenced() const { return influenced_; }

 private:
  void Log(std::string_view rule, Verdict verdict, const EvaluatedMove& evaluated,
           std::string because, DecisionLog& log);

  const PlannerExtensions& extensions_;
  bool influenced_ = false;
  std::set<int> accepted_groups_;  // and the groups that have replaced them
  // Records made so far: rule, subject, other, move.
  std::set<std::tuple<std::string_view, const Instr*, const Instr*, std::string_view>> logged_;
};

}  // namespace tokamak
