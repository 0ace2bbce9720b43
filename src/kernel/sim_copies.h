#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernel/sim_async_state.h"
#include "kernel/sim_program.h"
#include "kernel/sim_thread.h"

namespace tokamak {

// The bulk copies of one thread block that have been issued and have not happened yet.
class SimCopies {
 public:
  explicit SimCopies(SimAsyncState& state) : state_(state) {}

  void Begin();
  // `coordinates`: slots of the box's coordinates. `iterations`: of the scheduler until the copy is
  // due (SimAsyncState::kLatest).
  struct Request {
    uint32_t mbarrier = 0, iterations = 0;
    std::span<const uint32_t> coordinates;
  };
  Status Issue(const SimThread& thread, const SimOp& op, const Request& request);
  bool IsPending() const { return !pending_.empty(); }
  size_t pending() const { return pending_.size(); }
  void CountIteration();
  // A pending copy that is due; or pending().
  size_t FindDue() const;
  // Makes a pending copy happen.
  Status Run(size_t number);
  // Whether a pending copy stores to the element, which is one of the memory's.
  bool WillStore(uint32_t array, int64_t index) const;
  // An error if no thread of the block has waited for a copy.
  Status CheckAllAwaited();

 private:
  struct Pending {
    const TileCopy* copy = nullptr;
    SimPosition position;
    uint32_t mbarrier = 0, iterations = 0;
    int64_t to_index = 0;
    std::vector<int64_t> at;
    VectorClock issued;
  };

  bool CopyElements(const Pending& pending, const SimAgent& agent);

  SimAsyncState& state_;
  std::vector<Pending> pending_;
  std::vector<uint32_t> times_;         // per mbarrier: copies that happened
  std::vector<SimPosition> positions_;  // per mbarrier: of the last of them
};

}  // namespace tokamak
