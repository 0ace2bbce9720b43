#pragma once

#include <cstdint>

#include "kernel/kernel.h"

namespace tokamak {

// A structural hash of a kernel, stable across processes and machines. Kernels that perform the
// same computation in the same way have equal hashes: names, notes, the order in which values were
// created and the order of the terms of an index do not matter. Facts about arguments and extents
// do.
uint64_t HashOf(const Kernel& kernel);

}  // namespace tokamak
