#pragma once

#include <span>

#include "interp/context.h"
#include "interp/value.h"
#include "ir/ir.h"

// Evaluates the custom calls that JAX emits for ops with data-dependent sizes.

namespace tokamak {

// Whether operands of a custom call specify the shapes of its results (indices_of_shape_operands).
bool StatesShapes(const Instr& instr);
// Evaluates the call without those operands, with results of the specified shapes.
Result<Value> EvalWithStatedShapes(const Instr& instr, std::span<const Value> operands,
                                   Context& context);

// Operands: inputs, initial values, then sizes, strides, base dilations, window dilations and
// padding [n, 2].
Result<Value> EvalDynamicReduceWindow(const Instr& instr, std::span<const Value> operands,
                                      Context& context);
// Operands: the state and the shape of the bits.
Result<Value> EvalDynamicRngBitGenerator(const Instr& instr, std::span<const Value> operands,
                                         Context& context);

}  // namespace tokamak
