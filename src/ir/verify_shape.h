#pragma once

#include <string_view>

#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// Whether the shape can exist: sizes within the limits, a layout that orders
// its dimensions, possible quantization parameters. `what` begins the message.
Status VerifyShape(const Shape& shape, std::string_view what);

// Whether every mesh and axis that the instruction names exists.
Status VerifyMeshes(const Instr& instr, const Module& module);

// What stands in the head of the module: entry, aliases, layouts of the entry.
Status VerifyModuleHeader(const Module& module);

}  // namespace tokamak
