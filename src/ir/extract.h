#pragma once

#include <memory>
#include <span>
#include <string>

#include "ir/ir.h"

namespace tokamak {

// Returns a module that computes these instructions of one computation alone. Its parameters are
// `inputs`, in this order; its results are `roots`, a tuple if there are several. Operands that are
// neither (constants) are copied with their own operands, and computations that are called with
// everything that they call. Names, origins and positions stay.
std::unique_ptr<Module> ExtractModule(std::span<const Instr* const> inputs,
                                      std::span<const Instr* const> roots, std::string name);

}  // namespace tokamak
