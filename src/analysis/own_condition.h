#pragma once

#include <cstdint>
#include <vector>

#include "analysis/loops.h"

namespace tokamak {

// Loops that vmap makes of a data-dependent while: the loop runs while any element of a pred array
// of the condition is true, and in the body every carried value keeps its old value where that
// element is false. Each element thus has its own trip count and may stop independently of the
// others.
//
// Returns that array, a value of the condition; null if the loop does not have this form.
const Instr* OwnCondition(const WhileLoop& loop);
// The scalar condition that holds for all elements (any(array) && common); null if there is none.
// Requires OwnCondition.
const Instr* CommonCondition(const WhileLoop& loop);
// The any-reduction (reduce with or) in the condition; null if there is none.
const Instr* AnyOfCondition(const WhileLoop& loop);
// OwnCondition if its array has exactly the axes of a parallel iteration space with these sizes;
// else null.
const Instr* ConditionOfPoint(const WhileLoop& loop, const std::vector<int64_t>& sizes);

}  // namespace tokamak
