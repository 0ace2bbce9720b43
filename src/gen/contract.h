#pragma once

#include <string>

#include "gen/element.h"
#include "gen/generator.h"

// The contract generator (GeneratorKind::kContract; "contract" is the verb, a dot is a contraction)
// computes dots in tiles: which dots, and in which precision. Whether a dot goes to it or to a
// library is decided in library/dot.h, which lists all predicates in order.

namespace tokamak {

// Whether the contract generator can compute this dot on this machine: its types are supported and
// it is not too small to tile. Says nothing about whether a library is faster.
bool CanUseContract(const Instr& dot, const Machine& machine);
// How often a contract kernel evaluates each element of an operand whose producer is fused into it:
// once for every tile along the other operand's free dimension.
int64_t RecomputeCount(const Instr& dot, size_t operand, const Machine& machine);
// The scalar type in which the factors are multiplied.
ScalarType FactorTypeOf(const Instr& dot, const Machine& machine);
// Whether the factors are multiplied as TF32 (GPUs). True for f32 dots at default precision if the
// machine allows it, and at any precision if both operands have a type that TF32 represents exactly
// (16 bits or fewer).
bool MultipliesTf32(const Instr& dot, const Machine& machine);

// Evaluates and stores the element of a root that belongs to one element of the dot's result, with
// these coordinates and this linear index. A root has as many elements as the dot: the same index,
// or, if the root transposes the major dimensions of the result, the transposed coordinates. Fails
// the emitter for other transposes.
void StoreContractRoot(KernelBuilder& b, ElementEmitter& emitter, const Instr& root,
                       const Instr& dot, const Coordinates& at, Scalar linear);

}  // namespace tokamak
