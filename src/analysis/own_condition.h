#pragma once

#include <cstdint>
#include <vector>

#include "analysis/loops.h"

namespace tokamak {

// A loop that goes on as long as any element of a pred array of its condition holds, and in whose
// body every carried value stays as it is where that element does not hold: elements end by
// themselves, and then stay. The array, a value of the condition; null when the loop is no such.
const Instr* OwnCondition(const WhileLoop& loop);
// What such a loop asks of all of them beside it, a pred that is no array; null: nothing.
const Instr* CommonCondition(const WhileLoop& loop);
// The value of the condition that is made of all elements; null: none.
const Instr* AnyOfCondition(const WhileLoop& loop);
// The same, where the array has an element for each place of axes with these sizes.
const Instr* ConditionOfPlace(const WhileLoop& loop, const std::vector<int64_t>& sizes);

}  // namespace tokamak
