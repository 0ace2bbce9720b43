#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cost/machine.h"
#include "explain/decision.h"
#include "ir/ir.h"

// Sorts that a function of the runtime does.

namespace tokamak {

// How elements are compared (runtime/sort.h says more).
enum class KeyOrder : uint8_t { kUnsigned, kSigned, kTotal, kNumbers, kPlain };

// One of the values that a sort goes by: the elements of an operand.
struct KeyOfSort {
  size_t operand = 0;
  KeyOrder order{};
  bool is_descending = false;
};

// The keys of a sort whose computation compares elements of its operands, one pair after the other;
// nothing of other sorts.
std::optional<std::vector<KeyOfSort>> KeysOf(const Instr& sort);
// The order of a type's elements when reals are ordered totally; nothing for complex numbers and
// for types whose bits are in no such order.
std::optional<KeyOrder> TotalOrderOf(ElementType type);
// The bits of a real type's infinity, or of its greatest number when it has none.
uint64_t InfinityBits(ElementType type);

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
