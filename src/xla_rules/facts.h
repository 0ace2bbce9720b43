#pragma once

// Properties of instructions and fusions that XLA's fusion passes test (arXiv 2301.13062). A fusion
// is classified by the instructions it contains.

#include <cstdint>
#include <vector>

#include "ir/ir.h"

namespace tokamak::fuse {

// The users without duplicates, in a deterministic order.
std::vector<Instr*> DistinctUsers(const Instr& instr);
std::vector<Instr*> DistinctOperands(const Instr& instr);
bool HasOneUser(const Instr& instr);

// A fusion that may absorb others: kind kLoop or kInput, static arrays, no side effects, and it
// computes each of its results.
bool IsFusion(const Instr& instr);
bool IsHorizontal(const Instr& instr);
inline constexpr char kHorizontalMark[] = "fusion";  // frontend attribute: "horizontal"

// The root of a fusion's body; the instruction itself if it is not a fusion.
const Instr& RootOf(const Instr& instr);
// The number of instructions without parameters, and the maximum number of live values if the body
// runs operand by operand.
int64_t InstrsOf(const Instr& instr);
int64_t RegistersOf(const Instr& instr);
int64_t ResultsOf(const Instr& instr);
int64_t BytesOf(const Shape& shape);

// Whether the op may be in a fusion: as its root (MayEnd), or also as an inner instruction.
bool MayEnd(const Instr& instr);
bool MayPrecede(const Instr& instr);

// XLA's list for GPUs of ops that must not be computed twice.
bool IsExpensive(const Instr& instr);
// Whether the user reads elements of this operand more than once.
bool ReusesElements(const Instr& user, const Instr& operand);
// Whether it reads elements of its operands more than once: a gather or broadcast to a larger
// array, or a window whose stride is smaller than its size.
bool ReadsRepeatedly(const Instr& instr);
// Whether some instruction between this operand of the user and its result does so.
bool ReadsRepeatedly(const Instr& user, const Instr& operand);
// Whether it contains a reduction or window that reads more than a few elements per result element.
bool HoldsInnerLoop(const Instr& instr);
// The number of elements that a reduction reduces to one; 0 if it is not a reduction.
int64_t ReducedElements(const Instr& reduce);
// Whether it moves the minor dimension.
bool Transposes(const Instr& instr);
// Whether the user updates this operand in place.
bool UpdatesInPlace(const Instr& user, const Instr& operand);
// Whether it reads at most one array, not counting scalars and their broadcasts.
bool IsUnary(const Instr& instr);

}  // namespace tokamak::fuse
