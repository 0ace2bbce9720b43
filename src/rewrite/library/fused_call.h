#pragma once

#include "ir/ir.h"
#include "rewrite/pass.h"

namespace tokamak {

// Whether the program demands that what the instruction calls becomes one kernel: a custom call of
// jax.experimental.fused, or a call with the frontend attribute MUST_FUSE.
bool IsFusedCall(const Instr& instr);

// Makes it a plain call of a body of its own, whose instructions form one require_fused constraint
// (fusion/constraints.h). `number` tells the calls of a program apart.
Changed ReadFusedCall(Instr* call, int number, PassContext& context);

}  // namespace tokamak
