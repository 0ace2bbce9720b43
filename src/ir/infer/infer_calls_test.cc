// Shape inference of calls, control flow, collectives and the remaining ops, built with the
// Builder; also the Builder's own handling of errors. A test states the shape that an op returns,
// or the error code (TK....) of an invalid use.

#include <gtest/gtest.h>

#include "ir/builder.h"
#include "ir/infer.h"

namespace tokamak {
namespace {

const Shape kVector = Shape::Array(ElementType::kF32, {4});
const Shape kScalar = Shape::Scalar(ElementType::kF32);
const Shape kPredScalar = Shape::Scalar(ElementType::kPred);
const Shape kInt = Shape::Scalar(ElementType::kS32);

struct Built {
  Module module;
  Builder b{module, "main"};
  // The code of the first error, or 0.
  ErrorCode code() const { return b.error() ? b.error()->code : ErrorCode{}; }
  std::string text(const Instr* instr) const {
    return instr == nullptr ? CodeText(code()) : ToString(instr->shape());
  }
  // Takes and returns `shape`.
  Computation* Identity(const Shape& shape) {
    Builder inner(module, "identity");
    return inner.Finish(inner.Parameter(shape)).value();
  }
  Computation* Always(const Shape& shape) {
    Builder inner(module, "always");
    inner.Parameter(shape);
    return inner.Finish(inner.Scalar(ElementType::kPred, 1)).value();
  }
  Computation* Add() {
    Builder inner(module, "add");
    Instr* x = inner.Parameter(kScalar);
    return inner.Finish(inner.Add(x, inner.Parameter(kScalar))).value();
  }
};

TEST(Builder, KeepsTheFirstError) {
  Built t;
  Instr* x = t.b.Parameter(kVector);
  Instr* bad = t.b.Add(x, t.b.Parameter(kScalar));
  EXPECT_EQ(bad, nullptr);
  EXPECT_EQ(t.b.Tanh(bad), nullptr);
  EXPECT_EQ(t.b.Transpose(x, {5}), nullptr);
  Result<Computation*> done = t.b.Finish(bad);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::kOperandDimensions);
  EXPECT_EQ(done.error().message,
            "add: dimensions differ: operand 0 is f32[4], operand 1 is f32[]");
}

TEST(Builder, BuildsWhatVerifies) {
  Built t;
  Instr* x = t.b.Parameter(Shape::Array(ElementType::kF32, {4, 3}));
  Instr* y = t.b.Transpose(t.b.Tanh(x), {1, 0});
  DotAttrs matmul;
  matmul.lhs_contracting = {1};
  matmul.rhs_contracting = {0};
  Instr* d = t.b.Dot(x, y, matmul, ElementType::kF64);
  Instr* s = t.b.Reduce({t.b.Convert(d, ElementType::kF32)}, {t.b.Scalar(ElementType::kF32, 0)},
                        {0, 1}, t.Add());
  Result<Computation*> done = t.b.Finish(s);
  ASSERT_TRUE(done.ok()) << done.error().message;
  t.module.set_entry(done.value());
  EXPECT_EQ(t.text(d), "f64[4,4]");
  Status verified = VerifyModule(t.module);
  EXPECT_TRUE(verified.ok()) << verified.error().message;
}

TEST(InferCalls, Calls) {
  Built t;
  Instr* x = t.b.Parameter(kVector);
  EXPECT_EQ(t.text(t.b.Call(t.Identity(kVector), {x})), "f32[4]");
  t.b.Call(t.Identity(kVector), {x, x});
  EXPECT_EQ(t.code(), ErrorCode::kArgumentCount);
  Built u;
  u.b.Call(u.Identity(kScalar), {u.b.Parameter(kVector)});
  EXPECT_EQ(u.code(), ErrorCode::kArgumentShape);
}

TEST(InferCalls, Tuples) {
  Built t;
  Instr* pair = t.b.Tuple({t.b.Parameter(kVector), t.b.Parameter(kInt)});
  EXPECT_EQ(t.text(t.b.GetTupleElement(pair, 1)), "s32[]");
  t.b.GetTupleElement(pair, 2);
  EXPECT_EQ(t.code(), ErrorCode::kTupleIndex);
  Built u;
  u.b.GetTupleElement(u.b.Parameter(kVector), 0);
  EXPECT_EQ(u.code(), ErrorCode::kNotATuple);
}

TEST(InferCalls, While) {
  Built t;
  Instr* x = t.b.Parameter(kVector);
  EXPECT_EQ(t.text(t.b.While(t.Always(kVector), t.Identity(kVector), {x})), "f32[4]");
  t.b.While(t.Identity(kVector), t.Identity(kVector), {x});
  EXPECT_EQ(t.code(), ErrorCode::kWhileCondition);
  Built u;
  Builder body(u.module, "body");
  body.Parameter(kVector);
  Computation* wrong = body.Finish(body.Scalar(ElementType::kF32, 0)).value();
  u.b.While(u.Always(kVector), wrong, {u.b.Parameter(kVector)});
  EXPECT_EQ(u.code(), ErrorCode::kWhileState);
}

TEST(InferCalls, Conditional) {
  Built t;
  Instr* p = t.b.Parameter(kPredScalar);
  Instr* x = t.b.Parameter(kVector);
  EXPECT_EQ(t.text(t.b.Conditional(p, {t.Identity(kVector), t.Identity(kVector)}, {x, x})),
            "f32[4]");
  t.b.Conditional(p, {t.Identity(kVector), t.Identity(kVector)}, {x});
  EXPECT_EQ(t.code(), ErrorCode::kBranchArguments);
  Built u;
  u.b.Conditional(u.b.Parameter(kPredScalar), {u.Identity(kVector)}, {u.b.Parameter(kVector)});
  EXPECT_EQ(u.code(), ErrorCode::kBranchCount);
  Built v;
  Instr* y = v.b.Parameter(kVector);
  v.b.Conditional(y, {v.Identity(kVector)}, {y});
  EXPECT_EQ(v.code(), ErrorCode::kBranchIndex);
  Built w;
  Instr* i = w.b.Parameter(kInt);
  w.b.Conditional(i, {w.Identity(kVector), w.Identity(kInt)}, {w.b.Parameter(kVector), i});
  EXPECT_EQ(w.code(), ErrorCode::kBranchResults);
}

TEST(InferCollectives, AllGatherAndGroups) {
  auto give = [](std::vector<Dims> groups, Dims result) {
    Built t;
    CollectiveAttrs attrs;
    attrs.groups.lists = std::move(groups);
    attrs.dimensions = {0};
    Instr* x = t.b.Parameter(kVector);
    return t.text(t.b.Append(Op::kAllGather, {x}, attrs,
                             {.shape = Shape::Array(ElementType::kF32, std::move(result))}));
  };
  EXPECT_EQ(give({{0, 1}, {2, 3}}, {8}), "f32[8]");
  EXPECT_EQ(give({{0, 1}}, {12}), CodeText(ErrorCode::kGatheredSize));
  EXPECT_EQ(give({{0, 1}, {1, 2}}, {8}), CodeText(ErrorCode::kReplicaGroups));
  EXPECT_EQ(give({{0, 1}, {2}}, {8}), CodeText(ErrorCode::kGroupSizes));
  EXPECT_EQ(give({}, {12}), "f32[12]");
  EXPECT_EQ(give({}, {13}), CodeText(ErrorCode::kGatheredSize));
}

TEST(InferCollectives, AllReduceAndPermute) {
  Built t;
  Instr* x = t.b.Parameter(kVector);
  EXPECT_EQ(t.text(t.b.Append(Op::kAllReduce, {x, x}, {}, {.called = {t.Add()}})),
            "(f32[4], f32[4])");
  PermuteAttrs ring;
  ring.source_target_pairs = {{0, 1}, {1, 0}};
  EXPECT_EQ(t.text(t.b.Append(Op::kCollectivePermute, {x}, ring)), "f32[4]");
  ring.source_target_pairs = {{0, 1}, {0, 2}};
  t.b.Append(Op::kCollectivePermute, {x}, ring);
  EXPECT_EQ(t.code(), ErrorCode::kSourceTargets);
}

TEST(InferLinearAlgebra, Shapes) {
  auto matrix = [](Dims dims) { return Shape::Array(ElementType::kF32, std::move(dims)); };
  Built t;
  Instr* a = t.b.Parameter(matrix({5, 3, 3}));
  Instr* b = t.b.Parameter(matrix({5, 3, 2}));
  EXPECT_EQ(t.text(t.b.Append(Op::kCholesky, {a})), "f32[5,3,3]");
  TriangularSolveAttrs left;
  left.left_side = true;
  EXPECT_EQ(t.text(t.b.Append(Op::kTriangularSolve, {a, b}, left)), "f32[5,3,2]");
  EXPECT_EQ(t.text(t.b.Append(Op::kFft, {a}, FftAttrs{FftType::kRfft, {3}})), "c64[5,3,2]");
  EXPECT_EQ(t.text(t.b.Append(Op::kBatchNormTraining,
                              {b, t.b.Parameter(matrix({3})), t.b.Parameter(matrix({3}))},
                              BatchNormAttrs{0.1, 1})),
            "(f32[5,3,2], f32[3], f32[3])");
  t.b.Append(Op::kTriangularSolve, {a, b});
  EXPECT_EQ(t.code(), ErrorCode::kSolveShapes);
  Built u;
  u.b.Append(Op::kCholesky, {u.b.Parameter(matrix({3, 2}))});
  EXPECT_EQ(u.code(), ErrorCode::kNotSquare);
}

TEST(InferQuantized, QuantizeAddDequantize) {
  QuantType quant;
  quant.scales = {0.5};
  quant.zero_points = {3};
  quant.storage_min = -128;
  quant.storage_max = 127;
  Shape bytes = Shape::Array(ElementType::kS8, {4}).WithQuant(quant);
  Built t;
  Instr* x = t.b.Parameter(kVector);
  Instr* q = t.b.Append(Op::kUniformQuantize, {x}, {}, {.shape = bytes});
  Instr* sum = t.b.Append(Op::kAdd, {q, q});
  EXPECT_EQ(t.text(sum), "s8[4]");
  EXPECT_NE(sum->shape().quant(), nullptr);
  EXPECT_EQ(t.text(t.b.Append(Op::kUniformDequantize, {sum})), "f32[4]");
  t.b.Append(Op::kAdd, {q, t.b.Parameter(Shape::Array(ElementType::kS8, {4}))});
  EXPECT_EQ(t.code(), ErrorCode::kQuantMixed);
  Built u;
  u.b.Append(Op::kUniformDequantize, {u.b.Parameter(kVector)});
  EXPECT_EQ(u.code(), ErrorCode::kNotQuantized);
}

TEST(InferDynamic, SetDimensionSizeGivesABound) {
  Built t;
  Instr* x = t.b.Parameter(kVector);
  Instr* y = t.b.Append(Op::kSetDimensionSize, {x, t.b.Parameter(kInt)}, DimensionAttrs{0});
  EXPECT_EQ(t.text(y), "f32[<=4]");
  EXPECT_EQ(t.text(t.b.Append(Op::kGetDimensionSize, {y}, DimensionAttrs{0})), "s32[]");
  t.b.Append(Op::kSetDimensionSize, {x, x}, DimensionAttrs{0});
  EXPECT_EQ(t.code(), ErrorCode::kSizeOperand);
}

}  // namespace
}  // namespace tokamak
