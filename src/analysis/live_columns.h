#pragma once

#include <optional>

#include "analysis/dot_chains.h"

namespace tokamak {

// The columns of a row whose weights may differ from zero, from comparisons of the indices of rows
// and columns, as in causal masks:
//
//     row + first <= column <= row + last
//
// Every row has such a column. nullopt: no limit.
struct LiveColumns {
  std::optional<int64_t> first, last;
  // The select that masks exactly the other columns, and its operand for live ones; null if its
  // mask depends on more.
  const Instr* select = nullptr;
  size_t live_operand = 0;
};

// Masked scores must be so low that their exponentials vanish: -infinity, or a finite number beside
// which scores are not as low. All values of rows follow from live columns.
LiveColumns LiveColumnsOf(const DotChain& chain, const RunningChain& running,
                          const DimsAlong& along);

}  // namespace tokamak
