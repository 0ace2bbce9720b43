#pragma once

#include <span>
#include <vector>

#include "interp/context.h"
#include "interp/value.h"
#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// Whether an instruction computes with the real values that quantized integers represent (rather
// than only moving the integers).
bool ComputesQuantized(const Instr& instr);

// Evaluates such an instruction as StableHLO defines it: operands are dequantized, the op is
// computed on real numbers, and quantized results are quantized.
Result<Value> EvalQuantized(const Instr& instr, std::span<const Value> operands, Context& context);

// scale * (stored - zero point), in the expressed type.
Value Dequantized(const Value& value, const QuantType& quant);
// Rounded to even, clamped to the storage range. NaN is stored as 0.
Value Quantized(const Value& value, const Shape& shape);

}  // namespace tokamak
