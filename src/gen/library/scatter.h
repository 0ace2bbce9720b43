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

// Whether the runtime's function (runtime/scatter.h) computes the instruction on CPUs: a scatter
// for which CanUseRuntimeScatter holds, whose array, indices (s32) and updates are 1-d, with one
// index per update (index_vector_dim 1).
bool UsesRuntimeScatter(const Instr& scatter);
// Whether it does, or would after linearize-scatters. The instruction must be a scatter. All of:
//   * it has a kernel (WhyNoScatterKernel), start indices, and no control dependencies,
//   * each update is a single element,
//   * it has at least kLinearScatterMinUpdates updates, and the array at least
//     kLinearScatterMinElements and at most INT32_MAX elements (scatter.cc),
//   * it has fewer than kSomeBatches batches: the kernel distributes more of them over threads,
//   * the function supports its op (LinearScatterOpOf) for the element type.
bool CanUseRuntimeScatter(const Instr& scatter);

}  // namespace tokamak
