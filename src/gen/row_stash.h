#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "gen/region.h"

namespace tokamak {

// The loops over the elements of a row, in the order in which they run, and what each needs.
struct RowLoop {
  std::vector<const Instr*> roots;  // arrays with an element for each of the row
  std::vector<const Instr*> makes;  // kept by this loop for later ones
  std::vector<const Instr*> takes;  // kept by earlier ones
};

// Finds values that several loops of a row need and that cost more to compute again than to keep
// for as long as the row takes. `dims`: of the arrays whose elements the loops run over. At most
// `max_bytes` are kept for rows of `row` elements.
void FindKept(const Region& region, const Dims& dims, int64_t row, int64_t max_bytes,
              std::vector<RowLoop>& loops);

}  // namespace tokamak
