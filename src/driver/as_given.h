#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cost/machine.h"
#include "ir/ir.h"
#include "rewrite/pass.h"

namespace tokamak {

// A launch of a program that another compiler has cut into kernels: a fusion, a library call, or an
// instruction by itself.
struct GivenKernel {
  std::string name, computation;
  std::string kind;                // "kLoop", "kInput" ... of fusions; "library"; else the op
  int64_t ops = 0;                 // instructions that compute something
  std::vector<std::string> lines;  // of the user's program
  int64_t reads = 0, writes = 0;   // bytes
  std::optional<double> us;        // predicted; nothing of what has no price
};

// Why a value is stored between two kernels.
struct GivenBoundary {
  std::string from, to;  // names of kernels; of the result: "result"
  std::string cause;    // "tuple", "custom call", "concatenate with several users", "reduction" ...
  std::string rule;     // of rules.def; "": none of them
  std::string because;  // the numbers
  int64_t bytes = 0;
};

struct GivenProgram {
  std::vector<GivenKernel> kernels;
  std::vector<GivenBoundary> boundaries;
  int64_t fusions = 0, library = 0;  // of the kernels
};

// What a program that XLA (or another) has fused already consists of. The module is as it was read:
// `after_optimizations` text of a CPU, GPU or TPU. Linear but for the rules that are asked at each
// boundary.
GivenProgram ReadGiven(const Module& module, const Machine& machine);

// "train.py:12 (loss)", each once; of an instruction without such, where it stands in the text.
std::vector<std::string> SourceLines(const Instr& instr);

}  // namespace tokamak
