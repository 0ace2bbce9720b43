#pragma once

#include <string>

#include "gen/element.h"
#include "gen/generator.h"

namespace tokamak {

// Whether a dot is one for the contract generator on this machine.
bool IsForContract(const Instr& dot, const Machine& machine);
// How often each element of an operand is made, when the kernel computes it.
int64_t TimesMade(const Instr& dot, size_t operand, const Machine& machine);
// The type that its elements are multiplied in.
ScalarType ContractType(const Instr& dot, const Machine& machine);
// Whether the elements are rounded to tf32 before: of f32 at its default precision, and of what
// tf32 holds as it is.
bool MultipliesTf32(const Instr& dot, const Machine& machine);

// Writes a root at an element of the contraction's result, of these coordinates and this number. A
// root that moves whole rows elsewhere is written there.
void StoreContractRoot(KernelBuilder& b, ElementEmitter& emitter, const Instr& root,
                       const Instr& dot, const Coordinates& at, Scalar linear);

}  // namespace tokamak
