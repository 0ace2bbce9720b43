#pragma once

#include "kernel/kernel.h"
#include "support/result.h"

// Rules of asynchronous work (AsyncOp) and of asynchronous multiplies, beyond those of the
// statements around them (verify.h).
namespace tokamak {

// The operands of the statement are values that exist, and indices.
Status VerifyAsync(const Kernel& kernel, const Stmt& stmt);
Status VerifyAsyncMultiply(const Kernel& kernel, const Stmt& stmt);

}  // namespace tokamak
