#include "interp/interp.h"

#include <new>
#include <stdexcept>
#include <utility>

#include "interp/context.h"
#include "interp/evaluators.h"
#include "interp/host.h"
#include "interp/module_interpreter.h"

namespace tokamak {
namespace {

// Whether an argument is valid for a parameter: a dynamic dimension accepts any size up to its
// bound.
bool Accepts(const Shape& parameter, const Shape& argument) {
  if (parameter.IsTuple()) {
    if (!argument.IsTuple() || argument.elements().size() != parameter.elements().size())
      return false;
    for (size_t i = 0; i < parameter.elements().size(); ++i)
      if (!Accepts(parameter.elements()[i], argument.elements()[i])) return false;
    return true;
  }
  if (!parameter.IsArray()) return argument.kind() == parameter.kind();
  if (!argument.IsArray() || argument.type() != parameter.type() ||
      argument.rank() != parameter.rank())
    return false;
  for (size_t i = 0; i < parameter.dims().size(); ++i)
    if (parameter.dim(i) != kDynamic && parameter.dim(i) != argument.dim(i)) return false;
  return true;
}

// The argument with the parameter's shape: its quantization, and no layout of the argument.
Value AsParameter(const Shape& parameter, const Value& argument) {
  if (!parameter.IsArray()) return argument;
  return argument.WithShape(parameter.HasDynamicDims() ? parameter.WithDims(argument.dims())
                                                       : parameter);
}

Result<std::vector<Value>> CheckArguments(const Computation& entry,
                                          std::span<const Value> arguments) {
  const std::vector<Instr*>& parameters = entry.parameters();
  if (parameters.size() != arguments.size()) {
    return MakeError(ErrorCode::kBadArguments,
                     "run: " + entry.name() + " has " + std::to_string(parameters.size()) +
                         " parameters, got " + std::to_string(arguments.size()));
  }
  std::vector<Value> checked;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Shape& expected = parameters[i]->shape();
    if (!Accepts(expected, arguments[i].shape())) {
      return MakeError(ErrorCode::kBadArguments,
                       "run: parameter " + std::to_string(i) + " is " + ToString(expected) +
                           ", its argument is " + ToString(arguments[i].shape()),
                       SpanOf(*parameters[i]));
    }
    checked.push_back(AsParameter(expected, arguments[i]));
  }
  return checked;
}

// The interpreter allocates with the standard containers. Converts their out-of-memory exceptions
// to errors.
template <typename Fn>
auto WithoutBadAlloc(Fn&& fn) -> decltype(fn()) {
  try {
    return fn();
  } catch (const std::bad_alloc&) {
    return MakeError(ErrorCode::kOutOfMemory, "run: out of memory");
  } catch (const std::length_error&) {
    return MakeError(ErrorCode::kOutOfMemory, "run: an array does not fit into memory");
  }
}

Result<Value> RunChecked(ModuleInterpreter& interpreter, const Computation& computation,
                         std::span<const Value> arguments) {
  TOK_TRY(std::vector<Value> checked, CheckArguments(computation, arguments));
  if (interpreter.options != nullptr && interpreter.options->flush_subnormals) {
    for (Value& argument : checked) argument = WithoutSubnormals(std::move(argument));
  }
  return interpreter.Call(computation, std::move(checked));
}

}  // namespace

void AddLeaves(const Value& value, std::vector<Value>& leaves) {
  if (!value.shape().IsTuple()) return leaves.push_back(value);
  for (const Value& element : value.elements()) AddLeaves(element, leaves);
}

Result<RunOutcome> Interpret(const Module& module, std::span<const Value> arguments,
                             const RunOptions& options) {
  if (module.entry() == nullptr) {
    return MakeError(ErrorCode::kBadArguments,
                     "run: the module has neither a function main nor exactly one public function");
  }
  return WithoutBadAlloc([&]() -> Result<RunOutcome> {
    RunTally tally;
    Host host(options.probe_dir);
    host.calls = options.host_calls;
    for (const Value& value : options.infeed) host.Feed(value);
    ModuleInterpreter interpreter(options.mode, &tally);
    interpreter.options = &options;
    interpreter.host = &host;
    TOK_TRY(Value result, RunChecked(interpreter, *module.entry(), arguments));
    RunOutcome outcome;
    AddLeaves(result, outcome.results);
    outcome.checks_passed = tally.checks_passed;
    outcome.failures = std::move(tally.failures);
    return outcome;
  });
}

PreparedModule::PreparedModule(const Module& module, NumericMode mode)
    : module_(module), mode_(mode), plans_(std::make_unique<WalkPlans>(module, mode)) {}

PreparedModule::~PreparedModule() = default;

Result<std::vector<Value>> PreparedModule::Run(std::vector<Value>&& arguments,
                                               const RunOptions& options) const {
  return WithoutBadAlloc([&]() -> Result<std::vector<Value>> {
    RunTally tally;
    Host host(options.probe_dir);
    host.calls = options.host_calls;
    ModuleInterpreter interpreter(mode_, &tally);
    interpreter.options = &options;
    interpreter.host = &host;
    interpreter.shared_plans = plans_.get();
    TOK_TRY(Value result, interpreter.Call(*module_.entry(), std::move(arguments)));
    if (!tally.failures.empty()) return std::move(tally.failures.front());
    std::vector<Value> results;
    if (result.shape().IsTuple()) {
      AddLeaves(result, results);
    } else {
      results.push_back(std::move(result));
    }
    return results;
  });
}

Result<Value> InterpretComputation(const Computation& computation, std::span<const Value> arguments,
                                   NumericMode mode) {
  return WithoutBadAlloc([&]() -> Result<Value> {
    ModuleInterpreter interpreter(mode, nullptr);
    return RunChecked(interpreter, computation, arguments);
  });
}

Result<Value> EvaluateInstr(const Instr& instr, std::span<const Value> operands, NumericMode mode) {
  const OpInfo& info = instr.info();
  bool asks_device = info.Is(kCollective) || instr.op() == Op::kPartitionId ||
                     instr.op() == Op::kReplicaId || instr.op() == Op::kRng ||
                     instr.op() == Op::kRngGetAndUpdateState;
  bool has_effect = info.Is(kSideEffect) || (instr.op() == Op::kCustomCall &&
                                             instr.attrs<CustomCallAttrs>().has_side_effect);
  if (asks_device || has_effect || instr.op() == Op::kParameter)
    return Unsupported(instr, "cannot be evaluated by itself: it needs a device or a host");
  return WithoutBadAlloc([&]() -> Result<Value> {
    ModuleInterpreter interpreter(mode, nullptr);
    std::vector<Value> own(operands.begin(), operands.end());
    return Evaluate(instr, own, interpreter);
  });
}

}  // namespace tokamak
