#include "driver/run/host_steps.h"

#include <cstring>
#include <mutex>

#include "interp/array_bytes.h"
#include "interp/lapack.h"
#include "runtime/thread_pool.h"

namespace tokamak {
namespace {

// Builds the value of a shape from its arrays, depth first, starting at inputs[next].
Result<Value> ReadValue(const Shape& shape, std::span<void* const> inputs, size_t& next) {
  if (shape.IsToken()) return Value::Token();
  if (shape.IsArray()) {
    // The interpreter's arrays are row-major, but bitcast depends on layouts.
    return ValueFromBytes(shape, inputs[next++]);
  }
  std::vector<Value> elements;
  for (const Shape& element : shape.elements()) {
    TOK_TRY(Value value, ReadValue(element, inputs, next));
    elements.push_back(std::move(value));
  }
  return Value::Tuple(std::move(elements));
}

void WriteValue(const Value& value, std::span<void* const> outputs, size_t& next) {
  if (value.shape().IsToken()) return;
  if (value.shape().IsArray()) return StoreBytes(value, outputs[next++]);
  for (const Value& element : value.elements()) WriteValue(element, outputs, next);
}

class InstrStep final : public HostFunction {
 public:
  explicit InstrStep(const Instr& instr) : instr_(instr) {}

  Status Run(std::span<void* const> inputs, std::span<void* const> outputs,
             HostRun& run) const override {
    std::vector<Value> operands;
    size_t next = 0;
    for (const Instr* operand : instr_.operands()) {
      TOK_TRY(Value value, ReadValue(operand->shape(), inputs, next));
      operands.push_back(std::move(value));
    }
    TOK_TRY(Value result,
            static_cast<InterpretedSteps&>(run).runner().Evaluate(instr_, std::move(operands)));
    next = 0;
    WriteValue(result, outputs, next);
    return Ok();
  }
  bool IsInterpreter() const override { return true; }

 private:
  const Instr& instr_;
};

// A LAPACK call that works on the buffers directly. Results without users are not computed.
class LinearAlgebraStep final : public HostFunction {
 public:
  explicit LinearAlgebraStep(const Instr& instr)
      : routine_(instr), batch_(BatchOf(instr)), wanted_(WantedResults(instr)) {}

  Status Run(std::span<void* const> inputs, std::span<void* const> outputs,
             HostRun&) const override {
    std::vector<void*> results(outputs.begin(), outputs.end());
    for (size_t i = 0; i < results.size(); ++i)
      if (!wanted_[i]) results[i] = nullptr;
    // Matrices per task: enough floating-point operations to amortize waking a thread. A batch of
    // tiny matrices runs on one thread, because the calls would contend for the library's
    // allocator. Both limits chosen.
    constexpr double kMinChunkFlops = 1 << 14, kTiny = 512;
    const int64_t min_chunk = batch_.products < kTiny
                                  ? batch_.items
                                  : static_cast<int64_t>(kMinChunkFlops / batch_.products) + 1;
    std::mutex mutex;
    Status status = Ok();
    ThreadPool::OfProcess().For(batch_.items, min_chunk, [&](int64_t begin, int64_t end) {
      Status part = routine_.Run(inputs, results, {begin, end});
      if (part.ok()) return;
      std::lock_guard lock(mutex);
      status = std::move(part);
    });
    return status;
  }
  // The interpreter calls the same routines.
  bool IsInterpreter() const override { return true; }

 private:
  const LapackRoutine routine_;
  const LapackBatch batch_;
  const std::vector<bool> wanted_;
};

std::unique_ptr<HostFunction> StepOf(const Instr& instr) {
  if (IsLapackStep(instr)) return std::make_unique<LinearAlgebraStep>(instr);
  return std::make_unique<InstrStep>(instr);
}

}  // namespace

InstrRunner& InterpretedSteps::runner() {
  if (!runner_) runner_ = std::make_unique<InstrRunner>(options_);
  return *runner_;
}

Status InterpretedSteps::Finish(CheckTally* checks) {
  if (!runner_) return Ok();
  std::vector<Error> failures = runner_->TakeFailures();
  if (checks != nullptr) {
    checks->passed += runner_->checks_passed();
    for (Error& failure : failures) checks->failures.push_back(std::move(failure));
    return Ok();
  }
  if (!failures.empty()) return std::move(failures.front());
  return Ok();
}

HostFunctions::HostFunctions(const std::vector<const Instr*>& instrs) {
  for (const Instr* instr : instrs) {
    steps_.push_back(StepOf(*instr));
    all_.push_back(steps_.back().get());
  }
}

}  // namespace tokamak
