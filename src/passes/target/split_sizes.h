#pragma once

#include <optional>

#include "cost/machine.h"
#include "ir/ir.h"

namespace tokamak {

// Splitting a length into parts: `count` parts of `size`, and the remainder.
struct SplitSizes {
  int64_t count = 1, size = 1, rest = 0;
};

// The parts for sums along `results` rows of `length` elements; count 1: no split.
SplitSizes SplitRows(int64_t length, int64_t results, const Machine& machine);

// The neutral element of the op; null for other ops and types.
std::optional<Literal> NeutralLiteral(Op op, ElementType type);

}  // namespace tokamak
