#pragma once

#include <optional>
#include <vector>

#include "cost/machine.h"
#include "gen/sort_keys.h"
#include "ir/ir.h"

// Sorts that a runtime function computes on CPUs, and the CPU's choice of runtime functions.

namespace tokamak {

// A sort key: a ComparedKey (sort_keys.h) whose value is the element of an operand itself.
struct OperandKey {
  size_t operand = 0;
  KeyOrder order{};
  bool is_descending = false;
};

// The keys of a sort whose comparator compares elements of its operands lexicographically; nullopt
// for other sorts.
std::optional<std::vector<OperandKey>> KeysOf(const Instr& sort);

// Whether all operands of a sort are nonempty arrays and its comparator captures nothing: it has no
// trailing operands that the comparator takes whole (Instr::captures).
bool HasPlainOperands(const Instr& sort);
// Whether an array is an iota (0, 1, 2 ...) along a dimension.
bool IsIotaAlong(const Instr& instr, int64_t dimension);

// Whether a function of the CPU runtime computes this instruction: a sort by keys (unless a sorting
// network is faster), top-k, a scatter with UsesRuntimeScatter (scatter.h), or one with
// HasRuntimeFunction (functions.h). False on GPUs.
bool UsesRuntimeFunction(const Instr& instr, const Machine& machine);

}  // namespace tokamak
