#pragma once

#include <concepts>
#include <cstdint>
#include <string>

#include "kernel/simulate.h"

namespace tokamak {

// Which accesses of simulated memory are ordered. SimMemory detects races with either of
//   * EpochOrder: program order and barriers, by counting the barriers that each agent passed,
//   * ClockOrder (sim_clocks.h): also mbarriers and asynchronous work, by vector clocks.
// The first one is cheaper, and kernels without asynchronous work need no more.

struct VectorClock;

// The agent of a memory access (thread block, thread, lane), and its position in the order.
struct SimAgent {
  uint32_t block = 0;                        // 1-based
  uint32_t thread = 0, warp = 0;             // `thread`: whose registers the agent accesses
  uint32_t block_epoch = 0, warp_epoch = 0;  // number of barriers passed
  uint32_t run = 0;  // which execution of a vector loop by this thread; 0: outside of vector loops
  uint16_t lane = 0;
  // ClockOrder only: its number of the agent, what happened before the access, and of asynchronous
  // work, its time and what it is ("copy").
  uint32_t id = 0;
  const VectorClock* clock = nullptr;
  uint32_t time = 0;
  const char* work = nullptr;
};
// SimAgent::lane of an access by several lanes.
inline constexpr uint16_t kAllLanes = UINT16_MAX;

// Values of AccessCell::block and AccessCell::thread: several blocks or threads; a flag that marks
// a warp number.
inline constexpr uint32_t kSeveral = UINT32_MAX, kOfWarp = uint32_t{1} << 31;

// The last store to an element, or the reads since.
struct AccessCell {
  uint32_t block = 0;        // 0: not accessed yet; or kSeveral
  uint32_t thread = 0;       // or kSeveral, or kOfWarp with the warp number; SimAgent::id of clocks
  uint32_t block_epoch = 0;  // of clocks: the agent's time
  uint32_t warp_epoch = 0;   // of clocks: the list of reads, if the thread is kSeveral
  uint32_t run = 0;
  uint16_t lane = 0;
};

enum class AccessKind : uint8_t { kLoad, kStore };

template <typename T>
concept SimOrder = requires(T& order, const AccessCell& cell, AccessCell& reads,
                            const SimAgent& agent, AccessKind kind) {
  { order.CellOf(agent) } -> std::same_as<AccessCell>;
  // The access in `cell`, which is of this kind, if it is not ordered before one by `agent` now.
  { order.Unordered(cell, kind, agent) } -> std::same_as<const AccessCell*>;
  // Adds a read by the agent to the reads of an element.
  order.NoteRead(reads, agent);
  // Called after a store that follows all reads in the cell.
  order.ForgetReads(reads);
  // Whether two unordered stores of equal bits are allowed.
  { order.MayStoreTwice(cell, agent) } -> std::same_as<bool>;
  // Names the agent of an access in the current block, and says what is missing between it and an
  // access by `agent`.
  { order.NameOf(cell) } -> std::same_as<std::string>;
  { order.Missing(cell, kind, agent) } -> std::same_as<std::string>;
};

// Whether an access by another lane of the same thread is unordered: in the same execution of a
// vector loop.
inline bool LanesCollide(const AccessCell& cell, const SimAgent& agent) {
  return cell.run != 0 && cell.run == agent.run &&
         (cell.lane != agent.lane || agent.lane == kAllLanes);
}

// Whether the block of the read `now` has read the element before. Otherwise adds `now` to `reads`.
inline bool ReadInBlock(AccessCell& reads, const AccessCell& now) {
  if (reads.block == now.block) return true;
  if (reads.block == 0) {
    reads = now;
  } else {
    reads.block = kSeveral;
  }
  return false;
}

// " thread 3, lane 1" of a thread's access.
std::string ThreadNameOf(const AccessCell& cell);

class EpochOrder {
 public:
  static AccessCell CellOf(const SimAgent& agent) {
    return {agent.block, agent.thread, agent.block_epoch, agent.warp_epoch, agent.run, agent.lane};
  }
  static const AccessCell* Unordered(const AccessCell& cell, AccessKind, const SimAgent& agent) {
    return IsUnordered(cell, agent) ? &cell : nullptr;
  }
  static void NoteRead(AccessCell& reads, const SimAgent& agent);
  static void ForgetReads(AccessCell&) {}
  static bool MayStoreTwice(const AccessCell&, const SimAgent&) { return true; }
  static std::string NameOf(const AccessCell& cell);
  static std::string Missing(const AccessCell&, AccessKind, const SimAgent&) {
    return "without a barrier between them";
  }

 private:
  static bool IsUnordered(const AccessCell& cell, const SimAgent& agent);
};
static_assert(SimOrder<EpochOrder>);

inline bool EpochOrder::IsUnordered(const AccessCell& cell, const SimAgent& agent) {
  if (cell.block != agent.block) return true;
  if (cell.thread == agent.thread) return LanesCollide(cell, agent);
  bool same_warp = false;
  if (cell.thread == kSeveral) {
    same_warp = false;
  } else if ((cell.thread & kOfWarp) != 0) {
    same_warp = (cell.thread & ~kOfWarp) == agent.warp;
  } else {
    same_warp = cell.thread / kSimWarp == agent.warp;
  }
  return same_warp ? cell.warp_epoch == agent.warp_epoch : cell.block_epoch == agent.block_epoch;
}

// Records the last reader, or that several agents have read since the last barrier.
inline void EpochOrder::NoteRead(AccessCell& reads, const SimAgent& agent) {
  AccessCell now = CellOf(agent);
  if (!ReadInBlock(reads, now)) return;
  if (reads.thread == agent.thread) {
    if (reads.run == agent.run && reads.lane != agent.lane) now.lane = kAllLanes;
  } else if (reads.block_epoch == agent.block_epoch) {
    bool of_warp = (reads.thread & kOfWarp) != 0;
    uint32_t warp = of_warp ? reads.thread & ~kOfWarp : reads.thread / kSimWarp;
    if (reads.thread == kSeveral || warp != agent.warp) {
      now.thread = kSeveral;
    } else if (reads.warp_epoch == agent.warp_epoch) {
      now.thread = kOfWarp | agent.warp;
    }
  }
  reads = now;
}

}  // namespace tokamak
