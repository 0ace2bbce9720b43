#pragma once

#include <cstdint>
#include <span>

#include "kernel/sim_clocks.h"
#include "kernel/sim_mbarriers.h"
#include "kernel/sim_memory.h"

namespace tokamak {

// Where an operation is: for error messages.
struct SimPosition {
  uint32_t thread = 0, pc = 0;
};

// What the asynchronous operations of a thread block share.
struct SimAsyncState {
  SimAsyncState(const Kernel& of, uint32_t threads)
      : kernel(of), mbarriers(of), clocks(threads, mbarriers.count()) {}

  // Of work that happens only when no thread can run.
  static constexpr uint32_t kLatest = UINT32_MAX;

  // The error of the last access of memory.
  Error MemoryError() const { return MakeError(memory->error_code(), memory->error_text()); }
  uint32_t ArrayOf(ArrayId id) const { return arrays[static_cast<size_t>(id)]; }

  const Kernel& kernel;
  SimMbarriers mbarriers;
  ClockOrder clocks;
  SimMemory* memory = nullptr;
  std::span<const uint32_t> arrays;  // the kernel's arrays as indices into the memory's
  uint32_t block = 0;                // 1-based
  int64_t steps = 0;                 // operations of asynchronous work
  SimPosition position;              // of the last operation
};

}  // namespace tokamak
