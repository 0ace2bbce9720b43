#include <chrono>

#include <gtest/gtest.h>

#include "ir/builder.h"
#include "ir/infer.h"

namespace tokamak {
namespace {

const Shape kVerifiedVector = Shape::Array(ElementType::kF32, {4});

ErrorCode CodeOf(const Module& module) {
  Status status = VerifyModule(module);
  return status.ok() ? ErrorCode{} : status.error().code;
}

struct OneComputation {
  Module module;
  Computation* main = module.AddComputation("main");
  Instr* x = main->AppendParameter(0, kVerifiedVector, "x");
  OneComputation() {
    main->set_root(x);
    module.set_entry(main);
  }
};

TEST(Verify, AcceptsTheLeast) {
  OneComputation m;
  EXPECT_TRUE(VerifyModule(m.module).ok());
  EXPECT_TRUE(VerifyModule(Module()).ok());
}

TEST(Verify, RootsAndParameters) {
  OneComputation m;
  m.main->set_root(nullptr);
  EXPECT_EQ(CodeOf(m.module), ErrorCode::kNoRoot);
  m.main->set_root(m.x);
  m.main->AppendParameter(2, kVerifiedVector);
  EXPECT_EQ(CodeOf(m.module), ErrorCode::kParameterMissing);
  m.main->AppendParameter(1, kVerifiedVector);
  EXPECT_TRUE(VerifyModule(m.module).ok());
  m.main->AppendParameter(1, kVerifiedVector);
  EXPECT_EQ(CodeOf(m.module), ErrorCode::kParameterTwice);
}

TEST(Verify, OperandsStayAtHome) {
  OneComputation m;
  Computation* other = m.module.AddComputation("other");
  other->set_root(other->Append(Op::kNegate, kVerifiedVector, {m.x}));
  EXPECT_EQ(CodeOf(m.module), ErrorCode::kOperandElsewhere);
}

TEST(Verify, UsesFormNoCycle) {
  OneComputation m;
  Instr* a = m.main->Append(Op::kNegate, kVerifiedVector, {m.x});
  Instr* b = m.main->Append(Op::kNegate, kVerifiedVector, {a});
  m.main->set_root(b);
  // Any order is valid: rewriting appends at the end.
  Instr* c = m.main->Append(Op::kNegate, kVerifiedVector, {m.x});
  a->set_operand(0, c);
  EXPECT_TRUE(VerifyModule(m.module).ok());
  a->set_operand(0, b);
  EXPECT_EQ(CodeOf(m.module), ErrorCode::kOperandAfterUse);
}

TEST(Verify, CallsFormNoCycle) {
  OneComputation m;
  Computation* a = m.module.AddComputation("a");
  Computation* b = m.module.AddComputation("b");
  for (auto [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    Instr* x = from->AppendParameter(0, kVerifiedVector);
    Instr* call = from->Append(Op::kCall, kVerifiedVector, {x});
    call->set_called({to});
    from->set_root(call);
  }
  EXPECT_EQ(CodeOf(m.module), ErrorCode::kCallCycle);
}

TEST(Verify, CalleesAreOfTheModule) {
  OneComputation m, other;
  Instr* call = m.main->Append(Op::kCall, kVerifiedVector, {m.x});
  call->set_called({other.main});
  EXPECT_EQ(CodeOf(m.module), ErrorCode::kCalledElsewhere);
}

TEST(Verify, EntryAndAliases) {
  OneComputation m, other;
  m.module.set_entry(other.main);
  EXPECT_EQ(CodeOf(m.module), ErrorCode::kEntryElsewhere);
  m.module.set_entry(m.main);
  m.module.aliases = {{{}, 0, {}, false}};
  EXPECT_TRUE(VerifyModule(m.module).ok());
  m.module.aliases = {{{1}, 0, {}, false}};
  EXPECT_EQ(CodeOf(m.module), ErrorCode::kAliasRange);
  m.module.aliases = {{{}, 1, {}, false}};
  EXPECT_EQ(CodeOf(m.module), ErrorCode::kAliasRange);
}

TEST(Verify, ShapesThatCannotBe) {
  OneComputation m;
  auto code = [&](const Shape& shape) {
    m.x->set_shape(shape);
    return CodeOf(m.module);
  };
  EXPECT_EQ(code(Shape::Array(ElementType::kF32, {-3})), ErrorCode::kBadDimensions);
  EXPECT_EQ(code(Shape::Array(ElementType::kF32, Dims(100, 1))), ErrorCode::kBadDimensions);
  EXPECT_EQ(code(Shape::Array(ElementType::kF32, {int64_t{1} << 50, int64_t{1} << 50})),
            ErrorCode::kBadDimensions);
  Layout layout;
  layout.minor_to_major = {0, 0};
  EXPECT_EQ(code(Shape::Array(ElementType::kF32, {2, 3}).WithLayout(layout)),
            ErrorCode::kBadLayout);
  QuantType quant;
  quant.axis = 0;
  quant.scales = {1, 2};
  quant.zero_points = {0, 0};
  EXPECT_EQ(code(Shape::Array(ElementType::kS8, {2}).WithQuant(quant)), ErrorCode{});
  EXPECT_EQ(code(Shape::Array(ElementType::kS8, {3}).WithQuant(quant)),
            ErrorCode::kQuantParameters);
}

TEST(Verify, ErrorsSayWhere) {
  OneComputation m;
  m.module.file = "f.hlo";
  Instr* bad = m.main->Append(Op::kAdd, Shape::Array(ElementType::kF32, {5}), {m.x, m.x}, {}, "y");
  m.x->set_pos({3, 7});
  bad->set_pos({4, 11});
  Status status = VerifyModule(m.module);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kResultShape);
  EXPECT_EQ(status.error().message, "add: result is written f32[5], inferred f32[4]");
  EXPECT_EQ(status.error().where.line, 4);
  EXPECT_EQ(status.error().where.column, 11);
  ASSERT_FALSE(status.error().notes.empty());
  EXPECT_EQ(status.error().notes[0], "x is f32[4], from f.hlo:3");
}

TEST(Verify, AHundredThousandInstructions) {
  OneComputation m;
  Instr* last = m.x;
  for (int i = 0; i < 50000; ++i) {
    last = m.main->Append(Op::kAdd, kVerifiedVector, {last, m.x});
    last = m.main->Append(Op::kTranspose, kVerifiedVector, {last}, DimensionsAttrs{{0}});
  }
  m.main->set_root(last);
  auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(VerifyModule(m.module).ok());
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  RecordProperty("seconds", std::to_string(took.count()));
  EXPECT_LT(took.count(), 5.0);  // 0.03 s alone on a core; the machine may be busy
}

}  // namespace
}  // namespace tokamak
