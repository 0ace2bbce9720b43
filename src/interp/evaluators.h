#pragma once

// Every op has one evaluator, Eval<Op>, declared here from ops.def: a missing one is a link error.
// Each is defined in the file of its op family.

#include <span>

#include "interp/context.h"
#include "interp/value.h"
#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

#define TOK_OP(id, ...) \
  Result<Value> Eval##id(const Instr& instr, std::span<const Value> operands, Context& context);
#include "ir/ops.def"

// Evaluators of custom calls of the same families.
Result<Value> EvalThreefryCall(const Instr& instr, std::span<const Value> operands,
                               Context& context);

}  // namespace tokamak
