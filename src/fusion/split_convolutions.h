#pragma once

#include "cost/machine.h"
#include "explain/decision.h"
#include "ir/ir.h"

namespace tokamak {

// A convolution of an input with holes (a transposed one; the gradient of one with strides) becomes
// as many without as there are ways for the window to lie over the holes, each with the taps that
// meet an element then: of a dilation by 2 in both directions four, with a quarter of the products
// in all. Small ones stay: their launches cost more.
void SplitConvolutions(Module& module, const Machine& machine, DecisionLog& log);

}  // namespace tokamak
