#pragma once

#include <optional>
#include <string>

#include "gen/element.h"
#include "gen/generator.h"
#include "gen/scan.h"

// The loop nests of GPUs: blocks of threads, team memory and barriers. What one element is, is the
// same code as on a CPU (element.h, reducer.h, roots.h ...).

namespace tokamak::gpu {

BuildOutcome BuildLoop(const Region& region, const Machine& machine, const std::string& name);
// Regions of kLoop whose roots are of several sizes, and why a region is none, in words; "" when it
// is one.
BuildOutcome BuildStacked(const Region& region, const Machine& machine, const std::string& name);
std::string WhyNotStacked(const Region& region);
// Only regions of kLoop that read a large input across their rows.
BuildOutcome BuildTranspose(const Region& region, const Machine& machine, const std::string& name);
BuildOutcome BuildRows(const Region& region, const Machine& machine, const std::string& name);
BuildOutcome BuildColumns(const Region& region, const Machine& machine, const std::string& name);
BuildOutcome BuildContract(const Region& region, const Machine& machine, const std::string& name);
BuildOutcome BuildScan(const Region& region, const Machine& machine, const std::string& name);
// Whether threads share the rows of a scan; else each thread goes along rows of its own.
bool IsShared(const Scan& scan);
BuildOutcome BuildScatter(const Region& region, const Machine& machine, const std::string& name);
// Scatters whose windows of one place stand side by side (scatter_runs.cc).
BuildOutcome BuildScatterRuns(const Region& region, const Machine& machine,
                              const std::string& name);
// Scatters that count the elements of batches by a few numbers (counts.cc).
bool IsCounts(const Instr& scatter);
BuildOutcome BuildCounts(const Region& region, const Machine& machine, const std::string& name);

BuildOutcome BuildRounds(const RoundsRegion& region, const Machine& machine,
                         const std::string& name);
// Only loops whose elements meet in products: threads of a team share them out (rounds_spread.cc).
BuildOutcome BuildSpreadRounds(const RoundsRegion& region, const Machine& machine,
                               const std::string& name);
BuildOutcome BuildSort(const Region& region, const Machine& machine, const std::string& name);
// Why a sort has no kernel, in words; nothing when it has one.
std::optional<std::string> WhyNoSort(const Instr& sort);
// Sorts of lines of words by a digit, which a team holds (digit_sort.cc), the longest such lines,
// and the shortest one that is not shorter than another.
bool IsDigitSort(const Instr& sort);
int64_t DigitLine(int64_t length);
int64_t LongestDigitLine(int64_t bytes_of_word);
BuildOutcome BuildDigitSort(const Region& region, const std::string& name);
// Sorts of long lines of words by a digit of up to 8 bits that capture s32[lines, digits,
// stretches]: where the words of each digit of each stretch begin in all sorted lines, one behind
// the other (placed_sort.cc); and words of a stretch, where there are so many in all.
bool IsPlacedSort(const Instr& sort);
int64_t PlacedStretch(int64_t bytes_of_word, int64_t words, const Machine& machine);
BuildOutcome BuildPlacedSort(const Region& region, const std::string& name);
// Sorts of short lines (line_network.h: IsNetworkSort), a thread each.
BuildOutcome BuildNetworkSort(const Region& region, const Machine& machine,
                              const std::string& name);
// Whether what makes the operands of a sort, element by element, may be in its kernel: a sort by
// comparing looks at elements more than once. Of a region, whether it is such a sort and no more.
bool LoadsOnce(const Instr& sort);
bool TakesProducers(const Region& region);
// Elements of a line that a team sorts; longer ones are merged from halves.
int64_t LongestStretch(const Instr& sort);

// ---- shared by them

inline constexpr int64_t kWarp = 32;

// Elements that a thread takes at once: as many of the widest as one access holds, and such as
// divide `row`. Only arrays of `count` elements or more are looked at.
int64_t LanesFor(const Region& region, const Machine& machine, int64_t row, int64_t count);
// The smallest power of two that is not below x (x >= 1).
int64_t PowerAbove(int64_t x);
int64_t CeilDiv(int64_t x, int64_t y);

// Runs body(lane) for each lane: in a vector loop, if there are several.
template <typename Body>
void ForLanes(KernelBuilder& b, int64_t lanes, Body&& body) {
  if (lanes == 1) return body(b.Index(0));
  b.For("l", LoopRole::kVector, b.Index(lanes), body);
}

// Threads of a team where each thread does one of `count` things: up to `most`, fewer where there
// would be too few teams for the machine, but `fewest`.
int64_t ThreadsFor(int64_t count, int64_t most, int64_t fewest, const Machine& machine);

// A thread for each of `count` things, in teams of so many: body(number). Gives the teams.
template <typename Body>
int64_t ForThreads(KernelBuilder& b, int64_t count, int64_t threads, Body&& body) {
  int64_t teams = CeilDiv(count, threads);
  b.For("block", LoopRole::kGrid, b.Index(teams), [&](Scalar g) {
    b.For("t", LoopRole::kThread, b.Index(threads), [&](Scalar t) {
      Scalar number = g * b.Index(threads) + t;
      b.If(number < b.Index(count), [&] { body(number); });
    });
  });
  return teams;
}

// What all kernels of a GPU have: aligned arrays, and indices of 32 bits where these hold them.
void FinishKernel(Kernel& kernel);
// The kernel of a region whose statements are all made, or the emitter's fault.
BuildOutcome FinishTeams(KernelBuilder& b, const ElementEmitter& emitter, const Region& region,
                         int64_t grid);

}  // namespace tokamak::gpu
