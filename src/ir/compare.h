#pragma once

#include <string>

#include "ir/ir.h"

namespace tokamak {

// Comparison and hashing of attributes, modules and computations.
bool EqualAttrs(Op op, const Attrs& a, const Attrs& b);
uint64_t HashAttrs(Op op, const Attrs& attrs);

// Structural equality: the same computations, instructions, shapes, attributes, shardings and
// aliases in the same order. Names and text positions are ignored.
// Empty if equal, otherwise a description of the first difference.
std::string FirstDifference(const Module& a, const Module& b);

// Equal modules have equal hashes. Names, positions and origins are ignored.
uint64_t StructuralHash(const Module& module);
uint64_t StructuralHash(const Computation& computation);

// Whether both contain the same instructions in the same order, including shardings, and call
// identical computations (compared by pointer). Names and text positions are ignored. Linear in the
// computations.
bool SameBody(const Computation& a, const Computation& b);
// Computations for which SameBody holds have equal hashes.
uint64_t BodyHash(const Computation& computation);
// Whether the two instructions agree in everything that a pass must preserve: shardings, frontend
// attributes, discardable attributes, backend_config, control dependences.
bool SameExtras(const Instr& a, const Instr& b);

}  // namespace tokamak
