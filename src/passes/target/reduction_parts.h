#pragma once

#include <optional>

#include "cost/machine.h"
#include "ir/ir.h"

namespace tokamak {

// A length as `count` parts of `size`, and what is behind the last of them.
struct Parts {
  int64_t count = 1, size = 1, rest = 0;
};

// The parts that sums along `results` rows of `length` elements are to be made of; one: they are
// left whole.
Parts PartsOfRows(int64_t length, int64_t results, const Machine& machine);

// What changes nothing when it is folded in by the op; nothing for other ops and types.
std::optional<Literal> NeutralLiteral(Op op, ElementType type);

}  // namespace tokamak
