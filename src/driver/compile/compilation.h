#pragma once

#include <memory>
#include <string>
#include <vector>

#include "driver/compile/compile_options.h"
#include "driver/compile/program_info.h"
#include "driver/compile/target.h"
#include "explain/decision.h"
#include "interp/value.h"
#include "ir/ir.h"
#include "lower/lower.h"
#include "rewrite/pipeline.h"
#include "support/result.h"

// The only path from a module to program steps: passes, planning, lowering.

namespace tokamak {

class CompileExtensions;  // driver/plugins/compile_extensions.h

// Time spent in each stage of a compilation, in milliseconds.
struct CompileTimes {
  double verify_ms = 0, passes_ms = 0;
  double describe_ms = 0;  // parameters, results and costs that do not depend on the steps
  double planning_ms = 0;  // from the optimized module to lowered steps
  // Parts of planning_ms: the passes of the target; plans, order and memory of the steps. The rest
  // estimates the steps and fits them to the device.
  double target_passes_ms = 0, lowering_ms = 0;
  size_t target_runs = 0;  // index of the target's first pass in Compilation::pass_runs
};

// The result of compiling a module for a target. Executables run it; explain, bench, TOKAMAK_DEBUG,
// the C API, Python and PJRT report it. Immutable once built, and shared.
struct Compilation {
  Target target;
  CompileOptions options;
  std::unique_ptr<Module> module;  // after all passes; `program` names its instructions
  std::vector<ParameterInfo> parameters;
  std::vector<ArrayInfo> results;
  // With CompileOptions::hoist: arguments for the last parameters, tuples flattened.
  std::vector<Value> hoisted;
  CostAnalysis cost;
  MemoryAnalysis memory;
  bool calls_host = false;
  std::string why_interpreted;  // why the whole program is interpreted; empty if `program` runs
  LoweredProgram program;       // the steps in execution order
  double predicted_us = 0;      // of one run
  bool time_depends_on_data = false;
  DecisionLog log;
  std::vector<PassRun> pass_runs;
  FusionTags fusion_tags;  // FusionMode::kXlaPasses only
  CompileTimes times;
  std::shared_ptr<CompileExtensions> extensions;  // null: no plugin and no policy
};

// Compiles a module for a target. Verifies the module unless the options say that it is verified.
// Loads nothing: MakeExecutable generates the kernels' code.
Result<std::shared_ptr<const Compilation>> Compile(std::unique_ptr<Module> module,
                                                   const Target& target,
                                                   const CompileOptions& options);

// The plan of a compilation as data, to be written to a file.
SerializedPlan PlanOf(const Compilation& compilation);
// Makes the options request the kernels of an existing plan, and the passes that preceded it.
void UsePlan(CompileOptions& options, const SerializedPlan& plan);
// Compiles a module with an existing plan, for the target that the plan names.
Result<std::shared_ptr<const Compilation>> Build(std::unique_ptr<Module> module,
                                                 const SerializedPlan& plan);

// Compiles the optimized module of a compilation again, with other options and without its plan,
// after the device rejected it: `why` goes into the log.
Result<std::shared_ptr<const Compilation>> Recompile(const Compilation& rejected,
                                                     const CompileOptions& options, Decision why);
// The same program, interpreted as a whole.
std::shared_ptr<const Compilation> RecompileInterpreted(const Compilation& rejected,
                                                        const std::string& why);

}  // namespace tokamak
