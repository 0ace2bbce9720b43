#pragma once

#include "cost/machine.h"
#include "explain/decision.h"
#include "ir/ir.h"

namespace tokamak {

// A product whose right side (k, n) each round of a loop would put in the order that vectors
// multiply in, or read across: it is moved to that order once, before the loop,
//
//   dot(x, w)  becomes  reshape(dot(x, blocks)),  blocks (n / 16, k, 16) carried
//
// (an LSTM's step of 32 x 256 x 1024 on two Neoverse V1: 137 -> 115 us). Record contraction.blocks.
// Loops of known rounds that are no kernels as a whole. By short vectors the same is done for
// products of many rows outside of loops.
void BlockProducts(Module& module, const Machine& machine, DecisionLog& log);

}  // namespace tokamak
