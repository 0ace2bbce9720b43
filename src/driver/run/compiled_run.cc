#include "driver/run/compiled_run.h"

#include <utility>

#include "driver/run/make_executable.h"
#include "interp/array_bytes.h"
#include "ir/clone.h"

namespace tokamak {
Result<CompiledRun> CompiledRun::Make(const Module& module, const CompileOptions& options) {
  TOK_TRY(Target target, TargetOfBackend(options.backend));
  return Make(module, target, options);
}

Result<CompiledRun> CompiledRun::Make(const Module& module, const Target& target,
                                      const CompileOptions& options) {
  CompiledRun run;
  if (module.entry() != nullptr) run.root_ = SpanOf(*module.entry()->root());
  std::unique_ptr<Module> own = CloneModule(module);
  own->entry()->PutInOrder();
  run.results_ = LeavesOf(own->entry()->root()->shape());
  TOK_TRY(run.executable_, CompileAndLoad(std::move(own), target, options));
  return run;
}

std::vector<Value> CompiledRun::Leaves(std::span<const Value> arguments) const {
  std::vector<Value> leaves;
  for (const Value& argument : arguments) AddLeaves(argument, leaves);
  const std::vector<Value>& hoisted = executable_->compilation().hoisted;
  leaves.insert(leaves.end(), hoisted.begin(), hoisted.end());
  return leaves;
}

Result<HeldArrays> CompiledRun::Hold(std::span<const Value> arguments) const {
  return HeldArrays::Make(*executable_, Leaves(arguments), root_);
}

Result<RunOutcome> CompiledRun::Run(std::span<const Value> arguments) const {
  TOK_TRY(HeldArrays held, Hold(arguments));
  CheckTally checks;
  TOK_RETURN_IF_ERROR(
      executable_->Run(held.inputs(), held.outputs(), {.stop = nullptr, .checks = &checks}));
  RunOutcome outcome;
  for (size_t i = 0; i < held.outputs().size(); ++i) {
    const ArrayInfo& info = executable_->results()[i];
    if (info.is_token) {
      outcome.results.push_back(Value::Token());
      continue;
    }
    const Shape& shape = results_[i];
    Shape known = shape.HasDynamicDims() ? shape.WithDims(info.dims) : shape;
    TOK_TRY(Value value, ValueFromBytes(known.WithoutLayout(), held.outputs()[i]));
    outcome.results.push_back(std::move(value));
  }
  outcome.checks_passed = checks.passed;
  outcome.failures = std::move(checks.failures);
  return outcome;
}

}  // namespace tokamak
