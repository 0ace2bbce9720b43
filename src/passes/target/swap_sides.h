#pragma once

#include "ir/ir.h"
#include "rewrite/pass.h"

namespace tokamak {

// If a dot is transposed so that the dimensions of lhs come last, exchanges its operands: rows are
// then written contiguously. Returns whether it did. Record contraction.swap-sides.
bool SwapSides(Instr& dot, PassContext& context);

}  // namespace tokamak
