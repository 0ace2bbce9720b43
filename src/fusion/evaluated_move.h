#pragma once

// Moves with their costs, the criterion by which the greedy planner and the search accept them, and
// the set of rejected moves. Structurally equal moves share one evaluation: in a model of 12
// identical layers, a move that was rejected in one layer is not evaluated in the other 11.

#include <string>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "explain/decision.h"
#include "fusion/candidate_plan.h"
#include "fusion/moves.h"
#include "fusion/region_hash.h"

namespace tokamak {

// The acceptance criterion: a move is worthwhile if it saves more than this fraction of the cost of
// the groups that it replaces.
//
//   fewer kernels   0: any gain is enough, because a small gain may enable a large one. A value
//                   between two reductions of a row is small, so not storing it saves little. But
//                   the reductions can become one kernel only if it is not stored.
//   as many         kMinRelativeGain. Chosen: a smaller difference is noise of the model, and moves
//                   back and forth would not end (not measured).
//   more kernels    kMinRelativeGainOfSplits, for fusion.split and fusion.store. Such a move
//                   certainly adds stores and launches; only the cost model says that it saves
//                   computation. So it must save more than the model's median error, whose bound is
//                   20 % (docs/results/model.md).
inline constexpr double kMinRelativeGain = 0.02, kMinRelativeGainOfSplits = 0.2;

// Microseconds: the gain of a move that a policy accepts. Chosen: more than any program takes, so
// that it is made first.
inline constexpr double kGainOfAccepted = 1e12;

// A move with the cost in microseconds of the groups that it replaces and of those that replace
// them. The greedy planner fills in estimates, the search first estimates and then modeled costs
// (plan.h).
struct EvaluatedMove {
  Move move;
  uint64_t hash = 0;  // MoveHasher::HashOf(move)
  double before_us = 0, after_us = 0;
  // The opinion of a policy (move_policy.h): the cost after the move is divided by the weight.
  double weight = 1;
  bool is_accepted = false;  // made whatever it costs, and before all others
  std::string policy = {};   // its name

  double gain_us() const { return is_accepted ? kGainOfAccepted : before_us - after_us / weight; }
  // Whether the move meets the acceptance criterion above.
  bool IsWorthwhile() const;
};

// Hashes moves. The hash is equal for moves of the same rule if all these conditions hold:
//
//   - the groups that they replace have equal structural hashes (region_hash.h);
//   - these groups are connected in the same pattern, which says which input of a group is also an
//     input or a root of another one;
//   - these groups together have the same number of distinct instructions;
//   - the new groups have corresponding roots;
//   - corresponding groups, replaced and new, have the same number of recomputed values;
//   - a subject that no group stores, or that the first replaced group computes only to load it
//     instead, has the same canonical number in that group.
//
// It does not matter which arrays the inputs and roots are, so moves of identical layers have equal
// hashes.
//
// The hash counts the distinct instructions of the groups but does not compare which ones the
// groups have in common, so moves with equal hashes may differ in cost. That loss is accepted: a
// move is skipped if one with its hash was rejected, and the greedy planner queues a move by the
// cost of another one with its hash.
class MoveHasher {
 public:
  explicit MoveHasher(const CandidatePlan& candidate)
      : candidate_(candidate), numbers_(candidate.computation()) {}
  uint64_t HashOf(const Move& move);

 private:
  const CandidatePlan& candidate_;
  Numbering numbers_;
  std::vector<std::tuple<uint64_t, size_t, int>> removed_;  // hash, index in change, group; scratch
};

// The log entry for a move.
Decision DecisionOf(const EvaluatedMove& evaluated, Verdict verdict);

// Rejected moves. Per subject (Move::subject), the last rejection of each rule is kept: for values
// that are still stored at the end, the log says why.
class RejectedMoves {
 public:
  explicit RejectedMoves(const CandidatePlan& candidate)
      : candidate_(candidate), last_rejections_(candidate.computation()) {}

  // Whether a move with this hash was rejected for good.
  bool Has(uint64_t hash) const { return hashes_.contains(hash); }
  // Keeps the reason, and moves with the same hash are not evaluated again.
  void RejectForGood(const EvaluatedMove& evaluated, std::string reason);
  // Keeps the reason only: moves with the same hash are still evaluated.
  void NoteReason(const EvaluatedMove& evaluated, std::string reason);
  // Logs the rejections of all values that are still stored.
  void LogRejections(DecisionLog& log) const;

 private:
  struct Rejection {
    std::string_view rule;
    const Instr* other_value;
    double before_us, after_us;
    std::string reason;
  };
  const CandidatePlan& candidate_;
  std::unordered_set<uint64_t> hashes_;
  InstrMap<std::vector<Rejection>> last_rejections_;
};

}  // namespace tokamak
