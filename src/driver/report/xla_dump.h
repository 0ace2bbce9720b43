#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cost/machine.h"
#include "ir/ir.h"
#include "rewrite/pass.h"

namespace tokamak {

// A launch in a program that another compiler has already fused: a fusion, a library call, or a
// single instruction.
struct DumpedKernel {
  std::string name, computation;
  std::string kind;                // "kLoop", "kInput" ... of fusions; "library"; else the op
  int64_t ops = 0;                 // instructions that compute something
  std::vector<std::string> lines;  // of the user's program
  int64_t reads = 0, writes = 0;   // bytes
  std::optional<double> us;        // predicted; unset if there is no estimate
};

// Why a value is stored between two kernels.
struct DumpedBoundary {
  std::string from, to;  // names of kernels; "result" for the program's result
  std::string cause;    // "tuple", "custom call", "concatenate with several users", "reduction" ...
  std::string rule;     // of rules.def; empty if none applies
  std::string because;  // the numbers behind it
  int64_t bytes = 0;
};

struct DumpedProgram {
  std::vector<DumpedKernel> kernels;
  std::vector<DumpedBoundary> boundaries;
  int64_t fusions = 0, library = 0;  // of the kernels
};

// Analyzes a program that XLA (or another compiler) has already fused. The module is unchanged
// after parsing: `after_optimizations` text of a CPU, GPU or TPU. Linear time, except for the rules
// evaluated at each boundary.
DumpedProgram ReadXlaDump(const Module& module, const Machine& machine);

// "train.py:12 (loss)", without duplicates; the location in the text if the instruction has no
// source line.
std::vector<std::string> SourceLines(const Instr& instr);

}  // namespace tokamak
