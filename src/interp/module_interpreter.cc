#include "interp/module_interpreter.h"

#include <algorithm>
#include <set>
#include <utility>

#include "interp/evaluators.h"
#include "interp/quantized.h"
#include "ir/infer.h"
#include "support/limits.h"

namespace tokamak {
namespace {

using Evaluator = Result<Value> (*)(const Instr&, std::span<const Value>, Context&);

constexpr Evaluator kEvaluators[] = {
#define TOK_OP(id, ...) Eval##id,
#include "ir/ops.def"
};

bool OnlyElementsAreRead(const Instr& instr) {
  return instr.shape().IsTuple() && instr.parent()->root() != &instr &&
         std::all_of(instr.users().begin(), instr.users().end(),
                     [](const Instr* user) { return user->op() == Op::kGetTupleElement; });
}

// No effects, devices or hidden state: the value depends on the operands alone.
bool IsPure(const Instr& instr) {
  constexpr uint16_t kImpure = kControlFlow | kCollective | kSideEffect;
  if (instr.op() == Op::kPartitionId || instr.op() == Op::kReplicaId) return false;
  if (instr.op() == Op::kRng) return false;  // rng-bit-generator has its state as operand
  return instr.op() != Op::kParameter && (instr.info().traits & kImpure) == 0;
}

// Limit on the closed values that a computation caches between calls, in elements (chosen: 512 MiB
// of doubles).
constexpr int64_t kMaxKeptElements = int64_t{1} << 26;
// Limit on the closed values that a prepared module holds, in elements (chosen: 8 MiB of doubles).
constexpr int64_t kMaxPreparedElements = int64_t{1} << 20;

// Rejects a value whose run-time dimensions differ from those that the program states.
Status CheckDims(const Instr& instr, const Value& value) {
  const Shape& stated = instr.shape();
  if (!stated.IsArray() || !value.shape().IsArray() || stated.dims() == value.dims()) return Ok();
  bool fits = stated.rank() == value.shape().rank();
  for (size_t i = 0; fits && i < value.dims().size(); ++i)
    fits = stated.dim(i) == kDynamic || stated.dim(i) == value.dims()[i];
  if (fits) return Ok();
  return MakeError(ErrorCode::kBadRunTimeShape,
                   std::string(instr.info().name) + ": its shape at run time is " +
                       ToString(value.shape()) + ", the program says " + ToString(stated));
}

// Run-time dimensions must satisfy the same rules as static ones: calls the verifier again.
Status CheckOperands(const Instr& instr, std::span<const Value> operands) {
  auto dynamic = [](const Instr* operand) { return operand->shape().HasDynamicDims(); };
  if (instr.info().Is(kControlFlow) || instr.info().Is(kStructure)) return Ok();
  if (std::none_of(instr.operands().begin(), instr.operands().end(), dynamic)) return Ok();
  std::vector<Shape> shapes;
  for (const Value& operand : operands) shapes.push_back(operand.shape());
  Result<Shape> shape = InferShape({.op = instr.op(),
                                    .operands = shapes,
                                    .attrs = instr.attrs(),
                                    .called = instr.called(),
                                    .captures = instr.captures(),
                                    .written = &instr.shape()});
  if (shape.ok()) return Ok();
  return MakeError(ErrorCode::kBadRunTimeShape,
                   shape.error().message + " (known at run time only)");
}

}  // namespace

Result<Value> Evaluate(const Instr& instr, std::vector<Value>& operands, Context& context) {
  Result<Value> result = [&]() -> Result<Value> {
    if (instr.shape().IsStaticArray()) {
      TOK_RETURN_IF_ERROR(context.CheckFits(instr, instr.shape()));
    }
    TOK_RETURN_IF_ERROR(CheckOperands(instr, operands));
    if (ComputesQuantized(instr)) return EvalQuantized(instr, operands, context);
    TOK_TRY(Value value, kEvaluators[static_cast<size_t>(instr.op())](instr, operands, context));
    TOK_RETURN_IF_ERROR(CheckDims(instr, value));
    return value;
  }();
  if (!result.ok()) {
    Error& error = result.error();
    if (error.where.line == 0 && error.where.offset < 0) error.where = SpanOf(instr);
  }
  return result;
}

// Walks the instructions backwards: the first use seen of a value is its last use. The elements of
// a tuple that only get-tuple-element reads are tracked separately, so a loop whose state is one
// tuple can still write its arrays in place, and unused tuple elements are dead.
WalkPlan::WalkPlan(const Computation& computation) {
  std::vector<Instr*> order = computation.PostOrder();
  InstrMap<uint8_t> read(computation, 0);
  std::set<std::pair<const Instr*, int64_t>> read_elements;
  if (computation.root() != nullptr) read[computation.root()] = 1;
  steps_.reserve(order.size());
  InstrMap<uint8_t> closed(computation, 0);
  for (const Instr* instr : order) {
    bool all = IsPure(*instr);
    for (const Instr* operand : instr->operands()) all = all && closed[operand] != 0;
    closed[instr] = all ? 1 : 0;
  }
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const Instr* instr = *it;
    Step step{instr, std::vector<Pass>(instr->operand_count(), Pass::kCopy)};
    step.unused = read[instr] == 0;
    step.closed = closed[instr] != 0;
    // dead: not run, and its operands are not used here
    if (step.unused && IsPure(*instr)) continue;
    if (instr->op() == Op::kGetTupleElement && OnlyElementsAreRead(*instr->operand(0))) {
      const Instr* tuple = instr->operand(0);
      int64_t index = instr->attrs<TupleIndexAttrs>().index;
      if (read_elements.emplace(tuple, index).second) step.operands[0] = Pass::kMoveElement;
      step.frees_tuple = read[tuple] == 0;
      read[tuple] = 1;
    } else {
      bool by_element = instr->op() == Op::kTuple && OnlyElementsAreRead(*instr);
      for (size_t i = instr->operand_count(); i-- > 0;) {
        if (by_element && read_elements.count({instr, static_cast<int64_t>(i)}) == 0) {
          step.operands[i] = Pass::kNothing;
          continue;
        }
        if (read[instr->operand(i)] == 0) step.operands[i] = Pass::kMove;
        read[instr->operand(i)] = 1;
      }
    }
    steps_.push_back(std::move(step));
  }
  std::reverse(steps_.begin(), steps_.end());
}

int64_t WalkPlan::ComputeClosed(int64_t elements, NumericMode mode) {
  std::unordered_map<const Instr*, const Value*> known;
  for (Step& step : steps_) {
    const Instr& instr = *step.instr;
    if (!step.closed || !instr.shape().IsStaticArray()) continue;
    if (instr.shape().ElementCount() > elements || instr.op() == Op::kCustomCall) continue;
    std::vector<Value> operands;
    for (const Instr* operand : instr.operands()) {
      auto it = known.find(operand);
      if (it != known.end()) operands.push_back(*it->second);
    }
    if (operands.size() != instr.operand_count()) continue;
    ModuleInterpreter interpreter(mode, nullptr);
    Result<Value> value = Evaluate(instr, operands, interpreter);
    if (!value.ok()) continue;  // the run reports the error if it gets here
    elements -= instr.shape().ElementCount();
    step.known = std::move(value.value());
    step.is_known = true;
    known.emplace(&instr, &step.known);
  }
  // Drops values that only other precomputed instructions use.
  std::erase_if(steps_, [&](const Step& step) {
    auto is_known = [&](const Instr* user) { return known.contains(user); };
    return step.is_known && step.instr != step.instr->parent()->root() &&
           std::all_of(step.instr->users().begin(), step.instr->users().end(), is_known);
  });
  return elements;
}

WalkPlans::WalkPlans(const Module& module, NumericMode mode) {
  int64_t elements = kMaxPreparedElements;
  for (const auto& computation : module.computations()) {
    auto plan = std::make_unique<WalkPlan>(*computation);
    elements = plan->ComputeClosed(elements, mode);
    plans_.emplace(computation.get(), std::move(plan));
  }
}

ModuleInterpreter::PlanInRun& ModuleInterpreter::PlanOf(const Computation& computation) {
  PlanInRun& run = plans_[&computation];
  if (run.plan == nullptr && shared_plans != nullptr) run.plan = shared_plans->Find(computation);
  if (run.plan == nullptr) {
    run.own = std::make_unique<WalkPlan>(computation);
    run.plan = run.own.get();
  }
  return run;
}

namespace {

// An error without a location is located at the instruction.
Error WithLocation(Error error, const Instr& instr) {
  if (error.where.line == 0 && error.where.offset < 0) error.where = SpanOf(instr);
  return error;
}

}  // namespace

void ModuleInterpreter::Keep(PlanInRun& run, const Instr& instr, const Value& value) {
  if (!value.shape().IsArray()) return;
  if (run.kept_elements + value.ElementCount() > kMaxKeptElements) return;
  run.kept_elements += value.ElementCount();
  run.kept.emplace(&instr, value);
}

Result<Value> ModuleInterpreter::Call(const Computation& computation,
                                      std::vector<Value>&& arguments) {
  if (depth_ >= kMaxCallDepth) {
    return MakeError(ErrorCode::kCallsTooDeep, "call: " + computation.name() + " would be call " +
                                                   std::to_string(depth_ + 1) +
                                                   " on the stack, the limit is " +
                                                   std::to_string(kMaxCallDepth));
  }
  TOK_CHECK(arguments.size() == computation.parameters().size(),
            "a computation was called with another number of arguments");
  PlanInRun& run = PlanOf(computation);
  std::vector<Value> values(computation.id_limit());
  for (size_t i = 0; i < arguments.size(); ++i)
    values[static_cast<size_t>(computation.parameter(i)->id())] = std::move(arguments[i]);
  ++depth_;
  ++run.calls;
  Result<Value> result = Walk(run, computation, values);
  --depth_;
  return result;
}

Result<Value> ModuleInterpreter::Walk(PlanInRun& run, const Computation& computation,
                                      std::vector<Value>& values) {
  const WalkPlan& plan = *run.plan;
  auto slot = [&](const Instr* instr) -> Value& {
    return values[static_cast<size_t>(instr->id())];
  };
  std::vector<Value> operands;
  size_t done = 0;
  for (const WalkPlan::Step& step : plan.steps()) {
    const Instr& instr = *step.instr;
    TOK_RETURN_IF_ERROR(CountStep(instr, done++, plan.steps().size()));
    if (instr.op() == Op::kParameter) {
      if (step.unused) slot(&instr) = Value();
      continue;
    }
    if (step.is_known) {
      slot(&instr) = step.known;
      continue;
    }
    if (step.closed && !run.kept.empty()) {
      auto kept = run.kept.find(&instr);
      if (kept != run.kept.end()) {
        slot(&instr) = kept->second;
        continue;
      }
    }
    if (instr.op() == Op::kGetTupleElement && step.operands[0] == WalkPlan::Pass::kMoveElement) {
      Value& tuple = slot(instr.operand(0));
      Value element = tuple.TakeElement(static_cast<size_t>(instr.attrs<TupleIndexAttrs>().index));
      if (!step.unused) slot(&instr) = std::move(element);
      if (step.frees_tuple) tuple = Value();
      continue;
    }
    operands.clear();
    for (size_t i = 0; i < step.operands.size(); ++i) {
      Value& value = slot(instr.operand(i));
      if (step.operands[i] == WalkPlan::Pass::kNothing) {
        operands.emplace_back();
      } else if (step.operands[i] == WalkPlan::Pass::kMove) {
        operands.push_back(std::move(value));
      } else {
        operands.push_back(value);
      }
    }
    Result<Value> result = Evaluate(instr, operands, *this);
    if (!result.ok()) return WithLocation(std::move(result.error()), instr);
    if (options != nullptr && options->flush_subnormals)
      result = WithoutSubnormals(std::move(result.value()));
    if (step.closed && run.calls > 1) Keep(run, instr, result.value());
    if (!step.unused) slot(&instr) = std::move(result.value());
  }
  operands.clear();
  return std::move(slot(computation.root()));
}

Status ModuleInterpreter::CountStep(const Instr& instr, size_t done, size_t total) {
  ++steps_;
  if (options == nullptr) return Ok();
  if (options->stop != nullptr && options->stop->load(std::memory_order_relaxed)) {
    return MakeError(ErrorCode::kStopped,
                     std::string(instr.info().name) + ": the run was stopped before it",
                     SpanOf(instr));
  }
  if (options->max_steps > 0 && steps_ > options->max_steps) {
    return MakeError(ErrorCode::kTooManySteps,
                     std::string(instr.info().name) + ": would be instruction " +
                         std::to_string(steps_) + " of the run, the limit is " +
                         std::to_string(options->max_steps),
                     SpanOf(instr));
  }
  if (depth_ == 1 && options->progress != nullptr)
    options->progress->OnProgress(static_cast<int64_t>(done), static_cast<int64_t>(total));
  return Ok();
}

void ModuleInterpreter::ReportCheck(std::optional<Error> failure) {
  if (tally_ == nullptr) return;
  std::lock_guard<std::mutex> lock(tally_->mutex);
  if (failure) {
    tally_->failures.push_back(std::move(*failure));
  } else {
    ++tally_->checks_passed;
  }
}

ModuleInterpreter::~ModuleInterpreter() = default;

std::unique_ptr<Context> ModuleInterpreter::ForDevice(int64_t replica, int64_t partition,
                                                      Devices* devices) {
  auto interpreter = std::make_unique<ModuleInterpreter>(mode(), tally_);
  interpreter->replica = replica;
  interpreter->partition = partition;
  interpreter->devices = devices;
  interpreter->host = host;
  // Only the first device reports progress; every device counts steps.
  interpreter->options = options;
  interpreter->shared_plans = shared_plans;
  interpreter->depth_ = depth_;
  interpreter->steps_ = steps_;
  return interpreter;
}

Status Context::CheckFits(const Instr& instr, const Shape& shape) const {
  if (!shape.IsArray()) return Ok();
  int64_t width = DispatchStorage(
      shape.type(), []<typename T>() -> int64_t { return static_cast<int64_t>(sizeof(T)); });
  // Element counts stay below kMaxElements (2^58), so this cannot overflow after the first test.
  int64_t count = shape.ElementCount();
  if (count > kMaxTensorBytes / width || count * width + LiveBytes() > kMaxLiveBytes) {
    return MakeError(ErrorCode::kOutOfMemory,
                     std::string(instr.info().name) + ": " + ToString(shape) + " takes " +
                         std::to_string(count) + " elements of " + std::to_string(width) +
                         " bytes in the interpreter, the limits are " +
                         std::to_string(kMaxTensorBytes) + " bytes an array and " +
                         std::to_string(kMaxLiveBytes) + " in all",
                     SpanOf(instr));
  }
  return Ok();
}

Error Unsupported(const Instr& instr, const std::string& text) {
  return MakeError(ErrorCode::kUnsupportedOp, std::string(instr.info().name) + ": " + text,
                   SpanOf(instr));
}

}  // namespace tokamak
