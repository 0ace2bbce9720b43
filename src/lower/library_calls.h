#pragma once

#include <memory>

#include "ir/ir.h"
#include "runtime/library_call.h"

namespace tokamak {

// What does an instruction for which the runtime has a function (IsForRuntime).
std::shared_ptr<const LibraryCall> LibraryCallOf(const Instr& instr);

}  // namespace tokamak
