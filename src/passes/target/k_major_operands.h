#pragma once

#include "ir/ir.h"
#include "rewrite/pass.h"

namespace tokamak {

// Stores operands of a dot that is multiplied in TF32 in f32 with K contiguous, as tensor cores
// read TF32, if that is faster than to convert their tiles in the dot's kernel. Returns whether it
// did. Record contraction.copy-operand.
bool MakeKMajor(Instr& dot, PassContext& context);

}  // namespace tokamak
