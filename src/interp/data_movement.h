#pragma once

// Data movement with explicit indices and sizes, shared by the static and the dynamic ops.

#include "interp/value.h"
#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

Result<Value> MakeIota(const Instr& instr, int64_t dimension, const Dims& dims);
Result<Value> MakeBroadcast(const Instr& instr, const Value& operand, const Dims& dimensions,
                            const Dims& dims);
// The block must lie inside the operand.
Value MakeSlice(const Instr& instr, const Value& operand, const Dims& starts, const Dims& sizes,
                const Dims& steps);
Result<Value> MakePad(const Instr& instr, const Value& operand, const Value& padding,
                      const PadAttrs& pad);
Result<Value> MakeGather(const Instr& instr, const Value& operand, const Value& indices,
                         const GatherAttrs& attrs, const Dims& slice_sizes);

}  // namespace tokamak
