#pragma once

#include <string>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "explain/decision.h"
#include "fusion/draft.h"
#include "fusion/moves.h"
#include "fusion/region_hash.h"

namespace tokamak {

// A move with what it does to the price; microseconds of the groups that it touches.
struct PricedMove {
  Move move;
  uint64_t hash = 0;
  double before = 0, after = 0;

  double gain() const { return before - after; }
  // Whether it saves a share of what it touches that is worth the change.
  bool pays() const;
};

// Equal for moves that are alike: of groups that compute the same and share the same inputs.
// Groups that share more than that may differ all the same, so that this tells which moves are not
// worth another look, and what others are worth, about.
class MoveHasher {
 public:
  explicit MoveHasher(const Draft& draft) : draft_(draft), numbers_(draft.computation()) {}
  uint64_t Of(const Move& move);

 private:
  const Draft& draft_;
  Numbering numbers_;
  std::vector<std::tuple<uint64_t, size_t, int>> removed_;  // by hash, then as they stand
};

Decision RecordOf(const PricedMove& priced, Verdict verdict);

// Moves that were refused: they are not looked at again, nor are those like them. Of each value
// the last of every rule is kept: of what is still stored at the end, the reasons are told.
class Refusals {
 public:
  explicit Refusals(const Draft& draft) : draft_(draft), last_(draft.computation()) {}

  bool Has(uint64_t hash) const { return hashes_.contains(hash); }
  void Add(const PricedMove& priced, std::string because);
  // The reason alone: others like it are looked at.
  void Record(const PricedMove& priced, std::string because);
  void AddTo(DecisionLog& log) const;

 private:
  struct Refusal {
    std::string_view rule;
    const Instr* other;
    double before, after;
    std::string because;
  };
  const Draft& draft_;
  std::unordered_set<uint64_t> hashes_;
  InstrMap<std::vector<Refusal>> last_;
};

}  // namespace tokamak
