// Shape inference of single ops, without instructions: a Trial is the input of InferShape. Shapes
// are written as text: S() parses "f32[2,?]". Each test states the shape that an op returns and the
// error code for invalid uses.

#include "ir/infer.h"

#include <gtest/gtest.h>

#include "ir/builder.h"

namespace tokamak {
namespace {

// "f32[2,?]".
Shape S(const std::string& text) {
  size_t open = text.find('[');
  Dims dims;
  std::string number;
  for (char c : text.substr(open + 1)) {
    if (c != ',' && c != ']') {
      number += c;
    } else if (!number.empty()) {
      dims.push_back(number == "?" ? kDynamic : std::stoll(number));
      number.clear();
    }
  }
  return Shape::Array(*ElementTypeFromHlo(text.substr(0, open)), std::move(dims));
}

// The inferred shape as text, or the error code.
struct Trial {
  Op op;
  std::vector<Shape> operands;
  Attrs attrs = {};
  std::vector<Computation*> called = {};
  std::optional<Shape> written = {};
  size_t captures = 0;

  Result<Shape> Run() const {
    return InferShape({op, operands, attrs, called, captures, written ? &*written : nullptr});
  }
};

std::string Inferred(const Trial& trial) {
  Result<Shape> shape = trial.Run();
  return shape.ok() ? ToString(shape.value()) : CodeText(shape.error().code);
}

std::string Code(ErrorCode code) {
  return CodeText(code);
}

// A module with the computations that the tests call.
struct Bodies {
  Module module;
  // (types) -> the op applied to the first two parameters, or to the first.
  Computation* Binary(Op op, const std::string& type) {
    Builder b(module, "binary");
    Instr* x = b.Parameter(S(type));
    Instr* y = b.Parameter(S(type));
    return b.Finish(b.Append(op, {x, y})).value();
  }
  Computation* Less(const std::string& type) { return Binary(Op::kCompare, type); }
};

TEST(InferElementwise, SameShapes) {
  EXPECT_EQ(Inferred({Op::kAdd, {S("f32[2,3]"), S("f32[2,3]")}}), "f32[2,3]");
  EXPECT_EQ(Inferred({Op::kAdd, {S("f32[2,?]"), S("f32[?,3]")}}), "f32[2,3]");
  EXPECT_EQ(Inferred({Op::kAdd, {S("f32[2]"), S("f32[3]")}}), Code(ErrorCode::kOperandDimensions));
  EXPECT_EQ(Inferred({Op::kAdd, {S("f32[2]"), S("f64[2]")}}), Code(ErrorCode::kOperandTypes));
  EXPECT_EQ(Inferred({Op::kAdd, {S("f32[2]")}}), Code(ErrorCode::kOperandCount));
  EXPECT_EQ(Inferred({Op::kAdd, {S("f32[2]"), Shape::Token()}}), Code(ErrorCode::kNotAnArray));
  EXPECT_EQ(Inferred({Op::kExp, {S("s32[2]")}}), Code(ErrorCode::kUnsupportedElementType));
  EXPECT_EQ(Inferred({Op::kNot, {S("pred[2]")}}), "pred[2]");
  EXPECT_EQ(Inferred({.op = Op::kNegate, .operands = {S("f32[2]")}, .written = S("f32[3]")}),
            Code(ErrorCode::kResultShape));
  EXPECT_EQ(Inferred({.op = Op::kNegate, .operands = {S("f32[2]")}, .written = S("f64[2]")}),
            Code(ErrorCode::kResultType));
  EXPECT_EQ(Inferred({.op = Op::kNegate, .operands = {S("f32[2]")}, .written = Shape::Token()}),
            Code(ErrorCode::kResultIsNotAnArray));
  EXPECT_EQ(Inferred({.op = Op::kNegate, .operands = {S("f32[2]")}, .written = S("f32[?]")}),
            "f32[2]");
  EXPECT_EQ(Inferred({.op = Op::kNegate, .operands = {S("f32[?]")}, .written = S("f32[2]")}),
            "f32[2]");
}

TEST(InferElementwise, WrittenLayoutAndBoundsStay) {
  Layout layout;
  layout.minor_to_major = {0, 1};
  Shape written = S("f32[2,3]").WithLayout(layout);
  EXPECT_EQ(Inferred({.op = Op::kNegate, .operands = {S("f32[2,3]")}, .written = written}),
            "f32[2,3]{0,1}");
  Shape bounded = S("f32[?]").WithBounds({4});
  EXPECT_EQ(Inferred({.op = Op::kNegate, .operands = {bounded}}), "f32[<=4]");
  EXPECT_EQ(Inferred({.op = Op::kNegate, .operands = {S("f32[4]")}, .written = bounded}),
            "f32[<=4]");
  EXPECT_EQ(Inferred({.op = Op::kNegate, .operands = {S("f32[5]")}, .written = bounded}),
            Code(ErrorCode::kResultShape));
}

TEST(InferElementwise, OtherTypes) {
  EXPECT_EQ(Inferred({Op::kAbs, {S("c64[2]")}}), "f32[2]");
  EXPECT_EQ(Inferred({Op::kComplex, {S("f64[2]"), S("f64[2]")}}), "c128[2]");
  EXPECT_EQ(Inferred({Op::kComplex, {S("f16[2]"), S("f16[2]")}}),
            Code(ErrorCode::kUnsupportedElementType));
  EXPECT_EQ(Inferred({Op::kIsFinite, {S("f32[2]")}}), "pred[2]");
  EXPECT_EQ(Inferred({.op = Op::kConvert, .operands = {S("f32[2]")}, .written = S("s8[2]")}),
            "s8[2]");
  EXPECT_EQ(Inferred({Op::kConvert, {S("f32[2]")}}), Code(ErrorCode::kShapeMissing));
  EXPECT_EQ(Inferred({Op::kReducePrecision, {S("f32[2]")}, ReducePrecisionAttrs{5, 10}}), "f32[2]");
  EXPECT_EQ(Inferred({Op::kReducePrecision, {S("f32[2]")}, ReducePrecisionAttrs{0, 10}}),
            Code(ErrorCode::kPrecisionBits));
}

TEST(InferElementwise, CompareSelectClamp) {
  auto compare = [](const char* type, CompareDirection d, CompareType t) {
    return Inferred({Op::kCompare, {S(type), S(type)}, CompareAttrs{d, t}});
  };
  EXPECT_EQ(compare("f32[2]", CompareDirection::kLt, CompareType::kTotalOrder), "pred[2]");
  EXPECT_EQ(compare("s32[2]", CompareDirection::kLt, CompareType::kTotalOrder),
            Code(ErrorCode::kCompareType));
  EXPECT_EQ(compare("c64[]", CompareDirection::kEq, CompareType::kFloat), "pred[]");
  EXPECT_EQ(compare("c64[]", CompareDirection::kLt, CompareType::kNone),
            Code(ErrorCode::kComplexOrder));
  EXPECT_EQ(Inferred({Op::kSelect, {S("pred[]"), S("f32[2]"), S("f32[2]")}}), "f32[2]");
  EXPECT_EQ(Inferred({Op::kSelect, {S("pred[3]"), S("f32[2]"), S("f32[2]")}}),
            Code(ErrorCode::kSelectPredicate));
  EXPECT_EQ(Inferred({Op::kSelect, {S("s32[2]"), S("f32[2]"), S("f32[2]")}}),
            Code(ErrorCode::kSelectPredicate));
  EXPECT_EQ(Inferred({Op::kClamp, {S("f32[]"), S("f32[2]"), S("f32[2]")}}), "f32[2]");
  EXPECT_EQ(Inferred({Op::kClamp, {S("f32[3]"), S("f32[2]"), S("f32[2]")}}),
            Code(ErrorCode::kClampBounds));
}

TEST(InferElementwise, Map) {
  Bodies bodies;
  Computation* add = bodies.Binary(Op::kAdd, "f32[]");
  EXPECT_EQ(Inferred({Op::kMap, {S("f32[2,3]"), S("f32[2,3]")}, DimensionsAttrs{{0, 1}}, {add}}),
            "f32[2,3]");
  EXPECT_EQ(Inferred({Op::kMap, {S("f32[2,3]"), S("f32[2,3]")}, DimensionsAttrs{{1, 0}}, {add}}),
            Code(ErrorCode::kMapDimensions));
  EXPECT_EQ(Inferred({Op::kMap, {S("f32[2]")}, DimensionsAttrs{{0}}, {add}}),
            Code(ErrorCode::kBodyParameterCount));
  EXPECT_EQ(Inferred({Op::kMap, {S("s32[2]"), S("s32[2]")}, DimensionsAttrs{{0}}, {add}}),
            Code(ErrorCode::kBodyParameter));
}

TEST(InferDataMovement, BroadcastReshapeTranspose) {
  auto broadcast = [](const char* x, const char* y, Dims dims) {
    return Inferred({.op = Op::kBroadcast,
                     .operands = {S(x)},
                     .attrs = DimensionsAttrs{std::move(dims)},
                     .written = S(y)});
  };
  EXPECT_EQ(broadcast("f32[3]", "f32[2,3]", {1}), "f32[2,3]");
  EXPECT_EQ(broadcast("f32[1,3]", "f32[2,3]", {0, 1}), "f32[2,3]");
  EXPECT_EQ(broadcast("f32[2]", "f32[2,3]", {1}), Code(ErrorCode::kBroadcastSize));
  EXPECT_EQ(broadcast("f32[2]", "f32[2,3]", {2}), Code(ErrorCode::kDimensionRange));
  EXPECT_EQ(broadcast("f32[2,2]", "f32[2,2]", {0, 0}), Code(ErrorCode::kDimensionTwice));
  EXPECT_EQ(broadcast("f32[2]", "f32[2,3]", {}), Code(ErrorCode::kDimensionCount));
  EXPECT_EQ(broadcast("f32[2]", "f32[2,3]", {-1}), Code(ErrorCode::kDimensionRange));
  EXPECT_EQ(Inferred({.op = Op::kReshape, .operands = {S("f32[6]")}, .written = S("f32[2,3]")}),
            "f32[2,3]");
  EXPECT_EQ(Inferred({.op = Op::kReshape, .operands = {S("f32[6]")}, .written = S("f32[2,4]")}),
            Code(ErrorCode::kReshapeCount));
  EXPECT_EQ(Inferred({Op::kTranspose, {S("f32[2,3,4]")}, DimensionsAttrs{{2, 0, 1}}}),
            "f32[4,2,3]");
  EXPECT_EQ(Inferred({Op::kTranspose, {S("f32[2,3]")}, DimensionsAttrs{{0, 0}}}),
            Code(ErrorCode::kNotPermutation));
  EXPECT_EQ(Inferred({Op::kReverse, {S("f32[2,3]")}, DimensionsAttrs{{1}}}), "f32[2,3]");
}

TEST(InferDataMovement, SlicesAndPads) {
  auto slice = [](Dims a, Dims b, Dims c) {
    return Inferred({Op::kSlice, {S("f32[10]")}, SliceAttrs{a, b, c}});
  };
  EXPECT_EQ(slice({1}, {10}, {2}), "f32[5]");
  EXPECT_EQ(slice({10}, {10}, {1}), "f32[0]");
  EXPECT_EQ(slice({0}, {11}, {1}), Code(ErrorCode::kSliceRange));
  EXPECT_EQ(slice({5}, {4}, {1}), Code(ErrorCode::kSliceRange));
  EXPECT_EQ(slice({0}, {4}, {0}), Code(ErrorCode::kStrideRange));
  EXPECT_EQ(slice({0}, {4}, {}), Code(ErrorCode::kDimensionCount));
  EXPECT_EQ(
      Inferred(
          {Op::kDynamicSlice, {S("f32[10,4]"), S("s32[]"), S("s32[]")}, DynamicSliceAttrs{{2, 4}}}),
      "f32[2,4]");
  EXPECT_EQ(Inferred({Op::kDynamicSlice, {S("f32[10]"), S("f32[]")}, DynamicSliceAttrs{{2}}}),
            Code(ErrorCode::kStartIndices));
  EXPECT_EQ(Inferred({Op::kDynamicSlice, {S("f32[10]"), S("s32[]")}, DynamicSliceAttrs{{11}}}),
            Code(ErrorCode::kSliceSize));
  EXPECT_EQ(Inferred({Op::kDynamicUpdateSlice, {S("f32[10]"), S("f32[11]"), S("s32[]")}}),
            Code(ErrorCode::kSliceSize));
  auto pad = [](int64_t low, int64_t high, int64_t interior) {
    return Inferred({Op::kPad, {S("f32[3]"), S("f32[]")}, PadAttrs{{low}, {high}, {interior}}});
  };
  EXPECT_EQ(pad(1, 2, 1), "f32[8]");
  EXPECT_EQ(pad(-1, -2, 0), "f32[0]");
  EXPECT_EQ(pad(-4, 0, 0), Code(ErrorCode::kPaddedSize));
  EXPECT_EQ(pad(0, 0, -1), Code(ErrorCode::kPadInterior));
  EXPECT_EQ(pad(INT64_MAX, INT64_MAX, INT64_MAX), Code(ErrorCode::kSizeOverflow));
  EXPECT_EQ(pad(INT64_MIN, INT64_MIN, 0), Code(ErrorCode::kPaddedSize));
}

TEST(InferDataMovement, ConcatenateAndBitcast) {
  EXPECT_EQ(Inferred({Op::kConcatenate, {S("f32[2,3]"), S("f32[4,3]")}, DimensionAttrs{0}}),
            "f32[6,3]");
  EXPECT_EQ(Inferred({Op::kConcatenate, {S("f32[2,3]"), S("f32[4,4]")}, DimensionAttrs{0}}),
            Code(ErrorCode::kConcatenateShapes));
  EXPECT_EQ(Inferred({Op::kConcatenate, {}, DimensionAttrs{0}}), Code(ErrorCode::kOperandCount));
  Shape huge = Shape::Array(ElementType::kF32, {kMaxElements});
  EXPECT_EQ(Inferred({Op::kConcatenate, {huge, huge}, DimensionAttrs{0}}),
            Code(ErrorCode::kSizeOverflow));
  auto bitcast = [](const char* x, const char* y) {
    return Inferred({.op = Op::kBitcastConvert, .operands = {S(x)}, .written = S(y)});
  };
  EXPECT_EQ(bitcast("f32[3]", "u8[3,4]"), "u8[3,4]");
  EXPECT_EQ(bitcast("u8[3,4]", "f32[3]"), "f32[3]");
  EXPECT_EQ(bitcast("u8[3,2]", "f32[3]"), Code(ErrorCode::kBitcastWidth));
  EXPECT_EQ(bitcast("u8[]", "f32[]"), Code(ErrorCode::kBitcastWidth));
  EXPECT_EQ(bitcast("f32[3]", "u8[3,3]"), Code(ErrorCode::kResultShape));
}

TEST(InferReduce, TypesMayWiden) {
  Bodies bodies;
  Computation* add = bodies.Binary(Op::kAdd, "f32[]");
  EXPECT_EQ(Inferred({Op::kReduce, {S("f32[2,3]"), S("f32[]")}, DimensionsAttrs{{1}}, {add}}),
            "f32[2]");
  EXPECT_EQ(Inferred({Op::kReduce, {S("bf16[2,3]"), S("bf16[]")}, DimensionsAttrs{{0, 1}}, {add}}),
            "f32[]");
  EXPECT_EQ(Inferred({Op::kReduce, {S("s32[2,3]"), S("s32[]")}, DimensionsAttrs{{1}}, {add}}),
            Code(ErrorCode::kBodyParameter));
  EXPECT_EQ(Inferred({Op::kReduce, {S("f32[2,3]"), S("f32[1]")}, DimensionsAttrs{{1}}, {add}}),
            Code(ErrorCode::kInitialValue));
  EXPECT_EQ(Inferred({Op::kReduce, {S("f32[2,3]")}, DimensionsAttrs{{1}}, {add}}),
            Code(ErrorCode::kInputsAndInits));
  EXPECT_EQ(Inferred({Op::kReduce, {S("f32[2,3]"), S("f32[]")}, DimensionsAttrs{{1, 1}}, {add}}),
            Code(ErrorCode::kDimensionTwice));
  EXPECT_EQ(Inferred({Op::kReduce, {S("f32[2,3]"), S("f32[]")}, DimensionsAttrs{{1}}, {}}),
            Code(ErrorCode::kCalledCount));
  EXPECT_EQ(
      Inferred(
          {Op::kReduce, {S("f32[2]"), S("f32[]")}, DimensionsAttrs{{0}}, {bodies.Less("f32[]")}}),
      Code(ErrorCode::kBodyResult));
}

TEST(InferReduce, CapturesAreTrailingParameters) {
  Module module;
  Builder b(module, "scaled");
  Instr* x = b.Parameter(S("f32[]"));
  Instr* y = b.Parameter(S("f32[]"));
  Instr* scale = b.Parameter(S("f32[]"));
  Computation* body = b.Finish(b.Add(x, b.Multiply(y, scale))).value();
  Trial trial{Op::kReduce, {S("f32[2]"), S("f32[]"), S("f32[]")}, DimensionsAttrs{{0}}, {body}};
  EXPECT_EQ(Inferred(trial), Code(ErrorCode::kInputsAndInits));
  trial.captures = 1;
  EXPECT_EQ(Inferred(trial), "f32[]");
  trial.operands[2] = S("f32[3]");
  EXPECT_EQ(Inferred(trial), Code(ErrorCode::kBodyParameter));
}

TEST(InferReduce, Windows) {
  Bodies bodies;
  Computation* add = bodies.Binary(Op::kAdd, "f32[]");
  WindowDim w{.size = 3, .stride = 2, .pad_low = 1, .pad_high = 1};
  Attrs attrs = WindowAttrs{{w}};
  EXPECT_EQ(Inferred({Op::kReduceWindow, {S("f32[10]"), S("f32[]")}, attrs, {add}}), "f32[5]");
  EXPECT_EQ(Inferred({Op::kReduceWindow, {S("f32[0]"), S("f32[]")}, attrs, {add}}), "f32[0]");
  EXPECT_EQ(Inferred({Op::kReduceWindow, {S("f32[2,2]"), S("f32[]")}, attrs, {add}}),
            Code(ErrorCode::kWindowRank));
  w.stride = 0;
  EXPECT_EQ(Inferred({Op::kReduceWindow, {S("f32[10]"), S("f32[]")}, WindowAttrs{{w}}, {add}}),
            Code(ErrorCode::kWindowRange));
  WindowDim plain{.size = 2, .stride = 2};
  Trial select{Op::kSelectAndScatter,
               {S("f32[10]"), S("f32[5]"), S("f32[]")},
               WindowAttrs{{plain}},
               {bodies.Less("f32[]"), add}};
  EXPECT_EQ(Inferred(select), "f32[10]");
  select.operands[1] = S("f32[4]");
  EXPECT_EQ(Inferred(select), Code(ErrorCode::kSourceShape));
}

TEST(InferGather, RowsOfAMatrix) {
  GatherAttrs rows;
  rows.offset_dims = {1};
  rows.collapsed_slice_dims = {0};
  rows.start_index_map = {0};
  rows.index_vector_dim = 1;
  rows.slice_sizes = {1, 8};
  auto give = [](const GatherAttrs& attrs) {
    return Inferred({Op::kGather, {S("f32[10,8]"), S("s32[5,1]")}, attrs});
  };
  EXPECT_EQ(give(rows), "f32[5,8]");
  auto broken = [&](auto change) {
    GatherAttrs attrs = rows;
    change(attrs);
    return give(attrs);
  };
  EXPECT_EQ(broken([](auto& a) { a.index_vector_dim = 3; }), Code(ErrorCode::kIndexVectorDim));
  EXPECT_EQ(broken([](auto& a) { a.start_index_map = {0, 1}; }), Code(ErrorCode::kStartIndexMap));
  EXPECT_EQ(broken([](auto& a) { a.start_index_map = {2}; }), Code(ErrorCode::kDimensionRange));
  EXPECT_EQ(broken([](auto& a) { a.slice_sizes = {1, 9}; }), Code(ErrorCode::kGatherSliceSize));
  EXPECT_EQ(broken([](auto& a) { a.slice_sizes = {2, 8}; }), Code(ErrorCode::kGatherSliceSize));
  EXPECT_EQ(broken([](auto& a) { a.offset_dims = {0, 1}; }), Code(ErrorCode::kOffsetDims));
  EXPECT_EQ(broken([](auto& a) { a.offset_dims = {5}; }), Code(ErrorCode::kDimensionRange));
  EXPECT_EQ(broken([](auto& a) { a.operand_batching_dims = {1}; }), Code(ErrorCode::kBatchingDims));
}

TEST(InferGather, Scatter) {
  Bodies bodies;
  ScatterAttrs rows;
  rows.update_window_dims = {1};
  rows.inserted_window_dims = {0};
  rows.scatter_dims_to_operand_dims = {0};
  rows.index_vector_dim = 1;
  Trial trial{Op::kScatter,
              {S("f32[10,8]"), S("s32[5,1]"), S("f32[5,8]")},
              rows,
              {bodies.Binary(Op::kAdd, "f32[]")}};
  EXPECT_EQ(Inferred(trial), "f32[10,8]");
  trial.operands[2] = S("f32[5,9]");
  EXPECT_EQ(Inferred(trial), Code(ErrorCode::kUpdateShape));
  trial.operands[2] = S("f32[4,8]");
  EXPECT_EQ(Inferred(trial), Code(ErrorCode::kUpdateShape));
  trial.operands[2] = S("f32[5,8]");
  trial.operands[1] = S("f32[5,1]");
  EXPECT_EQ(Inferred(trial), Code(ErrorCode::kIndicesType));
}

TEST(InferSort, Comparators) {
  Bodies bodies;
  Computation* less = bodies.Less("f32[]");
  EXPECT_EQ(Inferred({Op::kSort, {S("f32[4]")}, SortAttrs{0, true}, {less}}), "f32[4]");
  EXPECT_EQ(Inferred({Op::kSort, {S("f32[4]")}, SortAttrs{1, true}, {less}}),
            Code(ErrorCode::kDimensionRange));
  EXPECT_EQ(Inferred({Op::kSort, {S("s32[4]")}, SortAttrs{0, true}, {less}}),
            Code(ErrorCode::kSortComparator));
  EXPECT_EQ(Inferred({Op::kSort, {S("f32[4]"), S("s32[4]")}, SortAttrs{0, true}, {less}}),
            Code(ErrorCode::kBodyParameterCount));
  EXPECT_EQ(Inferred({Op::kTopK, {S("f32[3,10]")}, TopKAttrs{4, true, true}}),
            "(f32[3,4], s32[3,4])");
  EXPECT_EQ(Inferred({Op::kTopK, {S("f32[3,10]")}, TopKAttrs{11, true, true}}),
            Code(ErrorCode::kTopKSize));
}

TEST(InferDot, ShapesAndTypes) {
  DotAttrs matmul;
  matmul.lhs_contracting = {1};
  matmul.rhs_contracting = {0};
  EXPECT_EQ(Inferred({Op::kDot, {S("f32[2,3]"), S("f32[3,4]")}, matmul}), "f32[2,4]");
  EXPECT_EQ(Inferred({.op = Op::kDot,
                      .operands = {S("s8[2,3]"), S("s8[3,4]")},
                      .attrs = matmul,
                      .written = S("s32[2,4]")}),
            "s32[2,4]");
  EXPECT_EQ(Inferred({Op::kDot, {S("f8e4m3fn[2,3]"), S("f8e5m2[3,4]")}, matmul}), "f8e4m3fn[2,4]");
  EXPECT_EQ(Inferred({.op = Op::kDot,
                      .operands = {S("pred[2,3]"), S("pred[3,4]")},
                      .attrs = matmul,
                      .written = S("s32[2,4]")}),
            "s32[2,4]");
  EXPECT_EQ(Inferred({Op::kDot, {S("s8[2,3]"), S("s16[3,4]")}, matmul}), "s16[2,4]");
  EXPECT_EQ(Inferred({Op::kDot, {S("f32[2,3]"), S("s32[3,4]")}, matmul}),
            Code(ErrorCode::kDotTypes));
  EXPECT_EQ(Inferred({.op = Op::kDot,
                      .operands = {S("f32[2,3]"), S("f32[3,4]")},
                      .attrs = matmul,
                      .written = S("s32[2,4]")}),
            Code(ErrorCode::kDotTypes));
  EXPECT_EQ(Inferred({Op::kDot, {S("f32[2,3]"), S("f32[5,4]")}, matmul}),
            Code(ErrorCode::kContractedSizes));
  DotAttrs bad = matmul;
  bad.lhs_batch = {1};
  EXPECT_EQ(Inferred({Op::kDot, {S("f32[2,3]"), S("f32[3,4]")}, bad}),
            Code(ErrorCode::kDimensionReused));
  bad.lhs_batch = {0};
  EXPECT_EQ(Inferred({Op::kDot, {S("f32[2,3]"), S("f32[3,4]")}, bad}),
            Code(ErrorCode::kContractedCount));
  bad.rhs_batch = {1};
  EXPECT_EQ(Inferred({Op::kDot, {S("f32[2,3]"), S("f32[3,4]")}, bad}),
            Code(ErrorCode::kBatchSizes));
}

TEST(InferDot, Einsum) {
  EXPECT_EQ(Inferred({Op::kEinsum, {S("f32[2,3]"), S("f32[3,4]")}, EinsumAttrs{"ab,bc->ac"}}),
            "f32[2,4]");
  EXPECT_EQ(Inferred({Op::kEinsum, {S("f32[2,3]"), S("f32[5,4]")}, EinsumAttrs{"ab,bc->ac"}}),
            Code(ErrorCode::kEinsumShapes));
  EXPECT_EQ(Inferred({Op::kEinsum, {S("f32[2,3]"), S("f32[3,4]")}, EinsumAttrs{"ab,bc"}}),
            Code(ErrorCode::kEinsumSyntax));
  EXPECT_EQ(Inferred({Op::kUnaryEinsum, {S("f32[2,3]")}, EinsumAttrs{"ab->a"}}), "f32[2]");
}

ConvolutionAttrs Conv2d() {
  ConvolutionAttrs attrs;
  attrs.window = {WindowDim{.size = 3}, WindowDim{.size = 3}};
  attrs.dims = {.input_batch = 0,
                .input_feature = 3,
                .kernel_input = 2,
                .kernel_output = 3,
                .output_batch = 0,
                .output_feature = 3,
                .input_spatial = {1, 2},
                .kernel_spatial = {0, 1},
                .output_spatial = {1, 2}};
  return attrs;
}

TEST(InferConvolution, ShapesAndGroups) {
  auto give = [](const ConvolutionAttrs& attrs, const char* x, const char* k) {
    return Inferred({Op::kConvolution, {S(x), S(k)}, attrs});
  };
  ConvolutionAttrs attrs = Conv2d();
  EXPECT_EQ(give(attrs, "f32[8,10,10,4]", "f32[3,3,4,16]"), "f32[8,8,8,16]");
  EXPECT_EQ(give(attrs, "f32[8,10,10,4]", "f32[3,3,5,16]"), Code(ErrorCode::kFeatureSizes));
  EXPECT_EQ(give(attrs, "f32[8,10,10,4]", "f32[2,3,4,16]"), Code(ErrorCode::kWindowRange));
  EXPECT_EQ(give(attrs, "f32[8,10,4]", "f32[3,4,16]"), Code(ErrorCode::kConvolutionRank));
  attrs.feature_group_count = 2;
  EXPECT_EQ(give(attrs, "f32[8,10,10,4]", "f32[3,3,2,16]"), "f32[8,8,8,16]");
  attrs.feature_group_count = 3;
  EXPECT_EQ(give(attrs, "f32[8,10,10,4]", "f32[3,3,2,16]"), Code(ErrorCode::kGroupCounts));
  attrs = Conv2d();
  attrs.dims.output_feature = 0;
  EXPECT_EQ(give(attrs, "f32[8,10,10,4]", "f32[3,3,4,16]"), Code(ErrorCode::kConvolutionLabels));
}

}  // namespace
}  // namespace tokamak
