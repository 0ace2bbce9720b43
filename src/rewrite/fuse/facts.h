#pragma once

// What the fusions of the paper's compiler ask of an instruction or of a fusion that was made
// already. A fusion is judged by what is in it.

#include <cstdint>
#include <vector>

#include "ir/ir.h"

namespace tokamak::fuse {

// Computations that run step by step, callees last: the entry, and what loops, branches and calls
// of such run. Those that a kernel holds (reducers, bodies of fusions) are not among them.
std::vector<Computation*> RunningComputations(const Module& module);

// The users, each once, in the same order in every run.
std::vector<Instr*> DistinctUsers(const Instr& instr);
std::vector<Instr*> DistinctOperands(const Instr& instr);
bool HasOneUser(const Instr& instr);

// A fusion that others may join: of a kind that takes and gives elements (kLoop, kInput), of static
// arrays, each of which it computes, without effects.
bool IsFusion(const Instr& instr);
bool IsHorizontal(const Instr& instr);
inline constexpr char kHorizontalMark[] = "fusion";  // frontend attribute: "horizontal"

// What a fusion computes last; the instruction itself when it is none.
const Instr& RootOf(const Instr& instr);
// Instructions but parameters, and values held at a time when it runs operand by operand.
int64_t InstrsOf(const Instr& instr);
int64_t RegistersOf(const Instr& instr);
int64_t ResultsOf(const Instr& instr);
int64_t BytesOf(const Shape& shape);

// The op may stand in a fusion: as its last, or also before others.
bool MayEnd(const Instr& instr);
bool MayPrecede(const Instr& instr);

// XLA's list for GPUs: not to be computed twice.
bool IsExpensive(const Instr& instr);
// The user reads elements of this operand more than once.
bool ReusesElements(const Instr& user, const Instr& operand);
// It reads elements of its operands more than once: a gather or broadcast to something larger, a
// window whose steps are shorter than it.
bool ReadsRepeatedly(const Instr& instr);
// Some instruction between this operand of the user and its result does so.
bool ReadsRepeatedly(const Instr& user, const Instr& operand);
// A reduction or a window reads more than a few elements for one of its result.
bool HoldsInnerLoop(const Instr& instr);
// Elements that a reduction folds into one; 0: it is none.
int64_t FoldedElements(const Instr& reduce);
// The minor dimension becomes another one.
bool Transposes(const Instr& instr);
// An update in place of this operand.
bool UpdatesInPlace(const Instr& user, const Instr& operand);
// Reads one array at most, scalars and their broadcasts apart.
bool IsUnary(const Instr& instr);

}  // namespace tokamak::fuse
