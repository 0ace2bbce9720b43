#pragma once

#include "driver/compile/target.h"
#include "ir/ir.h"
#include "support/result.h"

// Programs that the interpreter runs as a whole: whether it can, and how long it takes.

namespace tokamak {

// Whether the interpreter can run the module on these devices. Returns TK6108 if the module would
// have to be partitioned first.
Status CheckInterpreted(const Module& module, const TargetMesh& mesh);
// Rough estimate of an interpreted run in microseconds; corrected by the first runs.
double InterpretedMicros(const Module& module);
bool InterpretedTimeDependsOnData(const Module& module);

}  // namespace tokamak
