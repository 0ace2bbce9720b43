#pragma once

#include <optional>

#include "cost/machine.h"
#include "explain/decision.h"
#include "ir/ir.h"

namespace tokamak {

// A long reduction with few results becomes one with more, over parts, and one over those: so that
// there is work for many threads, in a tree that follows from the shape and the kind of machine
// alone. Sums of reals are rounded in another order than before.
void SplitReductions(Module& module, DecisionLog& log, const Machine& machine = {});

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
