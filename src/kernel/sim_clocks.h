#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/sim_order.h"

namespace tokamak {

// Warps of a warpgroup.
inline constexpr uint32_t kSimWarpgroupWarps = 4;
inline constexpr uint32_t kSimWarpgroup = kSimWarp * kSimWarpgroupWarps;

// The part of each agent's past that happened before the owner's present: `seen` of all accesses;
// `fenced` of the stores that asynchronous work sees, because their thread executed a fence after
// them. `fenced` is at most `seen`.
struct VectorClock {
  std::vector<uint32_t> seen, fenced;

  void Reset(size_t agents) {
    seen.assign(agents, 0);
    fenced.assign(agents, 0);
  }
  void Join(const VectorClock& other);  // what either has seen
  void Meet(const VectorClock& other);  // what both have seen
};

// Happens-before among the agents of one thread block: its threads, the asynchronous multiplies of
// each warp, the copies to each mbarrier, and the copies back of each warp, whose reads of shared
// memory can be waited for, and whose stores cannot. An element's last store is a time of one
// agent. Its reads are times too, a list of them if they are unordered (as in FastTrack).
//
// A multiply is done by four warps, and each of them awaits it. Its reads of shared memory have the
// id MultipliesOfWarpgroup, which is ordered if the multiplies of all four warps are.
class ClockOrder {
 public:
  // `mbarriers`: the number of mbarriers, all arrays together.
  ClockOrder(uint32_t threads, uint32_t mbarriers);

  // Begins a thread block.
  void Begin();

  VectorClock& OfThread(uint32_t thread) { return threads_[thread]; }
  uint32_t TimeOf(uint32_t thread) const { return threads_[thread].seen[thread]; }
  uint32_t threads() const { return first_warp_; }
  size_t agents() const { return first_warpgroup_; }
  uint32_t MultipliesOfWarp(uint32_t warp) const { return first_warp_ + warp; }
  uint32_t MultipliesOfWarpgroup(uint32_t warpgroup) const { return first_warpgroup_ + warpgroup; }
  uint32_t CopiesTo(uint32_t mbarrier) const { return first_mbarrier_ + mbarrier; }
  uint32_t CopiesBackOf(uint32_t warp) const { return first_back_ + warp; }
  uint32_t StoresBackOf(uint32_t warp) const { return first_stores_ + warp; }

  // Later accesses of the thread are after what has been published of it so far.
  void Tick(uint32_t thread) { ++threads_[thread].seen[thread]; }
  // Earlier stores of the thread become visible to asynchronous work.
  void Fence(uint32_t thread);
  // A barrier of `count` consecutive threads.
  void Synchronize(uint32_t first, uint32_t count);

  // ---- SimOrder
  AccessCell CellOf(const SimAgent& agent) const {
    uint32_t time = agent.work != nullptr ? agent.time : TimeOf(agent.id);
    return {agent.block, agent.id, time, 0, agent.run, agent.lane};
  }
  const AccessCell* Unordered(const AccessCell& cell, AccessKind kind, const SimAgent& agent) const;
  void NoteRead(AccessCell& reads, const SimAgent& agent);
  void ForgetReads(AccessCell& reads);
  bool MayStoreTwice(const AccessCell& cell, const SimAgent& agent) const {
    return agent.work == nullptr && cell.thread < first_warp_;
  }
  std::string NameOf(const AccessCell& cell) const;
  std::string Missing(const AccessCell& cell, AccessKind kind, const SimAgent& agent) const;

 private:
  bool IsOrdered(const AccessCell& cell, AccessKind kind, const SimAgent& agent) const;
  bool HasSeen(const AccessCell& cell, const std::vector<uint32_t>& seen) const;
  bool IsCopy(uint32_t id) const { return id >= first_mbarrier_ && id < first_warpgroup_; }

  // Ids: threads, multiplies of warps, copies to mbarriers, copies back of warps, their stores; and
  // without a component of their own, multiplies of warpgroups.
  uint32_t first_warp_, first_mbarrier_, first_back_, first_stores_, first_warpgroup_;
  std::vector<VectorClock> threads_;
  // Elements with several reads, none of which is ordered before another one.
  std::vector<std::vector<AccessCell>> reads_;
  std::vector<uint32_t> free_reads_;
};
static_assert(SimOrder<ClockOrder>);

}  // namespace tokamak
