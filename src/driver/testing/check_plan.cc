#include "driver/testing/check_plan.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "driver/compile/devices.h"
#include "driver/report/compile_report.h"
#include "driver/run/arguments.h"
#include "driver/run/check_kernels.h"
#include "driver/run/compare_arrays.h"
#include "driver/run/compiled_run.h"
#include "driver/testing/expect.h"
#include "interp/arguments.h"
#include "interp/interp.h"

namespace tokamak {
namespace {

constexpr uint64_t kSeed = 1;

// The same machine, with kernels that this process can run whatever its processor and devices are.
Result<Target> SimulatedLike(const Target& target) {
  Target simulated = target;
  simulated.kernel_backend = KernelBackend::kSimulator;
  if (target.libraries == LibraryUse::kAll) simulated.libraries = LibraryUse::kPresent;
  if (!target.is_gpu()) return simulated;
  simulated.kernel_backend = KernelBackend::kCuda;
  TOK_TRY(simulated.device, DeviceOf("sim-cuda"));
  return simulated;
}

// The tolerance of `run --expect`; that of f16 if products have only as many significand bits.
Tolerance ToleranceOf(const LoweredProgram& program) {
  constexpr double kOfF16 = 2e-2;
  bool tf32 = std::ranges::any_of(program.kernels,
                                  [](const Kernel& kernel) { return MultipliesTf32(kernel.body); });
  return tf32 ? Tolerance{.rtol = kOfF16, .atol = kOfF16} : Tolerance{};
}

std::vector<std::string> NamesOf(const ExpectOutcome& outcome) {
  std::vector<std::string> names;
  for (const Error& mismatch : outcome.mismatches)
    names.push_back(mismatch.message.substr(0, mismatch.message.find(':')));
  return names;
}

// Compares the results of the program with the interpreter's. A result that roundings alone move by
// more than the tolerance (chaotic motion) proves nothing beyond the comparison of each kernel.
Status CompareResults(const Module& module, std::span<const Value> arguments,
                      const std::vector<Value>& results, const Tolerance& tolerance) {
  RunOptions run;
  TOK_TRY(RunOutcome reference, Interpret(module, arguments, run));
  NpzFile expected{.path = module.file, .arrays = NameResults(reference.results, *module.entry())};
  for (auto& [name, literal] : expected.arrays) literal = ToCarrier(literal);
  ExpectOptions options{.tolerance = tolerance, .is_interpreted = false};
  ExpectOutcome compared = CompareWithExpected(expected, module, arguments, results, options);
  if (compared.mismatches.empty()) return Ok();
  run.mode = NumericMode::kOracle;
  TOK_TRY(RunOutcome oracle, Interpret(module, arguments, run));
  options.strict = true;
  std::vector<std::string> moved =
      NamesOf(CompareWithExpected(expected, module, arguments, oracle.results, options));
  std::vector<std::string> names = NamesOf(compared);
  for (size_t i = 0; i < names.size(); ++i)
    if (std::ranges::find(moved, names[i]) == moved.end()) return compared.mismatches[i];
  return Ok();
}

}  // namespace

Status CheckPlanValues(const Module& module, const Target& target, const CompileOptions& options) {
  TOK_TRY(std::vector<Value> arguments, DrawArguments(kSeed, *module.entry()));
  CompileOptions checked = options;
  checked.check_kernels = checked.check_memory = true;
  TOK_TRY(Target simulated, SimulatedLike(target));
  TOK_TRY(CompiledRun run, CompiledRun::Make(module, simulated, checked));
  if (!run.executable().compilation().why_interpreted.empty()) return Ok();
  TOK_TRY(RunOutcome outcome, run.Run(arguments));
  if (!outcome.failures.empty()) return outcome.failures[0];
  const LoweredProgram& program = run.executable().compilation().program;
  return CompareResults(module, arguments, outcome.results, ToleranceOf(program));
}

Result<PlanCost> CostOfPlan(std::shared_ptr<const Compilation> made, const Module& before) {
  TOK_TRY(CompileReport report, ReportOf(made));
  TOK_TRY(std::optional<Totals> unfused, UnfusedTotals(*made, before));
  PlanCost cost{.us = report.totals.us, .unfused_us = std::nullopt};
  if (unfused && !unfused->data_decides && !report.totals.data_decides)
    cost.unfused_us = unfused->us;
  return cost;
}

}  // namespace tokamak
