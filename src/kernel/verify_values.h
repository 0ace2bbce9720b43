#pragma once

#include "kernel/kernel.h"
#include "kernel/write.h"
#include "support/result.h"

namespace tokamak {

// The part of VerifyKernel that does not look at statements: arrays, extents, and each value. If it
// succeeds, ids are in range and operands precede users.
Status VerifyValues(const Kernel& kernel, const KernelLocations* locations);

}  // namespace tokamak
