#include "driver/compiled_run.h"

#include <utility>

#include "driver/array_bytes.h"
#include "driver/compilation.h"
#include "ir/clone.h"

namespace tokamak {
namespace {

void AddLeaves(const Shape& shape, std::vector<Shape>& leaves) {
  if (!shape.IsTuple()) return leaves.push_back(shape);
  for (const Shape& element : shape.elements()) AddLeaves(element, leaves);
}

bool IsHoisted(const Instr& instr) {
  if (instr.op() == Op::kCall)
    return instr.operand_count() == 0 && instr.called(0)->name() == "inputs";
  return instr.op() == Op::kConstant && instr.shape().IsArray() && instr.shape().rank() > 0 &&
         instr.shape().quant() == nullptr;
}

// Sizes that are written as constants must stay so.
bool HasDynamicOps(const Computation& entry) {
  for (const Instr* instr : entry.Instrs())
    if (instr->info().Is(kDynamicShape) || instr->shape().HasDynamicDims()) return true;
  return false;
}

Result<std::vector<Value>> Hoist(Module& module) {
  std::vector<Value> values;
  Computation& entry = *module.entry();
  if (HasDynamicOps(entry)) return values;
  std::vector<Instr*> parameters = entry.parameters();
  for (Instr* instr : entry.Instrs()) {
    if (!IsHoisted(*instr) || instr->has_extras()) continue;
    Value value;
    if (instr->op() == Op::kCall) {
      TOK_TRY(value, InterpretComputation(*instr->called(0), {}));
    } else {
      TOK_TRY(value, EvaluateInstr(*instr, {}));
    }
    AddLeaves(value, values);
    Instr* parameter = entry.AppendParameter(static_cast<int64_t>(parameters.size()),
                                             instr->shape().WithoutLayout());
    parameters.push_back(parameter);
    entry.ReplaceUses(instr, parameter);
    if (entry.root() == instr) entry.set_root(parameter);
    entry.Remove(instr);
  }
  return values;
}

}  // namespace

Result<std::vector<Value>> HoistConstants(Module& module) {
  TOK_TRY(std::vector<Value> values, Hoist(module));
  module.entry()->PutInOrder();
  return values;
}

Result<CompiledRun> CompiledRun::Make(const Module& module, const CompiledRunOptions& options) {
  CompiledRun run;
  if (module.entry() != nullptr) run.root_ = SpanOf(*module.entry()->root());
  std::unique_ptr<Module> own = CloneModule(module);
  if (options.hoist) {
    TOK_TRY(run.hoisted_, Hoist(*own));
  }
  own->entry()->PutInOrder();
  AddLeaves(own->entry()->root()->shape(), run.results_);
  TOK_TRY(run.executable_, CompileAndLoad(std::move(own), options.compile));
  return run;
}

std::vector<Value> CompiledRun::Leaves(std::span<const Value> arguments) const {
  std::vector<Value> leaves;
  for (const Value& argument : arguments) AddLeaves(argument, leaves);
  leaves.insert(leaves.end(), hoisted_.begin(), hoisted_.end());
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
