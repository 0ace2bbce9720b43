#pragma once

#include "cost/work.h"
#include "kernel/kernel.h"

namespace tokamak {

// What one primitive of a kernel costs a machine: counted alike for kernels and for instructions of
// a plan.

// Adds a pure primitive, no load, that is computed `times` times for `lanes` lanes; a number of
// lanes may be a share of a vector.
void AddPrim(Work& work, const Kernel& kernel, ValueId id, double times, double lanes,
             const Machine& machine);

// Registers that `lanes` elements of this many bits take; on a GPU: elements.
double VectorsOf(double lanes, int bits, const Machine& machine);

}  // namespace tokamak
