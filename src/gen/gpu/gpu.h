#pragma once

#include <optional>
#include <string>

#include "gen/element.h"
#include "gen/generator.h"
#include "gen/scan.h"
#include "kernel/gpu_limits.h"
#include "support/ceil_div.h"

// GPU generators: loop nests over thread blocks and threads, with shared memory and barriers. The
// code for one element is the same as on CPUs (element.h, reducer.h, roots.h). BuildRegion
// (gen/generator.h) calls BuildTranspose or BuildElementwise for kLoop and the builder of each
// other kind; those call the more special builders below.

namespace tokamak::gpu {

// `schedule` may be null: the preferred one.
BuildOutcome BuildElementwise(const FusedRegion& region, const Schedule* schedule,
                              const Machine& machine, const std::string& name);
// The schedules of BuildTranspose, then those of BuildElementwise.
std::vector<Schedule> LoopSchedules(const FusedRegion& region, const Machine& machine);
// kLoop regions whose roots have different sizes (multi_size_loop.cc): every size is a multiple of
// the smallest, and a thread computes, for one element of the smallest root, all elements of the
// larger roots at the same position modulo the smallest size. BuildElementwise calls it if the
// roots have no common domain. WhyNotMultiSize returns why a region does not have this form, an
// empty string if it does.
BuildOutcome BuildMultiSizeLoop(const FusedRegion& region, const Machine& machine,
                                const std::string& name);
std::string WhyNotMultiSize(const FusedRegion& region);
// kLoop regions that read a large input transposed.
// `schedule` may be null: the preferred one.
BuildOutcome BuildTranspose(const FusedRegion& region, const Schedule* schedule,
                            const Machine& machine, const std::string& name);
// `schedule` may be null: the first of RowsSchedules.
BuildOutcome BuildRows(const FusedRegion& region, const Schedule* schedule, const Machine& machine,
                       const std::string& name);
std::vector<Schedule> RowsSchedules(const FusedRegion& region, const Machine& machine);
// `schedule` may be null: the first of ColumnsSchedules.
BuildOutcome BuildColumns(const FusedRegion& region, const Schedule* schedule,
                          const Machine& machine, const std::string& name);
std::vector<Schedule> ColumnsSchedules(const FusedRegion& region, const Machine& machine);
// `schedule` may be null: the first of ContractSchedules.
BuildOutcome BuildContract(const FusedRegion& region, const Schedule* schedule,
                           const Machine& machine, const std::string& name);
std::vector<Schedule> ContractSchedules(const FusedRegion& region, const Machine& machine);
BuildOutcome BuildScan(const FusedRegion& region, const Machine& machine, const std::string& name);
// Whether the threads of a block or warp scan a sequence together (prefix scans, scan.h); otherwise
// each thread scans its own sequences.
bool IsCooperativeScan(const Scan& scan);
BuildOutcome BuildScatter(const FusedRegion& region, const Machine& machine,
                          const std::string& name);
// Scatters whose windows with equal indices are known to be adjacent: indices that are sorted, or
// that sort-scatters (passes/target) has sorted (scatter_runs.cc).
BuildOutcome BuildScatterRuns(const FusedRegion& region, const Machine& machine,
                              const std::string& name);
// Histograms: scatters that add ones, i.e. count for each batch the elements of each value, for a
// small number of values (histogram.cc).
bool IsHistogram(const Instr& scatter);
BuildOutcome BuildHistogram(const FusedRegion& region, const Machine& machine,
                            const std::string& name);

// Whole-loop kernels (gen/whole_loop.h): one thread, or a few adjacent threads of a warp, runs all
// iterations of one point. If that is not possible, usually because a point has more elements than
// a thread's registers hold, and the loop has dots, tries BuildDistributedWholeLoop. Neither has
// grid barriers.
BuildOutcome BuildWholeLoop(const WholeLoopRegion& region, const Machine& machine,
                            const std::string& name);
// Recurrent networks: each thread block, launched as a cluster if it is large (kernel/cluster.h),
// runs some points. Its threads own elements of their carried values (WholeLoopMapping). Elements
// of a point interact through dots only, with one block barrier per dot and iteration
// (whole_loop_distributed.cc).
BuildOutcome BuildDistributedWholeLoop(const WholeLoopRegion& region, const Machine& machine,
                                       const std::string& name);
// Layers of a small network: a thread block runs a tile of points, whose dots are block-wide
// multiplies by matrices in shared memory (gen/whole_loop_tiles.h). The tile of the lowest cost.
BuildOutcome BuildTiledWholeLoop(const WholeLoopRegion& region, const Machine& machine,
                                 const std::string& name);
// The predicted time of a whole-loop kernel.
double WholeLoopMicros(const BuiltKernel& built, const Machine& machine);

// ---- shared by the GPU generators

using tokamak::kWarpSize;
// Threads of a block. Chosen: 8 blocks fill the 2048 threads of an SM, and a block that waits at a
// barrier leaves others. Of the smallest one if there are few blocks. Chosen: two warps still hide
// each other's latency.
inline constexpr int64_t kBlockThreads = 256, kFewBlockThreads = 64;
// Threads of a block of gpu/histogram.cc. Chosen: each has a byte of its own for each of 256
// values, 16 KiB in all, so several blocks fit on an SM.
inline constexpr int64_t kHistogramThreads = 64;
// Padding of a line whose elements are adjacent along the rows or columns, in elements: the lines
// that a warp reads are in different banks. Hardware: 32 banks of 4 bytes.
inline constexpr int64_t kLinePadding = 8;
// Threads per SM that saturate memory. Chosen: a quarter of an SM's threads, each with several
// loads in flight, cover the latency.
inline constexpr int64_t kThreadsWanted = 512;
// Vectors per thread up to which one warp processes a row. Chosen: all of them are in flight at
// once; more threads would need barriers.
inline constexpr int64_t kRowsWarpSteps = 8;
// A block that caches one long row: threads, registers per thread and bytes of shared memory.
struct LongRow {
  int64_t threads, thread_registers, shared_bytes;

  // Bytes of a row that the block keeps on chip, for rows of its own.
  constexpr int64_t Bytes() const {
    return shared_bytes + threads * thread_registers * kRegisterBytes;
  }
};
// Chosen: with the first, two blocks fit on an SM, so one loads while the other computes; otherwise
// one block takes nearly all shared memory of an SM (kMaxSharedBytes).
inline constexpr LongRow kLongRows[] = {{512, 16, 112 << 10}, {kMaxThreadsPerBlock, 32, 224 << 10}};

// Vector width, in elements, of a thread's accesses: the largest with which the widest element type
// fits one access and that divides `row_length`, the length of the contiguous rows. Arrays of fewer
// than `count` elements are ignored.
int64_t VectorWidthFor(const FusedRegion& region, const Machine& machine, int64_t row_length,
                       int64_t count);
// The smallest power of two that is at least x (x >= 1).
int64_t CeilPowerOfTwo(int64_t x);

// Calls body(lane) for each lane, in a vector loop if there are several.
template <typename Body>
void ForLanes(KernelBuilder& b, int64_t lanes, Body&& body) {
  if (lanes == 1) return body(b.Index(0));
  b.For("l", LoopRole::kVector, b.Index(lanes), body);
}

// Calls step(i) for 0 <= i < count in order, `unroll` at a time in the first `iterations`.
template <typename Step>
void ForSteps(KernelBuilder& b, int64_t count, int64_t unroll, int64_t iterations, Step&& step) {
  int64_t next = iterations * unroll;
  if (iterations > 0)
    b.For("k", LoopRole::kSerial, b.Index(iterations), [&](Scalar k) {
      b.For("u", LoopRole::kUnrolled, b.Index(unroll),
            [&](Scalar u) { step(k * b.Index(unroll) + u); });
    });
  if (next < count)
    b.For("k", LoopRole::kSerial, b.Index(count - next),
          [&](Scalar k) { step(k + b.Index(next)); });
}

// Block size for a launch of `count` threads: `max_threads`, halved while there would be fewer
// blocks than SMs, but at least `min_threads`.
int64_t BlockSizeFor(int64_t count, int64_t max_threads, int64_t min_threads,
                     const Machine& machine);

// One thread for each of `count` indices, in blocks of `threads`: body(index). Returns the number
// of blocks.
template <typename Body>
int64_t ForThreads(KernelBuilder& b, int64_t count, int64_t threads, Body&& body) {
  int64_t blocks = CeilDiv(count, threads);
  b.For("block", LoopRole::kGrid, b.Index(blocks), [&](Scalar g) {
    b.For("t", LoopRole::kThread, b.Index(threads), [&](Scalar t) {
      Scalar index = g * b.Index(threads) + t;
      b.If(index < b.Index(count), [&] { body(index); });
    });
  });
  return blocks;
}

// Part of finishing every GPU kernel: alignment of arguments, 32-bit indices where they suffice.
// FinishBlockKernel includes it. After FinishRegionKernel (gen/roots.h) or WholeLoopKernel::Finish
// the GPU generator calls it.
void FinalizeGpuKernel(Kernel& kernel);
// For generators that cooperate in thread blocks: takes the kernel from the builder after all
// statements are emitted, calls FinalizeGpuKernel, or returns the emitter's failure. The
// caller decides what may be computed in place (FindMayAlias).
BuildOutcome FinishBlockKernel(KernelBuilder& b, const ElementEmitter& emitter,
                               const FusedRegion& region, int64_t grid);

}  // namespace tokamak::gpu
