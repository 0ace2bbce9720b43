#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/effects.h"
#include "cost/machine.h"
#include "explain/decision.h"
#include "fusion/kernel_partition.h"
#include "fusion/plan.h"
#include "ir/ir.h"
#include "kernel/kernel.h"
#include "runtime/steps.h"
#include "support/result.h"

namespace tokamak {

// Lowering: from a module and its fusion plans to a program of steps (kernel launches, library
// calls, copies, loops, conditionals) with every value assigned to a buffer slice.
//
//   module --plan--> kernels per computation --Lowerer--> steps --MemoryPlan--> steps with offsets

// The provenance of a kernel: instructions of the module.
struct KernelSource {
  FusedRegion region;
  GeneratorKind kind{};
  std::vector<KernelArgument> arguments;
  // Arguments that hold the value of an instruction before the launch and are updated in place:
  // elements that the kernel does not write keep that value.
  std::vector<std::pair<size_t, const Instr*>> updates;
  std::optional<Schedule> schedule;  // of the kernel; unset if its generator has none
};

// A program of steps, complete except for the compiled code of kernels and host functions.
struct LoweredProgram {
  std::vector<RunStep> steps;
  std::vector<Kernel> kernels;        // RunStep::target of launches
  std::vector<KernelSource> sources;  // per kernel
  // Per kernel: microseconds that a plugin's cost hook predicts; < 0: the model does.
  std::vector<double> hooked_us;
  std::vector<ProductCall> products;         // RunStep::target of library steps
  std::vector<const Instr*> product_instrs;  // the dot of each
  // RunStep::target of call steps, and the instruction of each.
  std::vector<std::shared_ptr<const LibraryCall>> calls;
  std::vector<const Instr*> call_instrs;
  std::vector<const Instr*> host_instrs;  // RunStep::target of host steps; one step each
  std::vector<std::string> host_reasons;  // why each has no kernel
  std::vector<const Instr*> loops;        // RunStep::target of while steps
  // Per loop: iterations per launch if it runs as a persistent kernel (lower/persistent.h); 0 if it
  // runs step by step.
  std::vector<int64_t> persistent;
  std::vector<double> persistent_us;  // predicted time of one iteration of a persistent loop
  // Per call and host step: whether a device library executes it. Empty: none.
  std::vector<bool> device_calls, device_hosts;
  std::vector<const Instr*> constants;  // memories after parameters and results
  int64_t arena_bytes = 0;
  int64_t launches = 0, copies = 0;  // number of steps, those in loops counted once
  // Of each planned computation.
  std::vector<std::pair<const Computation*, PlanningStats>> planning;
  ModulePartition partition;  // the kernels of each planned computation

  // Whether a while step is one persistent launch (or a few, if it runs long).
  bool IsPersistent(const RunStep& loop) const {
    return loop.target < persistent.size() && persistent[loop.target] > 0;
  }
  // Whether a device library executes a call or host step.
  bool IsOnDevice(const RunStep& step) const {
    const std::vector<bool>& all = step.kind == StepKind::kCall ? device_calls : device_hosts;
    return step.target < all.size() && all[step.target];
  }
};

struct LowerOptions {
  PlanOptions plan;
  Machine machine;
  // Per parameter: the result that may reuse its memory (donation); -1: none.
  std::vector<int64_t> alias_results;
  bool strict = false;     // do not reassociate: keep the program's summation order
  bool persistent = true;  // allow persistent kernels
  bool poison = false;     // overwrite dead bytes of the arena with NaN
};

// Why the program cannot be lowered (dynamic sizes, values without a memory representation). Empty
// if it can be lowered.
std::string WhyNotLowered(const Module& module);

// Plans every computation that is executed directly, orders the steps and assigns memory to every
// value. Memory numbers: the arena, parameters, results, constants. The module must outlive the
// program.
Result<LoweredProgram> Lower(const Module& module, const LowerOptions& options, DecisionLog& log);

}  // namespace tokamak
