#include "ir/extract.h"

#include <gtest/gtest.h>

#include "ir/builder.h"
#include "ir/infer.h"

namespace tokamak {
namespace {

// x * x + y, a reduction of it, and what uses both.
struct Extracted {
  std::unique_ptr<Module> module = std::make_unique<Module>("whole");
  Instr *square = nullptr, *shifted = nullptr, *total = nullptr;

  Extracted() {
    Shape vector = Shape::Array(ElementType::kF32, {4});
    Builder body(*module, "sum");
    Instr* a = body.Parameter(Shape::Scalar(ElementType::kF32));
    Instr* b = body.Parameter(Shape::Scalar(ElementType::kF32));
    Computation* sum = body.Finish(body.Add(a, b)).value();
    Builder main(*module, "main");
    Instr* x = main.Parameter(vector, "x");
    Instr* y = main.Parameter(vector, "y");
    square = main.Multiply(x, x);
    shifted = main.Add(square, y);
    total = main.Reduce({shifted}, {main.Scalar(ElementType::kF32, 0)}, {0}, sum);
    module->set_entry(main.Finish(main.Tuple({shifted, total})).value());
  }
};

TEST(ExtractModule, TakesOperandsUpToTheInputsAndWhatIsCalled) {
  Extracted of;
  const Instr* inputs[] = {of.square, of.shifted->operand(1)};
  const Instr* roots[] = {of.shifted, of.total};
  std::unique_ptr<Module> alone = ExtractModule(inputs, roots, "alone");
  ASSERT_TRUE(VerifyModule(*alone).ok());
  const Computation& main = *alone->entry();
  ASSERT_EQ(main.parameters().size(), 2u);
  EXPECT_EQ(main.parameter(1)->name(), "y");
  EXPECT_EQ(main.CountOf(Op::kMultiply), 0u);
  EXPECT_EQ(main.CountOf(Op::kConstant), 1u);
  ASSERT_EQ(main.root()->op(), Op::kTuple);
  EXPECT_EQ(main.root()->operand(0)->op(), Op::kAdd);
  EXPECT_EQ(alone->computations().size(), 2u);
  EXPECT_EQ(main.root()->operand(1)->called(0)->module(), alone.get());
}

TEST(ExtractModule, HasNoTupleForOneRoot) {
  Extracted of;
  const Instr* inputs[] = {of.square->operand(0)};
  const Instr* roots[] = {of.square};
  std::unique_ptr<Module> alone = ExtractModule(inputs, roots, "alone");
  ASSERT_TRUE(VerifyModule(*alone).ok());
  EXPECT_EQ(alone->entry()->root()->op(), Op::kMultiply);
}

}  // namespace
}  // namespace tokamak
