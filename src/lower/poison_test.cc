#include "lower/poison.h"

#include <cmath>
#include <cstring>
#include <memory>

#include <gtest/gtest.h>

#include "ir/builder.h"
#include "kernel/simulate.h"
#include "lower/lower.h"

namespace tokamak {
namespace {

class SimulatedCode final : public KernelCode {
 public:
  explicit SimulatedCode(const Kernel& kernel) : kernel_(kernel) {}
  void Run(void* const* arguments, const int64_t*, int64_t, int64_t) const override {
    std::vector<SimArgument> given;
    for (size_t i = 0; i < kernel_.ArgumentCount(); ++i)
      given.push_back({arguments[i], kernel_.arrays[i].size});
    EXPECT_TRUE(SimulateKernel(kernel_, given, {}).ok());
  }

 private:
  const Kernel& kernel_;
};

// A large value that is dead after the first kernels, then small ones.
std::unique_ptr<Module> Chain() {
  auto module = std::make_unique<Module>("m");
  Builder b(*module, "main");
  Instr* x = b.Parameter(Shape::Array(ElementType::kF32, {8}));
  Instr* large = b.Concatenate({x, x, x, x, x, x, x, x}, 0);
  Instr* part = b.Slice(large, {4}, {12});
  Instr* sum = b.Add(b.Negate(part), x);
  auto main = b.Finish(b.Multiply(b.Reverse(sum, {0}), x));
  EXPECT_TRUE(main.ok());
  module->set_entry(main.value());
  return module;
}

LoweredProgram LowerUnfused(const Module& module, bool poison) {
  LowerOptions options;
  options.plan.mode = FusionMode::kNone;
  options.alias_results = {-1};
  options.poison = poison;
  DecisionLog log;
  Result<LoweredProgram> program = Lower(module, options, log);
  EXPECT_TRUE(program.ok());
  return std::move(program.value());
}

std::vector<float> RunIt(const LoweredProgram& program) {
  std::vector<std::byte> arena(static_cast<size_t>(program.arena_bytes));
  std::vector<float> input = {1, 2, 3, 4, 5, 6, 7, 8}, output(8);
  std::vector<std::byte*> memories = {arena.data(), reinterpret_cast<std::byte*>(input.data()),
                                      reinterpret_cast<std::byte*>(output.data())};
  std::vector<std::unique_ptr<SimulatedCode>> codes;
  std::vector<const KernelCode*> kernels;
  for (const Kernel& kernel : program.kernels) {
    codes.push_back(std::make_unique<SimulatedCode>(kernel));
    kernels.push_back(codes.back().get());
  }
  StepContext context;
  context.memories = memories;
  context.kernels = kernels;
  EXPECT_TRUE(RunSteps(program.steps, context).ok());
  return output;
}

TEST(Poison, LeavesValuesAlone) {
  std::unique_ptr<Module> module = Chain();
  LoweredProgram plain = LowerUnfused(*module, false), poisoned = LowerUnfused(*module, true);
  EXPECT_GT(poisoned.steps.size(), plain.steps.size() + 1);
  EXPECT_EQ(RunIt(plain), RunIt(poisoned));
}

// A launch that is made to read bytes of the arena whose value is dead gives NaN.
TEST(Poison, ShowsUseAfterFree) {
  std::unique_ptr<Module> module = Chain();
  LoweredProgram program = LowerUnfused(*module, true);
  std::vector<RunStep>& steps = program.steps;
  ASSERT_EQ(steps.front().kind, StepKind::kPoison);
  EXPECT_EQ(steps.front().bytes, program.arena_bytes);
  Place freed;
  bool planted = false;
  for (size_t i = 1; i < steps.size() && !planted; ++i) {
    // Its first bytes may be somebody's soon; those in the middle are not.
    if (steps[i].kind == StepKind::kPoison && steps[i].bytes == 256)
      freed = {0, steps[i].places[0].offset + 128};
    if (steps[i].kind != StepKind::kLaunch || freed == Place{}) continue;
    steps[i].places[0] = freed;
    planted = true;
  }
  ASSERT_TRUE(planted);
  std::vector<float> output = RunIt(program);
  EXPECT_TRUE(std::isnan(output[0])) << output[0];
}

}  // namespace
}  // namespace tokamak
