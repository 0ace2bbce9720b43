#pragma once

#include <memory>
#include <string>

#include "driver/compile/compilation.h"
#include "ir/ir.h"

namespace tokamak {

// Lints of the programs that this process compiles, for warnings under JAX (TOKAMAK_LINT). They are
// kept until they are taken, so that no thread of ours calls into Python.

// kCostly, without the variable: what the compiled program shows, which costs little; Python warns
// of what exceeds a tenth of a call.
enum class LintEvents { kNone, kCostly, kAll };
// kNone before the first TakeLints.
LintEvents WantedLintEvents();

// Keeps {"name": "jit_f", "call_us": 12.5, "lints": [...]}, with the lints of `tokamak lint
// --json`, if the compilation has any. `before`: the program as the user wrote it; null for
// kCostly.
// Then a program is passed over if its lints would take more than a fiftieth of the time that this
// process has spent on compiling. `compile_us` is that of this program.
void KeepLints(const std::shared_ptr<const Compilation>& compilation, const Module* before,
               double compile_us);

// What was kept since the last call, as a JSON list.
std::string TakeLints();

}  // namespace tokamak
