#pragma once

#include <cstdint>

#include "kernel/kernel.h"

namespace tokamak {

// A number for the form of a kernel: equal for kernels that compute the same in the same way, in
// every process and on every machine. Names and notes do not count, nor does the order in which
// values were made, nor the order of the terms of an index. Facts about arguments and extents do.
uint64_t HashOf(const Kernel& kernel);

}  // namespace tokamak
