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

void AddLeaves(const Value& value, std::vector<Value>& leaves) {
  if (!value.shape().IsTuple()) return leaves.push_back(value);
  for (const Value& element : value.elements()) AddLeaves(element, leaves);
}

// A tuple parameter becomes one parameter for each of its arrays.
Instr* FlatParameter(Computation& entry, const Shape& shape, std::vector<Instr*>& parameters) {
  if (!shape.IsTuple()) {
    parameters.push_back(entry.AppendParameter(static_cast<int64_t>(parameters.size()), shape));
    return parameters.back();
  }
  std::vector<Instr*> elements;
  for (const Shape& element : shape.elements())
    elements.push_back(FlatParameter(entry, element, parameters));
  return entry.Append(Op::kTuple, shape, std::move(elements));
}

void FlatResult(Computation& entry, Instr* value, std::vector<Instr*>& results) {
  if (!value->shape().IsTuple()) return results.push_back(value);
  for (size_t i = 0; i < value->shape().elements().size(); ++i)
    FlatResult(entry,
               entry.Append(Op::kGetTupleElement, value->shape().elements()[i], {value},
                            TupleIndexAttrs{static_cast<int64_t>(i)}),
               results);
}

bool HasInnerTuples(const Shape& shape) {
  if (!shape.IsTuple()) return false;
  for (const Shape& element : shape.elements())
    if (element.IsTuple()) return true;
  return false;
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
    Instr* parameter = FlatParameter(entry, instr->shape().WithoutLayout(), parameters);
    entry.ReplaceUses(instr, parameter);
    if (entry.root() == instr) entry.set_root(parameter);
    entry.Remove(instr);
  }
  return values;
}

}  // namespace

void FlattenEdges(Module& module) {
  Computation& entry = *module.entry();
  std::vector<Instr*> before = entry.parameters();
  bool tuples = false;
  for (const Instr* parameter : before) tuples = tuples || parameter->shape().IsTuple();
  if (tuples) {
    // Donation speaks of parameters by number.
    module.aliases.clear();
    module.donors.clear();
    module.entry_parameter_layouts.clear();
    std::vector<Instr*> parameters;
    for (Instr* parameter : before)
      entry.ReplaceUses(parameter, FlatParameter(entry, parameter->shape(), parameters));
    entry.SetParameters(parameters);
    for (Instr* parameter : before) entry.Remove(parameter);
  }
  Instr* root = entry.root();
  if (HasInnerTuples(root->shape())) {
    std::vector<Instr*> results;
    std::vector<Shape> shapes;
    FlatResult(entry, root, results);
    for (const Instr* result : results) shapes.push_back(result->shape());
    entry.set_root(entry.Append(Op::kTuple, Shape::Tuple(shapes), results));
    entry.results.clear();
    module.aliases.clear();
    module.entry_result_layout.reset();
  }
  entry.PutInOrder();
}

Result<std::vector<Value>> HoistConstants(Module& module) {
  FlattenEdges(module);
  TOK_TRY(std::vector<Value> values, Hoist(module));
  module.entry()->PutInOrder();
  return values;
}

Result<CompiledRun> CompiledRun::Make(const Module& module, const CompiledRunOptions& options) {
  CompiledRun run;
  if (module.entry() != nullptr) run.root_ = SpanOf(*module.entry()->root());
  std::unique_ptr<Module> own = CloneModule(module);
  FlattenEdges(*own);
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
