#pragma once

#include <array>
#include <cstdint>

#include "gen/generator.h"
#include "gen/gpu/gpu.h"
#include "gen/gpu/tensor_tiling.h"
#include "gen/roots.h"

// Kernels whose first warpgroup of 128 threads, the producer, fills shared memory, while the other
// ones, the consumers, multiply from there (AsyncOp).

namespace tokamak::gpu {

// Registers per thread of a producer that only starts copies. Chosen: what the addresses of copies
// need, rounded up; the consumers get the rest.
inline constexpr int64_t kCopyRegisters = 40;
// Registers per thread of that many consumers beside a producer that has `producer_registers`.
int64_t ConsumerRegisters(int64_t consumers, int64_t producer_registers);

// The number of a consumer among the consumers. Never negative, so that its quotients simplify.
inline Scalar ConsumerOf(KernelBuilder& b, Scalar thread) {
  return GreaterOf(thread - b.Index(kWarpgroupThreads), b.Index(0));
}

// Where the number-th tile is in a ring of stages, and the parity of the phase in which it is
// there.
struct PipelineStage {
  Scalar index, parity;
};
inline PipelineStage StageOf(KernelBuilder& b, Scalar number, int64_t stages) {
  return {number % b.Index(stages), number / b.Index(stages) % b.Index(2)};
}

// Builds the grid and thread loops: calls begin(block, thread), then role(whether the threads are
// the producer) once for each role.
template <typename Begin, typename Role>
BuildOutcome BuildWarpRoles(KernelBuilder& b, ElementEmitter& emitter, const FusedRegion& region,
                            const std::array<int64_t, 2>& blocks_and_threads, Begin&& begin,
                            Role&& role) {
  auto [blocks, threads] = blocks_and_threads;
  b.For("block", LoopRole::kGrid, b.Index(blocks), [&](Scalar block) {
    b.For("t", LoopRole::kThread, b.Index(threads), [&](Scalar t) {
      begin(block, t);
      b.If(
          t < b.Index(kWarpgroupThreads), [&] { role(true); }, [&] { role(false); },
          /*uniform=*/false);
    });
  });
  BuildOutcome outcome = FinishRegionKernel(b, emitter, region, blocks, /*writes_once=*/false);
  if (outcome.built) FinalizeGpuKernel(outcome.built->kernel);
  return outcome;
}

}  // namespace tokamak::gpu
