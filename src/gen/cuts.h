#pragma once

#include <cstdint>
#include <vector>

#include "kernel/kernel.h"

// Cut points of a loop: indices where pad and concatenate conditions change. Generators build a
// trial kernel, find its cut points, and build the kernel again with the loop split there, so that
// each segment runs without the comparison.

namespace tokamak {

// Cuts of a loop into segments, count at most. Chosen: each segment repeats the code of the body.
inline constexpr size_t kMaxCuts = 8;
// Ratio by which segments may increase the code, beyond a size that does not matter. Chosen: three
// copies still fit the instruction cache where one does; beyond, fetching costs what is saved.
inline constexpr size_t kMaxGrowth = 3;

// The values i at which a comparison of the variable of a trial kernel's loop with a constant has
// another result than at i - 1: ascending, from 1 to extent - 1. Comparisons that also depend on
// other variables are ignored.
std::vector<int64_t> CutsOf(const Kernel& kernel, ValueId variable, int64_t extent);

// The cuts rounded to multiples of `unit`. A cut that is not a multiple becomes two, rounded down
// and rounded up: the unit that contains it is a segment of its own, in which the comparison stays.
std::vector<int64_t> AlignedCuts(const std::vector<int64_t>& cuts, int64_t unit, int64_t extent);

}  // namespace tokamak
