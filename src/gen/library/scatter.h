#pragma once

#include "ir/ir.h"

// Which scatters are calls of the runtime's scatter function. That function computes linear
// scatters: updates are single elements of a 1-d array, each at one index instead of an index
// tuple.

namespace tokamak {

// The combining ops of the runtime's scatter; nullopt for scatters with other ops. "Linear" is said
// of the indices, not of the op. LinearScatterOpOf looks at the op only.
enum class LinearScatterOp : uint8_t { kSet, kAdd, kMultiply, kMinimum, kMaximum };
std::optional<LinearScatterOp> LinearScatterOpOf(const Instr& scatter);

// Whether a scatter updates many single elements of a 1-d array at linear indices that are one s32
// array: the runtime has a function for it (runtime/scatter.h). Many: kLinearScatterMinUpdates.
bool IsLinearScatter(const Instr& scatter);
// Whether it would be one if its indices were such an array (linearize-scatters).
bool MayBeLinearScatter(const Instr& scatter);

}  // namespace tokamak
