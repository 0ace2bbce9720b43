#pragma once

#include "cost/machine.h"
#include "cost/work.h"
#include "kernel/kernel.h"

namespace tokamak {

// One thread's part of matrix multiplies. `depths`: all multiplies, times the depth of one.

// Block-wide: accumulators are in registers, and each warp loads its rows and columns from shared
// memory, 16 bytes per thread and access.
void AddBlockMultiply(Work& work, const MatrixMultiply& product, ScalarType type, double depths,
                      const Machine& machine);
// Asynchronous: it reads shared memory beside the other pipes.
void AddAsyncMultiply(Work& work, const MatrixMultiply& product, const Array& lhs, double depths);

}  // namespace tokamak
