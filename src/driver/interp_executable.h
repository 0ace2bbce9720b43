#pragma once

#include <memory>

#include "driver/compilation.h"
#include "driver/executable.h"
#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// Whether the interpreter runs the module on these devices: TK6108 where it would have to be
// partitioned first.
Status CheckInterpreted(const Module& module, const TargetMesh& mesh);
// Microseconds of an interpreted run, roughly: the first runs correct it.
double InterpretedMicros(const Module& module);
bool InterpretedTimeDependsOnData(const Module& module);

// An executable that interprets the compilation's module.
Result<std::shared_ptr<const Executable>> MakeInterpExecutable(
    std::shared_ptr<const Compilation> compilation);

}  // namespace tokamak
