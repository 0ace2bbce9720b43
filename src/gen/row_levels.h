#pragma once

#include <string>
#include <vector>

#include "gen/generator.h"
#include "gen/reducer.h"

// Groups the reductions of a region into levels by dependence, for the row kernels of CPUs and
// GPUs. Each level is one pass over the row: in a softmax, level 0 is the maximum, level 1 the sum
// of exponentials that depends on it. A GPU row kernel can merge these two passes
// (online_sum_exp.h).

namespace tokamak {

// The reductions of a region by dependence: a level uses results of earlier levels only. All
// reductions have the same number of rows, of the same length.
struct RowLevels {
  std::vector<std::vector<Reducer>> levels;
  int64_t row_count = 0, row_length = 0;  // number of rows; elements of a row
};

// Fills `found`. Returns why the region's reductions do not have this form, an empty string if they
// do. `allow_strided`: accept reductions over other dimensions than the minor ones, whose rows are
// strided.
std::string AnalyzeRowLevels(const FusedRegion& region, RowLevels& found,
                             bool allow_strided = false);

// The coordinates in a reduction's inputs of element `element` of row `row` (both are indices).
Coordinates RowElementCoordinates(KernelBuilder& b, const Reducer& reducer, Scalar row,
                                  Scalar element);

}  // namespace tokamak
