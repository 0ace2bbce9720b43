#pragma once

#include <optional>

#include "ir/ir.h"

namespace tokamak {

// Returns the attributes of an instruction as its MLIR op has them (the inverse of the converters
// in mlir_attrs*.cc), without symbols. Returns nullopt if no dialect can express the struct.
std::optional<AttrDict> MlirAttrsOf(const Instr& instr);

}  // namespace tokamak
