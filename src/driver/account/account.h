#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cost/work.h"
#include "driver/account/phases.h"
#include "driver/compilation.h"
#include "explain/decision.h"
#include "ir/ir.h"
#include "lower/lower.h"
#include "support/result.h"

// What a program becomes: the account that `tokamak explain` and tokamak.explain() give, as data.

namespace tokamak {

struct AccountOptions {
  bool measure = false;   // run each step, on drawn arguments, on the target's device
  double seconds = 0.03;  // for each
};

// A step that takes time: a kernel, kernels that run as one, a library call, a host step, a copy.
struct StepAccount {
  std::string name;
  // "loop", "rows" ... of kernels; "pack", "persistent" (a loop that is one launch), "library",
  // "host", "copy".
  std::string generator;
  std::string library;            // who does it, of a library call
  std::string why;                // of a host step
  Phase phase = Phase::kForward;  // of what it gives
  std::vector<Phase> also;        // of what it computes on the way; not forward parts
  int64_t ops = 0;                // instructions that compute something
  std::vector<std::string> instrs, lines;
  std::optional<int64_t> calls;  // nothing: data decides how often it runs
  int64_t reads = 0, writes = 0;
  std::optional<double> predicted_us, measured_us;
  std::optional<Price> price;
  std::optional<Work> work;
  // Of kernels, those of a pack in order: their numbers in the program.
  std::vector<size_t> kernels;
  std::vector<StepAccount> parts;        // of a pack or a persistent loop
  std::vector<const Instr*> made, read;  // arrays
  const RunStep* step = nullptr;         // of the compilation; null of parts
  uint64_t hash = 0;            // equal for steps that do the same, whatever its values are called
  uint64_t code = 0;            // of what is issued: kernel form and grid; shape of a library call
  std::vector<uint64_t> codes;  // of the kernels of a launch, in order

  // Runs of one call of the program, as far as they are known.
  int64_t runs() const { return calls.value_or(1); }
};

// Sums over steps, each as often as it runs. What data decides counts once.
struct Totals {
  int64_t kernels = 0, library = 0, host = 0, copies = 0;  // steps, those of loops once
  int64_t bytes = 0;                                       // read and written
  double us = 0;                                           // predicted
  std::optional<double> measured_us;                       // of steps that were measured
  int64_t temporary_bytes = 0;
  int64_t peak_bytes = 0;  // arguments, results, constants and temporary memory
  double planning_ms = 0;  // from the optimized program to steps
  bool data_decides = false;

  int64_t steps() const { return kernels + library + host + copies; }
};

struct ProgramAccount {
  std::shared_ptr<const Compilation> compilation;
  std::vector<StepAccount> steps;
  Totals totals;
  // The same program without fusion; and by tier 0, where the plan is a search's.
  std::optional<Totals> unfused, greedy;

  const std::string& why_interpreted() const { return compilation->why_interpreted; }
  const Machine& machine() const { return compilation->target.machine; }
  const LoweredProgram& program() const { return compilation->program; }
  const DecisionLog& log() const { return compilation->log; }
  const Module& module() const { return *compilation->module; }
};

// What a compilation's executable does, step by step. Where the interpreter runs all of it there
// are no steps.
Result<ProgramAccount> AccountOf(std::shared_ptr<const Compilation> compilation,
                                 const AccountOptions& options = {});
// Adds what the same module, as it was before it was compiled, becomes without fusion and by tier
// 0.
Status AddComparisons(ProgramAccount& account, const Module& before);

// Sums of the steps of one phase.
Totals TotalsOf(const std::vector<StepAccount>& steps, std::optional<Phase> phase);

}  // namespace tokamak
