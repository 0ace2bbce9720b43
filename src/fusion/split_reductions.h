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

// What changes nothing when it is folded in by the op; nothing for other ops and types.
std::optional<Literal> NeutralLiteral(Op op, ElementType type);

}  // namespace tokamak
