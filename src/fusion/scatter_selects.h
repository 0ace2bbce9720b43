#pragma once

#include "explain/decision.h"
#include "ir/ir.h"

namespace tokamak {

// A scatter of one update into each batch of an array that holds one number everywhere (the
// gradient of picking an element of each row), or into few elements a batch in a loop's body,
// becomes a select: every element compares its place with the index. It is fused with what reads
// it, then, and neither the array nor the scatter is written.
void SelectScatters(Module& module, DecisionLog& log);

}  // namespace tokamak
