#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/effects.h"
#include "cost/machine.h"
#include "explain/decision.h"
#include "fusion/cut.h"
#include "fusion/plan.h"
#include "ir/ir.h"
#include "kernel/kernel.h"
#include "runtime/steps.h"
#include "support/result.h"

namespace tokamak {

// What a kernel was made of: instructions of the module.
struct KernelSource {
  Region region;
  RegionKind kind{};
  std::vector<KernelArgument> arguments;
  // Arguments that hold the value of an instruction before the launch, and keep it where the kernel
  // does not write.
  std::vector<std::pair<size_t, const Instr*>> updates;
};

// A program as steps, ready but for the code of its kernels and the functions of its host steps.
struct LoweredProgram {
  std::vector<RunStep> steps;
  std::vector<Kernel> kernels;               // what launches name
  std::vector<KernelSource> sources;         // of each kernel
  std::vector<ProductCall> products;         // what library steps name
  std::vector<const Instr*> product_instrs;  // the dot of each
  // What calls name, and the instruction of each.
  std::vector<std::shared_ptr<const LibraryCall>> calls;
  std::vector<const Instr*> call_instrs;
  std::vector<const Instr*> host_instrs;  // what host steps name; one step each
  std::vector<std::string> host_reasons;  // why each has no kernel
  std::vector<const Instr*> loops;        // what while steps name
  // Of each of them: rounds of a launch, where it is one whose teams stay (lower/persistent.h); 0:
  // it runs step by step.
  std::vector<int64_t> persistent;
  std::vector<double> persistent_us;  // of an iteration of such a loop, predicted
  // Of each call and host step: a library of the device does it. Empty: of none.
  std::vector<bool> device_calls, device_hosts;
  std::vector<const Instr*> constants;  // memories after parameters and results
  int64_t arena_bytes = 0;
  int64_t launches = 0, copies = 0;  // steps, those of loops counted once
  std::vector<std::pair<const Computation*, PlanningFacts>> planning;  // of each that was planned
  Cuts cuts;                                                           // the same: its kernels

  // Whether a while step is one launch, or a few when it is long.
  bool IsPersistent(const RunStep& loop) const {
    return loop.target < persistent.size() && persistent[loop.target] > 0;
  }
  // Whether a library of the device does a call or host step.
  bool IsOnDevice(const RunStep& step) const {
    const std::vector<bool>& all = step.kind == StepKind::kCall ? device_calls : device_hosts;
    return step.target < all.size() && all[step.target];
  }
};

struct LowerOptions {
  PlanOptions plan;
  Machine machine;
  // Per parameter: the result that may take its memory; -1: none.
  std::vector<int64_t> alias_results;
  bool strict = false;     // sums are added up in the order of the program's instructions
  bool persistent = true;  // loops may become one launch
  bool poison = false;     // bytes of the arena are made NaN as soon as their value is dead
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
