#pragma once

#include <string>
#include <vector>

#include "gen/generator.h"
#include "gen/reducer.h"

// Shared by the row kernels of CPUs and GPUs. In a softmax, level 0 is the maximum, level 1 the sum
// of exponentials that depends on it; each level is one pass over the row.

namespace tokamak {

// The reductions of a region by dependence: a level uses results of earlier levels only. All reduce
// rows of one length.
struct RowLevels {
  std::vector<std::vector<Reducer>> levels;
  int64_t rows = 0, row = 0;
};

// Returns why the region's reductions do not have this form, empty if they do. `any`: accept
// reductions over other dimensions than the minor ones, whose rows are strided.
std::string FindRowLevels(const FusedRegion& region, RowLevels& found, bool any = false);

// The coordinates of a row's element in a reduction's inputs.
Coordinates RowElement(KernelBuilder& b, const Reducer& reducer, Scalar row, Scalar element);

}  // namespace tokamak
