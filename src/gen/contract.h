#pragma once

#include <string>

#include "gen/generator.h"

namespace tokamak {

// Whether a dot is one for the contract generator on this machine.
bool IsForContract(const Instr& dot, const Machine& machine);
// How often each element of an operand is made, when the kernel computes it.
int64_t TimesMade(const Instr& dot, size_t operand, const Machine& machine);
// The type that its elements are multiplied in.
ScalarType ContractType(const Instr& dot, const Machine& machine);

}  // namespace tokamak
