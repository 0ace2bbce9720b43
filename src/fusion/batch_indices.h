#pragma once

#include "explain/decision.h"
#include "ir/ir.h"

namespace tokamak {

// x[arange(n), i] and x.at[arange(n), i].set(y): a part of the index vector that counts along a
// dimension of the indices, as long as the dimension that it is for, names each row's own row. It
// becomes a batch, so that everybody sees that rows do not meet.
void BatchIndices(Module& module, DecisionLog& log);

}  // namespace tokamak
