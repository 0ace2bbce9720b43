#pragma once

#include <span>

#include "interp/context.h"
#include "interp/value.h"
#include "ir/ir.h"

// Custom calls by which JAX writes ops whose sizes only values know.

namespace tokamak {

// Whether some operands of a custom call state the shapes of its results
// (indices_of_shape_operands).
bool StatesShapes(const Instr& instr);
// Evaluates the call without those operands, with results of the shapes that they state.
Result<Value> EvalWithStatedShapes(const Instr& instr, std::span<const Value> operands,
                                   Context& context);

// Inputs, initial values, then sizes, strides, base dilations, window dilations and padding [n, 2].
Result<Value> EvalDynamicReduceWindow(const Instr& instr, std::span<const Value> operands,
                                      Context& context);
// A state and the shape of the bits.
Result<Value> EvalDynamicRngBitGenerator(const Instr& instr, std::span<const Value> operands,
                                         Context& context);

}  // namespace tokamak
