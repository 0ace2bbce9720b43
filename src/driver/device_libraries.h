#pragma once

#include "backend/cuda/gpu.h"
#include "cost/machine.h"
#include "explain/decision.h"
#include "ir/ir.h"

namespace tokamak {

// Finds out what the libraries of a GPU are to compute of a module, and says so in `machine`:
// convolutions are laid out for cuDNN, or become products or sums; of products, cuBLASLt is asked
// for only where there are any.
void PlanLibraries(cuda::Gpu& gpu, Module& module, Machine& machine, DecisionLog& log);

}  // namespace tokamak
