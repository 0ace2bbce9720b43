#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cost/machine.h"
#include "gen/generator.h"
#include "gen/line_sort.h"
#include "gen/sort_keys.h"

// Schedules of sorts: how the lines (line_sort.h) of a sort instruction are sorted. A schedule is
// plain data. SortSchedules lists those that fit a sort on a machine, MicrosOf estimates the time
// of each, and ChooseSort takes the cheapest. There are three methods for any number and length of
// lines:
//
//   method     orders                  CPU                              GPU
//   kNetwork   total preorders         vector lanes are lines           a thread has one or a few
//                                                                       lines, in registers
//   kMerge     any comparator          one task per line                a block sorts a tile in
//                                                                       shared memory; further
//                                                                       kernels merge pairs of
//                                                                       tiles
//   kRadix     one key that fits into  a function of the runtime, any   a block sorts a tile in
//              a word with a payload   number of keys                   shared memory by 4 bits per
//                                      (runtime/sort.h)                 pass; or a set of kernels
//                                      per
//                                                                       digit of 8 bits
//
// The compiler pass legalize-sorts rewrites a sort whose schedule needs packed keys or several
// kernels into instructions that are one kernel each.

namespace tokamak {

enum class SortMethod : uint8_t { kNetwork, kMerge, kRadix };

// Defaults: 1 of each size and count, the structure of a sort that is not divided in that way.
struct SortSchedule {
  SortMethod method = SortMethod::kMerge;
  // kRadix on a GPU: the instruction is rewritten to a sort of words (PackedKeyOf) first.
  bool packs_keys = false;
  // kMerge: elements are compared in memory, not in shared memory: on CPUs, and if the halves of
  // each line are already sorted.
  bool in_memory = false;
  // kRadix on a GPU: blocks sort segments of lines, with several kernels per digit.
  bool by_segments = false;
  int64_t tile = 1;     // elements of a line, with padding, that one task sorts
  int64_t threads = 1;  // per line of a block
  int64_t items = 1;    // elements per thread
  int64_t lines = 1;    // lines of a task that are sorted at once; kNetwork: per thread
  int64_t vector = 1;   // kNetwork: elements per access, or lanes
  int digit_bits = 0;   // kRadix on a GPU: bits per pass

  bool operator==(const SortSchedule&) const = default;
};
// "merge tile=2048 threads=256 items=8", for reports and tests.
std::string ToString(const SortSchedule& schedule);

// What the time of a sort depends on.
struct SortSize {
  int64_t lines = 1, length = 1;
  int64_t operands = 1, keys = 0;   // keys: 0 if the comparator is no order of operands
  int64_t bytes = 0;                // of an element of all operands
  int64_t compared_bytes = 0;       // of those that are compared, in their compute types
  int word_bits = 0, key_bits = 0;  // of a sort of words (PackedKeyOf); 0: no such sort
  // Words may also be compared as a whole: they are distinct, and words with the same key ascend.
  bool compares_words = false;
};
SortSize SizeOf(const Instr& sort);

// All schedules that fit a sort, of any number of kernels. Empty: the sort has no kernel and no
// runtime function.
std::vector<SortSchedule> SortSchedules(const Instr& sort, const Machine& machine);
// Those of one kernel for the instruction as it is, possibly with fused producers.
std::vector<SortSchedule> SortKernelSchedules(const FusedRegion& region, const Machine& machine);
// Those of words, [lines, length] of u32 or u64, by `key_bits` of their bits (passes/target/
// radix_sort.h): radix sorts, a merge sort, and a network if words may be compared as a whole.
std::vector<SortSchedule> WordSortSchedules(const SortSize& words, const Machine& machine);

// The estimated time of a sort with a schedule, in microseconds, with the cost model of kernels.
double MicrosOf(const SortSize& size, const SortSchedule& schedule, const Machine& machine);
// The cheapest of the schedules, the first of equally cheap ones. There must be one.
SortSchedule CheapestOf(const std::vector<SortSchedule>& schedules, const SortSize& size,
                        const Machine& machine);

// Kernels by schedule, one per method. kRadix: GPU only (gpu/radix_sort.cc).
BuildOutcome BuildNetworkSort(const FusedRegion& region, const SortSchedule& schedule,
                              const Machine& machine, const std::string& name);
BuildOutcome BuildMergeSort(const FusedRegion& region, const SortSchedule& schedule,
                            const Machine& machine, const std::string& name);
BuildOutcome BuildRadixSort(const FusedRegion& region, const SortSchedule& schedule,
                            const std::string& name);
// The kernel of a sort with a schedule of SortKernelSchedules.
BuildOutcome BuildSort(const FusedRegion& region, const SortSchedule& schedule,
                       const Machine& machine, const std::string& name);

// Whether elementwise producers of the operands of a sort may be fused into its kernel, and whether
// a region is such a sort and its producers. GPU only.
bool CanFuseProducers(const Instr& sort, const Machine& machine);
bool IsSortWithProducers(const FusedRegion& region, const Machine& machine);

}  // namespace tokamak
