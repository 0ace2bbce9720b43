#include "interp/scalar_body.h"

#include <utility>

#include <gtest/gtest.h>

#include "interp/module_interpreter.h"

namespace tokamak {
namespace {

constexpr ElementType kBodyF32 = ElementType::kF32;

// max(x * y, 0.1), and whether x < y: compiled steps and a call must agree in every bit.
TEST(ScalarBody, MatchesACall) {
  Module module("m");
  Computation* body = module.AddComputation("body");
  Shape scalar = Shape::Scalar(kBodyF32), pred = Shape::Scalar(ElementType::kPred);
  Instr* x = body->AppendParameter(0, scalar);
  Instr* y = body->AppendParameter(1, scalar);
  Instr* tenth =
      body->Append(Op::kConstant, scalar, {}, ConstantAttrs{Literal::Scalar(kBodyF32, 0.1)});
  Instr* product = body->Append(Op::kMultiply, scalar, {x, y});
  Instr* larger = body->Append(Op::kMaximum, scalar, {product, tenth});
  CompareAttrs less;
  less.direction = CompareDirection::kLt;
  Instr* test = body->Append(Op::kCompare, pred, {x, y}, less);
  body->set_root(body->Append(Op::kTuple, Shape::Tuple({scalar, pred}), {larger, test}));

  ModuleInterpreter interpreter(NumericMode::kReference, nullptr);
  ScalarBody steps(*body, interpreter);
  ASSERT_EQ(steps.result_count(), 2u);
  for (double a : {-1.5, 0.0, 0.3, 7.25}) {
    a = RoundToType(kBodyF32, a);
    double b = RoundToType(kBodyF32, 1.1);
    steps.in(0).Set(a);
    steps.in(1).Set(b);
    ASSERT_TRUE(steps.Apply().ok());
    std::vector<Value> arguments{Value::Scalar(kBodyF32, a), Value::Scalar(kBodyF32, b)};
    Result<Value> called = interpreter.Call(*body, std::move(arguments));
    ASSERT_TRUE(called.ok());
    EXPECT_EQ(steps.out(0).Get<double>(), called.value().elements()[0].DoubleAt(0));
    EXPECT_EQ(steps.out(1).Get<uint8_t>(), called.value().elements()[1].IntAt(0));
  }
}

TEST(ScalarBody, ReducesASimpleOp) {
  Module module("m");
  Computation* body = module.AddComputation("add");
  Shape scalar = Shape::Scalar(ElementType::kBF16);
  Instr* x = body->AppendParameter(0, scalar);
  Instr* y = body->AppendParameter(1, scalar);
  body->set_root(body->Append(Op::kAdd, scalar, {x, y}));
  ModuleInterpreter interpreter(NumericMode::kReference, nullptr);
  std::vector<double> ones(300, 1.0);
  double rounded = 0, exact = 0;
  ScalarBody narrow(*body, interpreter);
  EXPECT_EQ(narrow.simple(), Op::kAdd);
  ASSERT_TRUE(narrow.Accumulate<double>(rounded, ones.data(), ones.size()).ok());
  EXPECT_EQ(rounded, 256);  // bf16 has no 257
  ScalarBody wide(*body, interpreter, ScalarBody::Narrow::kAsF32);
  ASSERT_TRUE(wide.Accumulate<double>(exact, ones.data(), ones.size()).ok());
  EXPECT_EQ(exact, 300);
}

}  // namespace
}  // namespace tokamak
