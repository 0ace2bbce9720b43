#pragma once

#include <optional>
#include <vector>

#include "cost/machine.h"
#include "gen/sort_keys.h"
#include "ir/ir.h"

// Sorts that a runtime function computes.

namespace tokamak {

// A sort key: the elements of an operand.
struct OperandKey {
  size_t operand = 0;
  KeyOrder order{};
  bool is_descending = false;
};

// The keys of a sort whose comparator compares elements of its operands lexicographically; nullopt
// for other sorts.
std::optional<std::vector<OperandKey>> KeysOf(const Instr& sort);

// Whether all operands are nonempty arrays and the comparator captures nothing.
bool IsSortable(const Instr& sort);
// Whether an array is an iota (0, 1, 2 ...) along a dimension.
bool IsIotaAlong(const Instr& instr, int64_t dimension);

// Whether the runtime has a function for this instruction.
bool IsForRuntime(const Instr& instr, const Machine& machine);

}  // namespace tokamak
