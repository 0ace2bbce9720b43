#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/effects.h"
#include "cost/machine.h"
#include "explain/decision.h"
#include "fusion/plan.h"
#include "ir/ir.h"
#include "kernel/kernel.h"
#include "runtime/steps.h"
#include "support/result.h"

namespace tokamak {

// A program as steps, ready but for the code of its kernels and the functions of its host steps.
struct LoweredProgram {
  std::vector<RunStep> steps;
  std::vector<Kernel> kernels;            // what launches name
  std::vector<const Instr*> host_instrs;  // what host steps name; one step each
  std::vector<std::string> host_reasons;  // why each has no kernel
  std::vector<const Instr*> constants;    // memories after parameters and results
  int64_t arena_bytes = 0;
  int64_t launches = 0, copies = 0;  // steps, those of loops counted once
};

struct LowerOptions {
  PlanOptions plan;
  Machine machine;
  // Per parameter: the result that may take its memory; -1: none.
  std::vector<int64_t> alias_results;
};

// Why the program cannot be lowered (sizes that are known at run time only, values that no memory
// holds); "" when it can.
std::string WhyNotLowered(const Module& module);

// Plans every computation that runs by itself, orders the steps and gives every value its bytes.
// Memories: the arena, parameters, results, constants. The module must outlive the program.
Result<LoweredProgram> Lower(const Module& module, const LowerOptions& options, DecisionLog& log);

// The arrays that a value is made of, tuples flattened depth first; tokens among them.
std::vector<Shape> LeavesOf(const Shape& shape);

}  // namespace tokamak
