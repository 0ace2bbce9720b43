#pragma once

#include "driver/executable.h"
#include "pjrt/compile_options.h"
#include "support/result.h"

namespace tokamak {

// The options of a compilation: the environment's, then those of
// jax.jit(f, compiler_options={"tokamak_...": ...}). TK6106 names the nearest one for a tokamak_*
// that does not exist; options of others are not looked at.
Result<CompileOptions> OwnOptions(const PjrtCompileOptions& options);

}  // namespace tokamak
