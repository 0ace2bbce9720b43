#include "kernel/sim_clocks.h"

#include <algorithm>

#include <fmt/format.h>

namespace tokamak {

void VectorClock::Join(const VectorClock& other) {
  for (size_t i = 0; i < seen.size(); ++i) seen[i] = std::max(seen[i], other.seen[i]);
  for (size_t i = 0; i < fenced.size(); ++i) fenced[i] = std::max(fenced[i], other.fenced[i]);
}

void VectorClock::Meet(const VectorClock& other) {
  for (size_t i = 0; i < seen.size(); ++i) seen[i] = std::min(seen[i], other.seen[i]);
  for (size_t i = 0; i < fenced.size(); ++i) fenced[i] = std::min(fenced[i], other.fenced[i]);
}

ClockOrder::ClockOrder(uint32_t threads, uint32_t mbarriers)
    : first_warp_(threads),
      // As many as whole warpgroups have, so that an id of a warpgroup has four of them.
      first_mbarrier_(threads + (threads + kSimWarpgroup - 1) / kSimWarpgroup * kSimWarpgroupWarps),
      first_back_(first_mbarrier_ + mbarriers),
      first_stores_(first_back_ + (threads + kSimWarp - 1) / kSimWarp),
      first_warpgroup_(first_stores_ + (threads + kSimWarp - 1) / kSimWarp),
      threads_(threads) {}

void ClockOrder::Begin() {
  for (uint32_t t = 0; t < threads_.size(); ++t) {
    threads_[t].Reset(agents());
    threads_[t].seen[t] = 1;
  }
  reads_.clear();
  free_reads_.clear();
}

void ClockOrder::Fence(uint32_t thread) {
  threads_[thread].fenced[thread] = TimeOf(thread);
  Tick(thread);
}

void ClockOrder::Synchronize(uint32_t first, uint32_t count) {
  VectorClock all = threads_[first];
  for (uint32_t t = first + 1; t < first + count; ++t) all.Join(threads_[t]);
  for (uint32_t t = first; t < first + count; ++t) {
    threads_[t] = all;
    Tick(t);
  }
}

bool ClockOrder::HasSeen(const AccessCell& cell, const std::vector<uint32_t>& seen) const {
  if (cell.thread < first_warpgroup_) return seen[cell.thread] >= cell.block_epoch;
  uint32_t warp = MultipliesOfWarp((cell.thread - first_warpgroup_) * kSimWarpgroupWarps);
  for (uint32_t i = 0; i < kSimWarpgroupWarps; ++i)
    if (seen[warp + i] < cell.block_epoch) return false;
  return true;
}

bool ClockOrder::IsOrdered(const AccessCell& cell, AccessKind kind, const SimAgent& agent) const {
  // Program order; multiplies finish in order, but copies do not.
  if (cell.thread == agent.id && !IsCopy(agent.id)) return !LanesCollide(cell, agent);
  bool needs_fence =
      agent.work != nullptr && kind == AccessKind::kStore && cell.thread < first_warp_;
  return HasSeen(cell, needs_fence ? agent.clock->fenced : agent.clock->seen);
}

const AccessCell* ClockOrder::Unordered(const AccessCell& cell, AccessKind kind,
                                        const SimAgent& agent) const {
  if (cell.block != agent.block) return &cell;
  if (cell.thread != kSeveral) return IsOrdered(cell, kind, agent) ? nullptr : &cell;
  for (const AccessCell& read : reads_[cell.warp_epoch])
    if (!IsOrdered(read, kind, agent)) return &read;
  return nullptr;
}

void ClockOrder::NoteRead(AccessCell& reads, const SimAgent& agent) {
  AccessCell now = CellOf(agent);
  if (!ReadInBlock(reads, now)) return;
  // A later store that is after this read is after the reads that are before it.
  auto replaces = [&](const AccessCell& read) {
    if (read.thread != now.thread) return HasSeen(read, agent.clock->seen);
    if (read.run == now.run && read.lane != now.lane) now.lane = kAllLanes;
    return true;
  };
  if (reads.thread != kSeveral) {
    if (replaces(reads)) {
      reads = now;
      return;
    }
    if (free_reads_.empty()) {
      free_reads_.push_back(static_cast<uint32_t>(reads_.size()));
      reads_.emplace_back();
    }
    uint32_t list = free_reads_.back();
    free_reads_.pop_back();
    reads_[list].assign({reads});
    reads.thread = kSeveral;
    reads.warp_epoch = list;
  }
  std::vector<AccessCell>& list = reads_[reads.warp_epoch];
  std::erase_if(list, replaces);
  list.push_back(now);
}

void ClockOrder::ForgetReads(AccessCell& reads) {
  if (reads.thread == kSeveral && reads.block != kSeveral) free_reads_.push_back(reads.warp_epoch);
  reads = {};
}

std::string ClockOrder::NameOf(const AccessCell& cell) const {
  if (cell.thread < first_warp_)
    return fmt::format("block {}, {}", cell.block - 1, ThreadNameOf(cell));
  if (IsCopy(cell.thread)) return "a copy";
  uint32_t warpgroup = cell.thread < first_mbarrier_
                           ? (cell.thread - first_warp_) / kSimWarpgroupWarps
                           : cell.thread - first_warpgroup_;
  return fmt::format("a multiply of warpgroup {}", warpgroup);
}

std::string ClockOrder::Missing(const AccessCell& cell, AccessKind kind,
                                const SimAgent& agent) const {
  if (cell.thread >= first_warp_)
    return IsCopy(cell.thread) ? "without a wait for the copy between them"
                               : "without an await of all its warps between them";
  if (agent.work != nullptr && agent.thread == cell.thread && agent.id < first_mbarrier_)
    return "without an await between them";
  bool fence = kind == AccessKind::kStore && HasSeen(cell, agent.clock->seen);
  return fence ? "without a fence before the barrier between them"
               : "without a barrier or mbarrier between them";
}

}  // namespace tokamak
