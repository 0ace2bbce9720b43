#pragma once

#include <string>
#include <vector>

#include "gen/generator.h"
#include "gen/reducer.h"

// What row kernels of every machine share.

namespace tokamak {

// The reductions of a region, those of a level after those that they need the results of. All fold
// rows of one length.
struct RowLevels {
  std::vector<std::vector<Reducer>> levels;
  int64_t rows = 0, row = 0;
};

// Why the region's reductions are not such, in words; "" when they are. `any`: also where other
// dimensions than the last are folded, so that elements of a row are apart, and rows between each
// other.
std::string FindRowLevels(const Region& region, RowLevels& found, bool any = false);

// The coordinates of an element of a row in a reduction's inputs.
Coordinates RowElement(KernelBuilder& b, const Reducer& reducer, Scalar row, Scalar element);

}  // namespace tokamak
