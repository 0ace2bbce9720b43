#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tokamak::cuda {

// Which sets of pointers recur from run to run of a graph. A training loop with donated arguments
// alternates between two sets: each gets its own instance of the graph, which is launched
// unchanged. A set is added when it is met for the second time, because an instance takes longer to
// create than a run.
class PointerSets {
 public:
  // Kept sets. A set that no run has used for so many runs is replaced by one that recurs.
  static constexpr size_t kMaxSets = 4, kUnusedRuns = 64;
  enum class Kind {
    kKept,   // slot(): its instance
    kAdded,  // slot(): a new or replaced slot, whose instance the caller creates
    kOther,  // not kept
  };
  // Looks the pointers of a run up.
  Kind Find(std::span<void* const> pointers);
  // The slot of the last Find, if not kOther.
  size_t slot() const { return slot_; }
  // Forgets the set that was added last: its instance could not be created.
  void Drop();

 private:
  struct Set {
    uint64_t hash = 0;
    std::vector<void*> pointers;
    uint64_t used = 0;  // number of the last run that used it
  };
  // Hashes of that many last runs are remembered: arguments that recur do so within a few runs.
  static constexpr size_t kRecentRuns = 8;

  std::vector<Set> sets_;
  std::array<uint64_t, kRecentRuns> recent_{};
  uint64_t runs_ = 0;
  size_t slot_ = 0;
};

}  // namespace tokamak::cuda
