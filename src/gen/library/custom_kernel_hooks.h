#pragma once

#include "gen/generator.h"
#include "gen/library/custom_kernel.h"
#include "kernel/builder.h"

// The element hooks of custom kernels as kernel IR. A hook is one grid loop over the elements of
// the operand or output; its body becomes a function of the index (driver/compile).

namespace tokamak {

// Elements of an array with hooks, at most: their index is 32 bits wide.
inline constexpr int64_t kMaxHookElements = INT32_MAX;

// Whether a hook may compute the instruction: elementwise ops and broadcasts of numbers that are
// not complex.
bool IsHookOp(const Instr& instr);

// The values that C code computes for one element of the instruction: reals of many, such as sine,
// have a slow path that C computes for every element. At most kMaxHookElements elements.
int64_t CountHookValues(const Instr& instr);

// A load hook computes one element of its root and stores it to element 0 of its last argument. A
// store hook reads the value from element 0 of the argument `output` and stores to its roots. The
// arguments are the inputs and the roots of the region.
BuildOutcome BuildLoadHook(const CustomKernelHook& hook, Dialect dialect);
BuildOutcome BuildStoreHook(const CustomKernelHook& hook, const Instr& output, Dialect dialect);

}  // namespace tokamak
