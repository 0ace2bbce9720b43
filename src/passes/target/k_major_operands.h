#pragma once

#include "ir/ir.h"
#include "rewrite/pass.h"

namespace tokamak {

// Stores operands of a dot that is multiplied in TF32 or in 8-bit types with K contiguous, as
// tensor cores read them, if that is faster than to convert their tiles in the dot's kernel.
// Operands of TF32 are stored in f32. Returns whether it did. Record contraction.copy-operand.
bool MakeKMajor(Instr& dot, PassContext& context);

}  // namespace tokamak
