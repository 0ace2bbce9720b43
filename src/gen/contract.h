#pragma once

#include <string>

#include "gen/element.h"
#include "gen/generator.h"

// Which dots the tiled contract generator computes, and in which precision.

namespace tokamak {

// Whether the contract generator computes this dot on this machine.
bool IsForContract(const Instr& dot, const Machine& machine);
// How often the kernel recomputes each element of an operand that it produces itself.
int64_t TimesMade(const Instr& dot, size_t operand, const Machine& machine);
// The element type of the factors.
ScalarType ContractType(const Instr& dot, const Machine& machine);
// Whether factors are rounded to TF32: f32 dots at default precision, and factors that TF32
// represents exactly.
bool MultipliesTf32(const Instr& dot, const Machine& machine);

// Stores a root at one element of the dot's result, with these coordinates and this linear index. A
// root that moves whole rows (a transpose of the major dimensions) is stored at its destination.
void StoreContractRoot(KernelBuilder& b, ElementEmitter& emitter, const Instr& root,
                       const Instr& dot, const Coordinates& at, Scalar linear);

}  // namespace tokamak
