#pragma once

#include <optional>
#include <string>

#include "gen/element.h"
#include "gen/generator.h"
#include "gen/scan.h"

// GPU generators: loop nests over blocks and threads, with shared memory and barriers. The code for
// one element is the same as on CPUs (element.h, reducer.h, roots.h).

namespace tokamak::gpu {

BuildOutcome BuildLoop(const FusedRegion& region, const Machine& machine, const std::string& name);
// kLoop regions whose roots have different sizes (stacked.cc). WhyNotStacked returns why a region
// does not have this form, empty if it does.
BuildOutcome BuildStacked(const FusedRegion& region, const Machine& machine,
                          const std::string& name);
std::string WhyNotStacked(const FusedRegion& region);
// kLoop regions that read a large input transposed.
BuildOutcome BuildTranspose(const FusedRegion& region, const Machine& machine,
                            const std::string& name);
BuildOutcome BuildRows(const FusedRegion& region, const Machine& machine, const std::string& name);
BuildOutcome BuildColumns(const FusedRegion& region, const Machine& machine,
                          const std::string& name);
BuildOutcome BuildContract(const FusedRegion& region, const Machine& machine,
                           const std::string& name);
BuildOutcome BuildScan(const FusedRegion& region, const Machine& machine, const std::string& name);
// Whether the threads of a block or warp scan a row together; otherwise each thread scans its own
// rows.
bool IsBlockScan(const Scan& scan);
BuildOutcome BuildScatter(const FusedRegion& region, const Machine& machine,
                          const std::string& name);
// Scatters whose windows with equal indices are adjacent (scatter_runs.cc).
BuildOutcome BuildScatterRuns(const FusedRegion& region, const Machine& machine,
                              const std::string& name);
// Histograms: scatters that count the elements of batches by a small number of keys (counts.cc).
bool IsCounts(const Instr& scatter);
BuildOutcome BuildCounts(const FusedRegion& region, const Machine& machine,
                         const std::string& name);

BuildOutcome BuildFusedLoop(const FusedLoopRegion& region, const Machine& machine,
                            const std::string& name);
// Loops with dot products of carried values: the threads of a block distribute their elements
// (fused_loop_distributed.cc).
BuildOutcome BuildDistributedFusedLoop(const FusedLoopRegion& region, const Machine& machine,
                                       const std::string& name);
BuildOutcome BuildSort(const FusedRegion& region, const Machine& machine, const std::string& name);
// Returns why a sort has no kernel, nullopt if it has one.
std::optional<std::string> WhyNoSort(const Instr& sort);
// Radix sorts of lines by one digit, each line in one block (block_radix_sort.cc). RadixLineLength:
// the smallest supported line length that is at least `length`; LongestRadixLine: the maximum.
bool IsBlockRadixSort(const Instr& sort);
int64_t RadixLineLength(int64_t length);
int64_t LongestRadixLine(int64_t bytes_of_word);
BuildOutcome BuildBlockRadixSort(const FusedRegion& region, const std::string& name);
// A radix scatter pass (radix_scatter.cc): a sort of long lines by a digit of up to 8 bits that
// captures s32[lines, digits, segments], the start offset of each digit of each segment in the
// sorted lines, stored one after another. RadixSegmentLength: words per segment for `words` in
// total.
bool IsRadixScatter(const Instr& sort);
int64_t RadixSegmentLength(int64_t bytes_of_word, int64_t words, const Machine& machine);
BuildOutcome BuildRadixScatter(const FusedRegion& region, const std::string& name);
// Sorts of short lines (IsNetworkSort in line_network.h), one thread per line.
BuildOutcome BuildNetworkSort(const FusedRegion& region, const Machine& machine,
                              const std::string& name);
// LoadsOnce: whether elementwise producers of a sort's operands may be fused into it; comparison
// sorts load elements more than once. TakesProducers: whether a region is such a sort and its
// producers.
bool LoadsOnce(const Instr& sort);
bool TakesProducers(const FusedRegion& region);
// The longest line, in elements, that one block sorts; longer lines are merged from sorted halves.
int64_t LongestBlockSort(const Instr& sort);

// ---- shared by the GPU generators

inline constexpr int64_t kWarp = 32;

// Vector width, in elements, of a thread's accesses: the largest with which the widest element type
// fits one access and that divides `row`. Only arrays of at least `count` elements count.
int64_t LanesFor(const FusedRegion& region, const Machine& machine, int64_t row, int64_t count);
// The smallest power of two that is at least x (x >= 1).
int64_t PowerAbove(int64_t x);
int64_t CeilDiv(int64_t x, int64_t y);

// Calls body(lane) for each lane, in a vector loop if there are several.
template <typename Body>
void ForLanes(KernelBuilder& b, int64_t lanes, Body&& body) {
  if (lanes == 1) return body(b.Index(0));
  b.For("l", LoopRole::kVector, b.Index(lanes), body);
}

// Block size for `count` threads: `most`, less if there would be too few blocks for the SMs, but at
// least `fewest`.
int64_t ThreadsFor(int64_t count, int64_t most, int64_t fewest, const Machine& machine);

// One thread for each of `count` indices, in blocks of `threads`: body(index). Returns the number
// of blocks.
template <typename Body>
int64_t ForThreads(KernelBuilder& b, int64_t count, int64_t threads, Body&& body) {
  int64_t blocks = CeilDiv(count, threads);
  b.For("block", LoopRole::kGrid, b.Index(blocks), [&](Scalar g) {
    b.For("t", LoopRole::kThread, b.Index(threads), [&](Scalar t) {
      Scalar number = g * b.Index(threads) + t;
      b.If(number < b.Index(count), [&] { body(number); });
    });
  });
  return blocks;
}

// Final steps for all GPU kernels: alignment of arrays, 32-bit indices where they suffice.
void FinishKernel(Kernel& kernel);
// The kernel of a region after all statements are emitted, or the emitter's failure.
BuildOutcome FinishBlocks(KernelBuilder& b, const ElementEmitter& emitter,
                          const FusedRegion& region, int64_t grid);

}  // namespace tokamak::gpu
