#pragma once

#include "cost/machine.h"
#include "gen/sort_schedule.h"

// Schedules of top-k on GPUs: the first k of the words of each line (passes/target/top_k.h), in
// order. Words are distinct.

namespace tokamak {

enum class TopKMethod : uint8_t {
  kReductions,  // k reductions, each of which finds the least word after the previous one
  kSort,        // a sort; its first k words are kept
  // One reduction finds the least word of each group of adjacent elements. The first k words are in
  // the k groups whose least words come first: a top-k of the groups' least words, then a top-k of
  // the elements of these groups.
  kGroups,
};

// Defaults: groups of 1 element, the structure of a top-k without groups.
struct TopKSchedule {
  TopKMethod method = TopKMethod::kSort;
  int64_t group = 1;  // kGroups: elements per group, a power of two

  bool operator==(const TopKSchedule&) const = default;
};

// What the time of a top-k depends on.
struct TopKSize {
  // [lines, length] of words of a key and an index. SortSize::bytes: of an element from which a
  // word is computed; SortSize::key_bits: of the key alone.
  SortSize words;
  int64_t k = 1;
  int index_bits = 0;
  // Whether words are in the order of their indices: then groups of them can be found again, and a
  // stable sort need not compare indices.
  bool in_order = true;
};

// The words of TopKMethod::kSort.
SortSize WordsToSort(const TopKSize& size);
// "groups of 64", for reports and tests.
std::string ToString(const TopKSchedule& schedule);
// All schedules that fit, the estimated time of one in microseconds, with the cheapest schedules
// for its parts, and the cheapest schedule.
std::vector<TopKSchedule> TopKSchedules(const TopKSize& size);
double MicrosOf(const TopKSize& size, const TopKSchedule& schedule, const Machine& machine);
TopKSchedule ChooseTopK(const TopKSize& size, const Machine& machine);

}  // namespace tokamak
