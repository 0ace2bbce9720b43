#pragma once

#include <memory>
#include <string>

#include "driver/compile/compilation.h"
#include "support/error.h"

// The pages of a folder that TOKAMAK_EXPLAIN names: one for each program of a run, and an index.
//
//   module_0001.jit_f.html           the report (page.h)
//   module_0001.jit_f.explain.json   the row of the program in the index
//   index.html                       made from all such rows of the folder
//
// Several threads and processes may share a folder. Nothing fails if it cannot be
// written.

namespace tokamak {

// `prefix`: of the files of this program, with the folder ("out/module_0001.jit_f").
// `compile_ms`: of the whole compilation, machine code included.
void WriteProgramPage(const std::string& prefix,
                      const std::shared_ptr<const Compilation>& compilation, double compile_ms);
// The row of a program that was not compiled.
void WriteFailedProgram(const std::string& prefix, const std::string& name, const Error& error);

}  // namespace tokamak
