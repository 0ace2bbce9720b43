#include "lower/poison.h"

#include <cmath>
#include <memory>

#include <gtest/gtest.h>

#include "ir/builder.h"
#include "lower/simulated_run.h"

namespace tokamak {
namespace {

// A large value that is dead after the first kernels, then small values.
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
  return RunSimulated(program, {1, 2, 3, 4, 5, 6, 7, 8}, 8);
}

TEST(Poison, LeavesValuesAlone) {
  std::unique_ptr<Module> module = Chain();
  LoweredProgram plain = LowerUnfused(*module, false), poisoned = LowerUnfused(*module, true);
  EXPECT_GT(poisoned.steps.size(), plain.steps.size() + 1);
  EXPECT_EQ(RunIt(plain), RunIt(poisoned));
}

// A launch that is modified to read dead bytes of the arena computes NaN.
TEST(Poison, ShowsUseAfterFree) {
  std::unique_ptr<Module> module = Chain();
  LoweredProgram program = LowerUnfused(*module, true);
  std::vector<RunStep>& steps = program.steps;
  ASSERT_EQ(steps.front().kind, StepKind::kPoison);
  EXPECT_EQ(steps.front().bytes, program.arena_bytes);
  BufferSlice freed;
  bool planted = false;
  for (size_t i = 1; i < steps.size() && !planted; ++i) {
    // The first bytes may be reused soon; those in the middle are not.
    if (steps[i].kind == StepKind::kPoison && steps[i].bytes == 256)
      freed = {0, steps[i].slices[0].offset + 128};
    if (steps[i].kind != StepKind::kLaunch || freed == BufferSlice{}) continue;
    steps[i].slices[0] = freed;
    planted = true;
  }
  ASSERT_TRUE(planted);
  std::vector<float> output = RunIt(program);
  EXPECT_TRUE(std::isnan(output[0])) << output[0];
}

}  // namespace
}  // namespace tokamak
