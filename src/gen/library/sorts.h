#pragma once

#include <optional>
#include <vector>

#include "cost/machine.h"
#include "gen/sort_keys.h"
#include "ir/ir.h"

// Sorts that a function of the runtime does.

namespace tokamak {

// One of the values that a sort goes by: the elements of an operand.
struct OperandKey {
  size_t operand = 0;
  KeyOrder order{};
  bool is_descending = false;
};

// The keys of a sort whose computation compares elements of its operands, one pair after the other;
// nothing of other sorts.
std::optional<std::vector<OperandKey>> KeysOf(const Instr& sort);

// Whether its operands are arrays that are there to be sorted.
bool IsSortable(const Instr& sort);
// Whether an array holds 0, 1, 2 ... along a dimension.
bool IsIotaAlong(const Instr& instr, int64_t dimension);

// Whether the runtime has a function for this instruction as it stands.
bool IsForRuntime(const Instr& instr, const Machine& machine);

}  // namespace tokamak
