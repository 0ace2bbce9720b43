#pragma once

#include <optional>

#include "ir/ir.h"

namespace tokamak {

// The attributes of an instruction as its MLIR op has them (the inverse of the
// converters in mlir_attrs*.cc), without symbols. nullopt when the struct has
// no form in any dialect.
std::optional<AttrDict> MlirAttrsOf(const Instr& instr);

}  // namespace tokamak
