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
  // Numbers of the kernels; `consumer` is unset for results and control flow.
  size_t producer = 0;
  std::optional<size_t> consumer;
  // Predicted microseconds of the two kernels, and of one kernel that does the work of both: it
  // computes every element once, and stores the value only if others read it. Unset if there is no
  // estimate.
  std::optional<double> apart_us, fused_us;
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

// Records in each instruction of a dump which kernel it belongs to, by number, as a part of its
// origin: origins survive rewrites. `module` has the instructions of the module that was read.
void MarkDumpedKernels(Module& module);
// The numbers of the dumped kernels that an instruction of the compiled module comes from.
std::vector<size_t> DumpedKernelsOf(const Instr& instr);

// The fusions of a dump in the marked module, after passes have rewritten it. An instruction that
// could only be computed in its fusion if that fusion ran twice has none: a rewrite has moved it.
FusionTags DumpedFusionsOf(const Module& module);

// "train.py:12 (loss)".
std::string SourceLineOf(const Frame& frame);
// The lines of an instruction's origins, perhaps repeated; the location in the text if it has no
// source line.
std::vector<std::string> SourceLines(const Instr& instr);

}  // namespace tokamak
