#pragma once

#include <string>

#include "kernel/kernel.h"

namespace tokamak {

// All of a kernel but its names and notes, as bytes: equal for kernels that are the same value by
// value, and for no others. A key under which something that was made of a kernel is found again;
// hash.h has a number that also kernels written in another order share, too short for that.
std::string FormOf(const Kernel& kernel);

}  // namespace tokamak
