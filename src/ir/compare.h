#pragma once

#include <string>

#include "ir/ir.h"

namespace tokamak {

bool EqualAttrs(Op op, const Attrs& a, const Attrs& b);
uint64_t HashAttrs(Op op, const Attrs& attrs);

// Equal IR: same computations, instructions, shapes, attributes, shardings,
// aliases, in the same order, whatever the names and places in the text.
bool Equal(const Module& a, const Module& b);
// Empty when equal, else the first difference in words.
std::string FirstDifference(const Module& a, const Module& b);

// Equal modules have equal hashes. Names, positions and origins do not count.
uint64_t StructuralHash(const Module& module);
uint64_t StructuralHash(const Computation& computation);

// The same instructions in the same order, shardings and all, calling the very
// same computations, whatever the names and places. Linear in the computations.
bool SameBody(const Computation& a, const Computation& b);
// Equal for computations that are the SameBody.
uint64_t BodyHash(const Computation& computation);
// Nothing that a pass must keep tells the two instructions apart: shardings,
// frontend attributes, discardable attributes, backend_config, control.
bool SameExtras(const Instr& a, const Instr& b);

}  // namespace tokamak
