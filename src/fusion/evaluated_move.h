#pragma once

// Moves with their estimated costs, and the set of rejected moves. Structurally equal moves share
// one evaluation: in a model of 12 equal layers, a move that was rejected in one layer is not
// evaluated in the other 11.

#include <string>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "explain/decision.h"
#include "fusion/candidate_plan.h"
#include "fusion/moves.h"
#include "fusion/region_hash.h"

namespace tokamak {

// A move with the cost of the groups that it replaces, in microseconds, before and after it.
struct EvaluatedMove {
  Move move;
  uint64_t hash = 0;
  double before = 0, after = 0;

  double gain() const { return before - after; }
  // Whether it saves a large enough fraction of that cost.
  bool pays() const;
};

// Hashes moves. Equal for moves by the same rule whose groups compute the same functions and share
// inputs in the same way. Groups may share more than the hash covers, so equal hashes do not
// guarantee equal costs: the hash decides which moves to skip and provides an approximate cost.
class MoveHasher {
 public:
  explicit MoveHasher(const CandidatePlan& candidate)
      : candidate_(candidate), numbers_(candidate.computation()) {}
  uint64_t Of(const Move& move);

 private:
  const CandidatePlan& candidate_;
  Numbering numbers_;
  std::vector<std::tuple<uint64_t, size_t, int>> removed_;  // hash, index in change, group; scratch
};

// The log entry for a move.
Decision RecordOf(const EvaluatedMove& evaluated, Verdict verdict);

// Rejected moves. A move whose hash is in the set is not evaluated again. Per value, the last
// rejection of each rule is kept: for values that are still stored at the end, the log says why.
class RejectedMoves {
 public:
  explicit RejectedMoves(const CandidatePlan& candidate)
      : candidate_(candidate), last_(candidate.computation()) {}

  bool Has(uint64_t hash) const { return hashes_.contains(hash); }
  void Add(const EvaluatedMove& evaluated, std::string because);
  // Keeps the reason only: moves with the same hash are still evaluated.
  void Record(const EvaluatedMove& evaluated, std::string because);
  // Logs the rejections of all values that are still stored.
  void AddTo(DecisionLog& log) const;

 private:
  struct Rejection {
    std::string_view rule;
    const Instr* other;
    double before, after;
    std::string because;
  };
  const CandidatePlan& candidate_;
  std::unordered_set<uint64_t> hashes_;
  InstrMap<std::vector<Rejection>> last_;
};

}  // namespace tokamak
