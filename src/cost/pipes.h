#pragma once

#include "cost/work.h"
#include "kernel/kernel.h"

namespace tokamak {

// The cost table of primitives. WorkOf (kernels) and AddElementOp (instructions of a plan) share
// it, so both count the same operations.

// Adds a pure primitive other than a load, executed `times` times for `lanes` lanes. `lanes` may be
// a fraction of a vector.
void AddPrim(Work& work, const Kernel& kernel, ValueId id, double times, double lanes,
             const Machine& machine);

// Vector registers that `lanes` elements of this width occupy; on a GPU, the number of elements.
double VectorsOf(double lanes, int bits, const Machine& machine);

}  // namespace tokamak
