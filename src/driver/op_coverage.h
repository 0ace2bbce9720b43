#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/op.h"
#include "support/result.h"

namespace tokamak {

// A small program with one op whose operands are arguments, so that no pass computes it.
struct OpSample {
  Op op;
  std::string kind;  // of its elements, where there is one sample of each kind: "complex"; or ""
  std::string text;  // HLO
};

// Of every op at least one: from its row where this describes it fully (one for each kind of
// elements that it takes), else from op_samples.def.
std::vector<OpSample> SamplesOf(Op op);

// What becomes of an op in a compiled program, the most expensive of its steps.
enum class OpStep : uint8_t {
  kNone,         // nothing is to be done: its result lies where its operand does
  kCopy,         // a copy of memory
  kKernel,       // kernels, of it or of what it is expanded into
  kLibrary,      // a call of a library
  kHost,         // the interpreter does it, between other steps
  kInterpreter,  // the interpreter runs any program that has it
};
std::string_view NameOf(OpStep step);

// Compiles the sample as explain does. `target`: host or h200.
Result<OpStep> StepOf(const OpSample& sample, std::string_view target);

// "kernel", or "kernel; complex: host" where kinds of elements differ.
Result<std::string> CoverageOf(Op op, std::string_view target);

}  // namespace tokamak
