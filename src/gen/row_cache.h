#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "gen/region.h"

// Decides which intermediate values a CPU row kernel caches between its loops over a row. (The GPU
// counterpart is gpu/cached_values.h.)

namespace tokamak {

// One of the loops over the elements of a row, in execution order.
struct RowLoop {
  // The values that the loop evaluates at every element of the row: inputs of reductions, or those
  // roots of the region (FusedRegion::roots) that have one element per row element.
  std::vector<const Instr*> evaluated;
  std::vector<const Instr*> cached_here;      // values that this loop caches for later loops
  std::vector<const Instr*> read_from_cache;  // values that earlier loops cached
};

// Finds values that several loops of a row use and that cost more to recompute than to cache while
// the row is processed. `dims`: dimensions of the arrays that the loops iterate over. Caches at
// most `max_bytes` for rows of `row_length` elements.
void FindCachedValues(const FusedRegion& region, const Dims& dims, int64_t row_length,
                      int64_t max_bytes, std::vector<RowLoop>& loops);

}  // namespace tokamak
