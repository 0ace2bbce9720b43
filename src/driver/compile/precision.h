#pragma once

#include "ir/ir.h"

namespace tokamak {

// Sets the highest precision on dots and convolutions without an explicit precision: on a GPU, f32
// operands then keep all their bits. Same as jax_default_matmul_precision=highest.
void AskForPrecision(Module& module);

}  // namespace tokamak
