#include "driver/host_steps.h"

#include <cstring>

#include "driver/array_bytes.h"

namespace tokamak {
namespace {

// The value of a shape whose arrays are, depth first, at `inputs`, beginning with number `next`.
Result<Value> ReadValue(const Shape& shape, std::span<void* const> inputs, size_t& next) {
  if (shape.IsToken()) return Value::Token();
  if (shape.IsArray()) {
    // The interpreter's arrays are row-major, but bitcast looks at layouts.
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
    steps_.push_back(std::make_unique<InstrStep>(*instr));
    all_.push_back(steps_.back().get());
  }
}

}  // namespace tokamak
