#pragma once

#include "ir/ir.h"

namespace tokamak {

// Dots and convolutions that leave their precision to the compiler ask for the highest: on a GPU
// factors of f32 then keep all their bits. As jax_default_matmul_precision=highest has it.
void AskForPrecision(Module& module);

}  // namespace tokamak
