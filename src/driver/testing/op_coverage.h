#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/op.h"
#include "support/result.h"

// Finds how each op is compiled on each target (the coverage columns of docs/ops.md).

namespace tokamak {

// A small program with one op whose operands are arguments, so that no pass folds it.
struct OpSample {
  Op op;
  std::string kind;  // element kind, if there is one sample per kind: "complex"; or empty
  std::string text;  // HLO
};

// At least one sample of an op: derived from its table row if that describes the op fully (one
// sample per element kind that it accepts), otherwise from op_samples.def.
std::vector<OpSample> SamplesOf(Op op);

// How an op is executed in a compiled program; the most expensive of its steps.
enum class OpStep : uint8_t {
  kNone,         // nothing: its result aliases its operand
  kCopy,         // a copy of memory
  kKernel,       // kernels, for the op or for its expansion
  kLibrary,      // a library call
  kHost,         // a host step, interpreted
  kInterpreter,  // a program with this op is interpreted as a whole
};
std::string_view NameOf(OpStep step);

// Compiles the sample as explain does. `target`: host or h200.
Result<OpStep> StepOf(const OpSample& sample, std::string_view target);

// "kernel", or "kernel; complex: host" if element kinds differ.
Result<std::string> CoverageOf(Op op, std::string_view target);

}  // namespace tokamak
