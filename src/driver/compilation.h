#pragma once

#include <memory>
#include <string>
#include <vector>

#include "driver/compile_options.h"
#include "driver/executable.h"
#include "driver/target.h"
#include "explain/decision.h"
#include "interp/value.h"
#include "ir/ir.h"
#include "lower/lower.h"
#include "rewrite/pipeline.h"
#include "support/result.h"

// The one path from a module to something that runs.

namespace tokamak {

// Where the time of a compilation went, in milliseconds.
struct CompileTimes {
  double verify_ms = 0, passes_ms = 0;
  double planning_ms = 0;  // from the optimized module to steps
};

// What became of a module on a target: all that executables run, and all that explain, bench,
// TOKAMAK_DEBUG, the C API, Python and PJRT report. Immutable once made, and shared.
struct Compilation {
  Target target;
  CompileOptions options;
  std::unique_ptr<Module> module;  // after all passes; `program` names its instructions
  std::vector<ParameterInfo> parameters;
  std::vector<ArrayInfo> results;
  // Of CompileOptions::hoist: arguments of the last parameters, tuples taken apart.
  std::vector<Value> hoisted;
  CostAnalysis cost;
  MemoryAnalysis memory;
  bool calls_host = false;
  std::string why_interpreted;  // why the interpreter runs all of it; "": it is `program`
  LoweredProgram program;       // the steps as they are executed
  double predicted_us = 0;      // of a run
  bool time_depends_on_data = false;
  DecisionLog log;
  std::vector<PassRun> pass_runs;
  FusionTags fusion_tags;  // of FusionMode::kRules
  CompileTimes times;
};

// Compiles a module for a target. The module is verified here, unless the options say that it was.
// Nothing is loaded: code of kernels is made by MakeExecutable.
Result<std::shared_ptr<const Compilation>> Compile(std::unique_ptr<Module> module,
                                                   const Target& target,
                                                   const CompileOptions& options);

// The plan of a compilation as data.
PlanData PlanOf(const Compilation& compilation);
// Asks for the kernels of a plan that was made before, and for the passes that it was made after.
void UsePlan(CompileOptions& options, const PlanData& plan);
// Compiles a module by a plan that was made before, for the target that it names.
Result<std::shared_ptr<const Compilation>> Build(std::unique_ptr<Module> module,
                                                 const PlanData& plan);

// Loads the code of a compilation's kernels on the device of its target.
Result<std::shared_ptr<const Executable>> MakeExecutable(
    std::shared_ptr<const Compilation> compilation);

// Both, for the backend that the options name: what every frontend that runs programs calls. Adds
// what TOKAMAK_CHECK asks for, and reports what TOKAMAK_DEBUG asks for.
Result<std::shared_ptr<const Executable>> CompileAndLoad(std::unique_ptr<Module> module,
                                                         const CompileOptions& options);

}  // namespace tokamak
