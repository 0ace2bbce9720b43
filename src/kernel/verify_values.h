#pragma once

#include "kernel/kernel.h"
#include "kernel/write.h"
#include "support/result.h"

namespace tokamak {

// The part of VerifyKernel that needs no statements: arrays, extents, and each value by itself.
// After it, numbers are in range and operands older than users.
Status VerifyValues(const Kernel& kernel, const KernelPlaces* places);

}  // namespace tokamak
