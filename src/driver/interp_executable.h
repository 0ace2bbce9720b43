#pragma once

#include <memory>

#include "driver/compilation.h"
#include "driver/executable.h"
#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// Whether the interpreter can run the module on these devices. Returns TK6108 if the module would
// have to be partitioned first.
Status CheckInterpreted(const Module& module, const TargetMesh& mesh);
// Rough estimate of an interpreted run in microseconds; corrected by the first runs.
double InterpretedMicros(const Module& module);
bool InterpretedTimeDependsOnData(const Module& module);

// An executable that interprets the compilation's module.
Result<std::shared_ptr<const Executable>> MakeInterpExecutable(
    std::shared_ptr<const Compilation> compilation);

}  // namespace tokamak
