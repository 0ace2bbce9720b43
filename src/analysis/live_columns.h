#pragma once

#include <optional>

#include "analysis/dot_chains.h"

namespace tokamak {

// The columns of a row whose weights, and what else is summed, may differ from zero, from
// comparisons of the indices of rows and columns, as in causal masks:
//
//     row + first <= column <= row + last
//
// With a running exponential, every row has such a column. nullopt: no limit.
struct LiveColumns {
  std::optional<int64_t> first, last;
  // The select that masks exactly the other columns, and its operand for live ones; null if its
  // mask depends on more.
  const Instr* select = nullptr;
  size_t live_operand = 0;
  // A scalar that masks: if not null, there are limits only if it is -infinity when the kernel
  // runs.
  const Instr* masked = nullptr;
};

// Masked scores are at most this. Chosen: sums of products of bf16 are far above it, unless they
// are about to overflow; JAX masks with -2.4e38.
inline constexpr double kMaskedScore = -1e30;

// Masked scores must be so low that their exponentials vanish: -infinity, or a finite number beside
// which scores are not as low. All values of rows follow from live
// columns. `most`: of the masked scores of a running exponential.
LiveColumns LiveColumnsOf(const DotChain& chain, const RunningChain& running,
                          const DimsAlong& along, double most = kMaskedScore);

}  // namespace tokamak
