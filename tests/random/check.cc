#include "random/check.h"

#include <chrono>

#include "driver/testing/reduce.h"
#include "interp/interp.h"
#include "ir/infer.h"
#include "random/elements.h"

namespace tokamak::fuzz {
namespace {

constexpr int64_t kMaxSteps = 100'000;  // instructions per run (chosen: bounds loops)
constexpr int kInfeeds = 40;  // infeed arrays per run (chosen: enough for generated loops)

Result<std::vector<Value>> Run(const Module& module, uint64_t input_seed, bool ordinary,
                               const Transformation* how = nullptr) {
  RunOptions options;
  options.max_steps = kMaxSteps;
  for (int i = 0; i < kInfeeds; ++i)
    options.infeed.push_back(
        Value::Array(Shape::Array(ElementType::kF32, {2}), std::vector<double>{i * 1.0, i + 0.5}));
  std::vector<Value> inputs = DrawInputs(input_seed, *module.entry(), ordinary);
  TOK_TRY(RunOutcome outcome,
          how != nullptr ? how->Run(module, inputs, options) : Interpret(module, inputs, options));
  // Checks are results too: the numbers of passed and failed ones.
  outcome.results.push_back(Value::Scalar<int64_t>(ElementType::kS64, outcome.checks_passed));
  outcome.results.push_back(
      Value::Scalar<int64_t>(ElementType::kS64, static_cast<int64_t>(outcome.failures.size())));
  return std::move(outcome.results);
}

// The values of the original program on both kinds of inputs.
struct Values {
  std::vector<Result<std::vector<Value>>> of;
};

Values RunAll(const Module& module, uint64_t input_seed) {
  Values values;
  for (bool ordinary : {true, false}) values.of.push_back(Run(module, input_seed, ordinary));
  return values;
}

Finding CheckOne(const Module& module, const Values& before, uint64_t input_seed,
                 const Transformation& transformation) {
  auto changed = transformation.Apply(module);
  if (!changed.ok()) return {Finding::Kind::kError, changed.error().message};
  const Module& after = *changed.value();
  Status sound = VerifyModule(after);
  if (!sound.ok()) return {Finding::Kind::kUnsound, sound.error().message};
  bool keeps = transformation.Keeps(module);
  if (!keeps && !transformation.RunsAlways()) return {Finding::Kind::kUnpromised, ""};
  for (size_t i = 0; i < before.of.size(); ++i) {
    const auto& was = before.of[i];
    if (!was.ok()) return {Finding::Kind::kNotInterpreted, was.error().message};
    auto is = Run(after, input_seed, i == 0, &transformation);
    if (!is.ok()) return {Finding::Kind::kRun, is.error().message};
    if (!keeps) continue;
    std::string difference = DifferenceOf(was.value(), is.value());
    if (!difference.empty()) return {Finding::Kind::kValues, difference};
  }
  return {keeps ? Finding::Kind::kNone : Finding::Kind::kUnpromised, ""};
}

class Smaller : public ReduceClient {
 public:
  Smaller(uint64_t input_seed, const Transformation& transformation, Finding::Kind kind)
      : input_seed_(input_seed), transformation_(transformation), kind_(kind) {}
  bool Fails(const Module& module) override {
    const Transformation* one[] = {&transformation_};
    return CheckProgram(module, input_seed_, one)[0].kind == kind_;
  }
  bool OutOfTime() override {
    return std::chrono::steady_clock::now() - start_ > std::chrono::seconds(20);
  }
  void Progress(const std::string&, size_t) override {}

 private:
  uint64_t input_seed_;
  const Transformation& transformation_;
  Finding::Kind kind_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

std::vector<Finding> CheckProgram(const Module& module, uint64_t input_seed,
                                  std::span<const Transformation* const> transformations) {
  std::vector<Finding> findings(transformations.size());
  Status sound = VerifyModule(module);
  if (!sound.ok()) {
    for (Finding& finding : findings) finding = {Finding::Kind::kDrawn, sound.error().message};
    return findings;
  }
  Values before = RunAll(module, input_seed);
  for (size_t i = 0; i < transformations.size(); ++i)
    findings[i] = CheckOne(module, before, input_seed, *transformations[i]);
  return findings;
}

std::unique_ptr<Module> SmallestBroken(const Module& module, uint64_t input_seed,
                                       const Transformation& transformation, Finding::Kind kind) {
  Smaller client(input_seed, transformation, kind);
  return ReduceModule(module, client);
}

}  // namespace tokamak::fuzz
