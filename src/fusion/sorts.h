#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cost/machine.h"
#include "explain/decision.h"
#include "gen/sort_keys.h"
#include "ir/ir.h"

// Sorts that a function of the runtime does.

namespace tokamak {

// One of the values that a sort goes by: the elements of an operand.
struct KeyOfSort {
  size_t operand = 0;
  KeyOrder order{};
  bool is_descending = false;
};

// The keys of a sort whose computation compares elements of its operands, one pair after the other;
// nothing of other sorts.
std::optional<std::vector<KeyOfSort>> KeysOf(const Instr& sort);

// Whether its operands are arrays that are there to be sorted.
bool IsSortable(const Instr& sort);
// Whether an array holds 0, 1, 2 ... along a dimension.
bool CountsAlong(const Instr& instr, int64_t dimension);

// Whether the runtime has a function for this instruction as it stands.
bool IsForRuntime(const Instr& instr, const Machine& machine);

// Sorts by what is computed from elements become sorts by arrays of that, in kernels of their own;
// sorts of which only the first elements are needed become top-k. On GPUs: word_sorts.h,
// merge_sorts.h. Before scans are prepared.
void PrepareSorts(Module& module, DecisionLog& log, const Machine& machine);

}  // namespace tokamak
