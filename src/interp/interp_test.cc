// Run-time errors that only users of the C++ interface can trigger.

#include "interp/interp.h"

#include <gtest/gtest.h>

#include "ir/builder.h"

namespace tokamak {
namespace {

constexpr ElementType kF32 = ElementType::kF32;

// main(x: f32[2]) = x + x
void BuildDouble(Module& module) {
  Builder b(module, "main");
  Instr* x = b.Parameter(Shape::Array(kF32, {2}));
  Result<Computation*> main = b.Finish(b.Add(x, x));
  ASSERT_TRUE(main.ok());
  module.set_entry(main.value());
}

TEST(Interpret, RejectsArgumentsThatDoNotFit) {
  Module module("m");
  BuildDouble(module);
  Result<RunOutcome> none = Interpret(module, {});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kBadArguments);

  std::vector<Value> scalar{Value::Scalar(kF32, 1.0)};
  Result<RunOutcome> wrong = Interpret(module, scalar);
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().code, ErrorCode::kBadArguments);
}

// Interpreting a single computation checks its arguments too.
TEST(Interpret, RejectsArgumentsOfAComputation) {
  Module module("m");
  BuildDouble(module);
  Result<Value> none = InterpretComputation(*module.entry(), {});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kBadArguments);
}

// while (true): only the step limit ends it.
TEST(Interpret, StopsAtTheLimitOfInstructions) {
  Module module("m");
  Shape scalar = Shape::Scalar(kF32);
  Builder condition(module, "condition");
  condition.Parameter(scalar);
  Result<Computation*> always = condition.Finish(condition.Scalar(ElementType::kPred, 1));
  Builder step(module, "step");
  Instr* state = step.Parameter(scalar);
  Result<Computation*> next = step.Finish(step.Add(state, state));
  ASSERT_TRUE(always.ok() && next.ok());
  Computation* main = module.AddComputation("main");
  Instr* one = main->Append(Op::kConstant, scalar, {}, ConstantAttrs{Literal::Scalar(kF32, 1.0)});
  Instr* loop = main->Append(Op::kWhile, scalar, {one});
  loop->set_called({always.value(), next.value()});
  main->set_root(loop);
  module.set_entry(main);

  RunOptions options;
  options.max_steps = 1000;
  Result<RunOutcome> endless = Interpret(module, {}, options);
  ASSERT_FALSE(endless.ok());
  EXPECT_EQ(endless.error().code, ErrorCode::kTooManySteps);
  EXPECT_EQ(InfoOf(endless.error().code).exit, ExitCode::kMachine);
}

}  // namespace
}  // namespace tokamak
