#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cost/work.h"
#include "driver/compile/compilation.h"
#include "driver/report/phases.h"
#include "driver/report/step_times.h"
#include "explain/decision.h"
#include "ir/ir.h"
#include "lower/lower.h"
#include "support/result.h"

// The compile report: the steps of a compiled program with their costs, as data. `tokamak explain`
// and tokamak.explain() print it.

namespace tokamak {

struct ReportOptions {
  // Runs each step on random arguments (driver/measure/measure_steps.h); null: no measured times.
  StepMeasurer measurer = nullptr;
  double seconds = 0.03;  // time budget per step of the measurer
};

// A step that takes time: a kernel, a horizontally fused launch, a library call, a host step, a
// copy.
struct StepReport {
  std::string name;
  // "loop", "rows" ... for kernels; "horizontal", "persistent" (a loop that is one launch),
  // "library", "host", "copy".
  std::string generator;
  std::string schedule;           // text form of the kernel's schedule; empty if it has none
  std::string library;            // library call: the library
  std::string why;                // host step: the reason
  Phase phase = Phase::kForward;  // of its results
  std::vector<Phase> also;        // phases of its intermediate values; excludes forward
  int64_t ops = 0;                // instructions that compute something
  std::vector<std::string> instrs, lines;
  std::optional<int64_t> calls;  // unset: data-dependent
  int64_t reads = 0, writes = 0;
  std::optional<double> predicted_us, measured_us;
  std::optional<CostEstimate> estimate;
  std::optional<Work> work;
  // Numbers of its kernels in the program; of a horizontally fused launch, in order.
  std::vector<size_t> kernels;
  std::vector<StepReport> parts;         // of a horizontally fused launch or a persistent loop
  std::vector<const Instr*> made, read;  // arrays
  const RunStep* step = nullptr;         // of the compilation; null for parts
  uint64_t hash = 0;                     // structural, independent of value names
  uint64_t code = 0;            // digest of kernel IR and grid, or of a library call's shape
  std::vector<uint64_t> codes;  // digests of the kernels of a launch, in order

  // Runs per call of the program; 1 if data-dependent.
  int64_t runs() const { return calls.value_or(1); }
  // Predicted microseconds of all runs.
  double us() const { return static_cast<double>(runs()) * predicted_us.value_or(0); }
};

// Sums over steps, weighted by their number of runs. Data-dependent steps count once.
struct Totals {
  int64_t kernels = 0, library = 0, host = 0, copies = 0;  // steps; those of loops count once
  int64_t bytes = 0;                                       // read and written
  double us = 0;                                           // predicted
  std::optional<double> measured_us;                       // sum over the measured steps
  int64_t temporary_bytes = 0;
  int64_t peak_bytes = 0;  // arguments, results, constants and temporary memory
  double planning_ms = 0;  // from the optimized program to steps
  bool data_decides = false;

  int64_t steps() const { return kernels + library + host + copies; }
};

struct CompileReport {
  std::shared_ptr<const Compilation> compilation;
  std::vector<StepReport> steps;
  Totals totals;
  // The same program without fusion, and with the greedy plan if the plan is a search's.
  std::optional<Totals> unfused, greedy;

  const std::string& why_interpreted() const { return compilation->why_interpreted; }
  const Machine& machine() const { return compilation->target.machine; }
  const LoweredProgram& program() const { return compilation->program; }
  const DecisionLog& log() const { return compilation->log; }
  const Module& module() const { return *compilation->module; }
  // The instructions in the kernels of a step, kernel by kernel.
  std::vector<const Instr*> KernelInstrsOf(const StepReport& step) const;
};

// The report of a compilation's executable. No steps if the interpreter runs the whole program.
Result<CompileReport> ReportOf(std::shared_ptr<const Compilation> compilation,
                               const ReportOptions& options = {});
// Adds the totals of the original module compiled without fusion and with the greedy plan.
Status AddComparisons(CompileReport& report, const Module& before);
// The totals of the original module compiled without fusion. Empty if the program itself requires
// a fusion.
Result<std::optional<Totals>> UnfusedTotals(const Compilation& made, const Module& before);

// Totals over the steps of one phase.
Totals TotalsOf(const std::vector<StepReport>& steps, std::optional<Phase> phase);

}  // namespace tokamak
