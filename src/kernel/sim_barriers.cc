#include <algorithm>

#include <fmt/format.h>

#include "kernel/sim_blocks.h"

// How the threads of a simulated block wait for each other: barriers, shuffles and other
// collectives, and asynchronous work.

namespace tokamak {
namespace {

// Whether all of the threads wait in this state at one statement.
bool AllWait(std::span<const SimThread> threads, ThreadState state) {
  return std::ranges::all_of(threads, [&](const SimThread& thread) {
    return thread.state == state && thread.pc == threads[0].pc;
  });
}

}  // namespace

bool BlockSimulator::SyncBlock() {
  bool any = false;
  if (AllWait(threads_, ThreadState::kAtBlock)) {
    ++block_epoch_;
    if (async_ != nullptr) async_->clocks().Synchronize(0, threads());
    for (uint32_t& epoch : warp_epochs_) ++epoch;
    for (SimThread& thread : threads_) Release(thread);
    return true;
  }
  if (!SyncWarps(any) || !SyncWarpgroups(any)) return false;
  if (any) return true;
  if (async_ != nullptr && async_->HasCopies()) return Succeeded(async_->RunCopy());
  return Deadlocked();
}

bool BlockSimulator::SyncWarps(bool& any) {
  for (size_t warp = 0; warp < warp_epochs_.size(); ++warp) {
    std::span<SimThread> lanes = Group(warp);
    if (!AllWait(lanes, ThreadState::kAtWarp)) continue;
    any = true;
    if (!SyncWarp(warp, lanes)) return false;
  }
  return true;
}

bool BlockSimulator::SyncWarpgroups(bool& any) {
  if (async_ == nullptr) return true;
  for (size_t number = 0; number < threads_.size() / kSimWarpgroup; ++number) {
    std::span<SimThread> warpgroup = Group(number, kSimWarpgroup);
    if (!AllWait(warpgroup, ThreadState::kAtWarpgroup)) continue;
    any = true;
    if (!Succeeded(async_->Multiply(warpgroup, program_.ops[warpgroup[0].pc]))) return false;
    for (SimThread& thread : warpgroup) Release(thread);
  }
  return true;
}

std::span<SimThread> BlockSimulator::Group(size_t number, size_t size) {
  size_t begin = number * size;
  return std::span(threads_).subspan(begin, std::min(size, threads_.size() - begin));
}

void BlockSimulator::Release(SimThread& thread) {
  thread.state = ThreadState::kReady;
  thread.agent.block_epoch = block_epoch_;
  thread.agent.warp_epoch = warp_epochs_[thread.agent.warp];
  ++thread.pc;
}

bool BlockSimulator::SyncWarp(size_t warp, std::span<SimThread> lanes) {
  const SimOp& op = program_.ops[lanes[0].pc];
  if (op.kind == SimKind::kBarrier) {
    ++warp_epochs_[warp];
    if (async_ != nullptr)
      async_->clocks().Synchronize(lanes[0].agent.thread, static_cast<uint32_t>(lanes.size()));
  } else if (op.kind == SimKind::kAsync) {
    if (!Succeeded(async_->Await(lanes, op))) return false;
  } else if (op.prim == Prim::kMatch) {
    Bits mask = (Bits{1} << lanes[0].slots[op.b.at]) - 1;
    for (SimThread& thread : lanes) {
      Bits is_uniform = 0;
      for (size_t i = 0; i < lanes.size(); ++i)
        if (((lanes[i].slots[op.a.at] ^ thread.slots[op.a.at]) & mask) == 0)
          is_uniform |= Bits{1} << i;
      thread.slots[op.to] = is_uniform;
    }
  } else {
    std::vector<Bits> values;
    for (const SimThread& thread : lanes) values.push_back(thread.slots[op.a.at]);
    for (size_t i = 0; i < lanes.size(); ++i) {
      uint64_t from = i ^ lanes[i].slots[op.b.at];
      if (from >= values.size())
        return FailAt(lanes[i], ErrorCode::kKernelOutOfBounds,
                      fmt::format("shuffles from lane {} of a warp of {}", from, values.size()));
      lanes[i].slots[op.to] = values[from];
    }
  }
  for (SimThread& thread : lanes) Release(thread);
  return true;
}

BlockSimulator::Collective BlockSimulator::CollectiveOf(const SimThread& thread) {
  if (thread.state == ThreadState::kAtBlock) return {"block", threads_};
  if (thread.state == ThreadState::kAtWarpgroup)
    return {"warpgroup", Group(thread.agent.thread / kSimWarpgroup, kSimWarpgroup)};
  return {"warp", Group(thread.agent.warp)};
}

bool BlockSimulator::Diverged(const SimThread& waits) {
  auto [scope, all] = CollectiveOf(waits);
  if (waits.state == ThreadState::kAtWarpgroup && all.size() < kSimWarpgroup)
    return FailAt(waits, ErrorCode::kKernelDivergence,
                  fmt::format("is in a warpgroup of {} threads", all.size()));
  size_t missing = 0, others = 0;
  for (const SimThread& thread : all) {
    if (thread.pc == waits.pc && thread.state == waits.state) continue;
    missing = thread.agent.thread;
    ++others;
  }
  return FailAt(waits, ErrorCode::kKernelDivergence,
                fmt::format("waits at a barrier that {} threads of its {} do not reach, thread {} "
                            "among them",
                            others, scope, missing));
}

// ---- asynchronous work

bool BlockSimulator::Succeeded(Status status) {
  if (status.ok()) return true;
  return FailAt(async_->position(), status.error().code, status.error().message);
}

bool BlockSimulator::ExecuteAsync(SimThread& thread, const SimOp& op) {
  return Succeeded(async_->Execute(thread, op));
}

bool BlockSimulator::RunAsync() {
  steps_ += async_->TakeSteps();
  if (!Succeeded(async_->RunDue())) return false;
  for (SimThread& thread : threads_)
    if (thread.state == ThreadState::kAtMbarrier && async_->IsOver(thread))
      thread.state = ThreadState::kReady;
  // At once, so that a warp does not wait until no other thread can run.
  bool any = false;
  return !options_.seed || (SyncWarps(any) && SyncWarpgroups(any));
}

// A thread at a collective whose other threads are elsewhere explains why no thread can run, unless
// one of these waits for an mbarrier.
bool BlockSimulator::Deadlocked() {
  const SimThread *at_mbarrier = nullptr, *waits = nullptr;
  for (const SimThread& thread : threads_) {
    if (thread.state == ThreadState::kDone) continue;
    waits = waits == nullptr ? &thread : waits;
    if (thread.state == ThreadState::kAtMbarrier) {
      at_mbarrier = at_mbarrier == nullptr ? &thread : at_mbarrier;
    } else if (std::ranges::none_of(CollectiveOf(thread).threads, [](const SimThread& other) {
                 return other.state == ThreadState::kAtMbarrier;
               })) {
      return Diverged(thread);
    }
  }
  if (at_mbarrier == nullptr) return Diverged(*waits);
  return FailAt(*at_mbarrier, ErrorCode::kKernelDeadlock, async_->WaitOf(*at_mbarrier));
}

}  // namespace tokamak
