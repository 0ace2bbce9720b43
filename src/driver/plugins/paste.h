#pragma once

#include <span>
#include <string>

#include "ir/ir.h"
#include "support/result.h"

// Copies instructions between modules.

namespace tokamak {

// Copies an instruction of another module, with the computations that it calls, and gives the copy
// the origins of `like`.
Instr* CopyAcross(const Instr& instr, Computation& to, std::vector<Instr*> operands,
                  const Instr& like);

// Copies the body of an entry of another module beside `like`; `arguments` replace its parameters.
// Returns the copy of its root. Error: number or shapes of the arguments.
Result<Instr*> PasteEntry(const Computation& entry, Instr& like, std::span<Instr* const> arguments);

// The instruction that a snippet of HLO text builds (tok_plugin_host::build).
Result<Instr*> BuildFromText(Instr& like, const std::string& text,
                             std::span<Instr* const> operands);

}  // namespace tokamak
