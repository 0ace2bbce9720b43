#pragma once

#include <string_view>

#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// Checks that the shape is valid: sizes within the limits, a layout that is a permutation of its
// dimensions, valid quantization parameters. `what` begins the message.
Status VerifyShape(const Shape& shape, std::string_view what);

// Checks that every mesh and axis that the instruction names exists.
Status VerifyMeshes(const Instr& instr, const Module& module);

// Checks the module header: entry, aliases, layouts of the entry.
Status VerifyModuleHeader(const Module& module);

}  // namespace tokamak
