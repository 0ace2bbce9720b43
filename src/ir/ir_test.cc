#include "ir/ir.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "ir/builder.h"
#include "ir/clone.h"
#include "ir/compare.h"

namespace tokamak {
namespace {

Origin OriginNamed(std::string op_name, FrameId frame = FrameId::kNone) {
  Origin origin;
  origin.op_name = std::move(op_name);
  origin.frame = frame;
  return origin;
}

const Shape kFourVector = Shape::Array(ElementType::kF32, {4});

// add, then a reduction of it with a separate reducer computation; with origins and extras.
std::unique_ptr<Module> Example() {
  auto module = std::make_unique<Module>("example");
  Builder body(*module, "sum");
  Instr* a = body.Parameter(Shape::Scalar(ElementType::kF32));
  Instr* b = body.Parameter(Shape::Scalar(ElementType::kF32));
  Computation* sum = body.Finish(body.Add(a, b)).value();
  Builder main(*module, "main");
  Instr* x = main.Parameter(kFourVector, "x");
  Instr* y = main.Add(x, x);
  Instr* total = main.Reduce({y}, {main.Scalar(ElementType::kF32, 0)}, {0}, sum);
  y->set_origins(module->origins().Add(OriginNamed("jit(f)/add")));
  total->AddControlPredecessor(y);
  total->mutable_extras().backend_config = "{}";
  module->set_entry(main.Finish(total).value());
  module->aliases.push_back({{}, 0, {}, true});
  return module;
}

TEST(Origins, KeepMarksOfSeveralInstructions) {
  OriginTable table;
  OriginId set = table.Merge(table.AddMark("kernel=", 12), table.AddMark("kernel=", 3));
  Origin other;
  other.other = "kernel=3x";  // the user's
  set = table.Merge(set, table.Merge(table.Add(other), table.AddMark("instr=", 7)));
  EXPECT_EQ(table.MarksOf(set, "kernel="), (std::vector<int64_t>{3, 12}));
  EXPECT_EQ(table.MarksOf(OriginId::kNone, "kernel="), std::vector<int64_t>());
}

TEST(Origins, SetsAreMergedOnce) {
  OriginTable table;
  FrameId frame = table.AddFrame({"a.py", "f", 3, 1, 3, 9, FrameId::kNone});
  EXPECT_EQ(table.AddFrame({"a.py", "f", 3, 1, 3, 9, FrameId::kNone}), frame);
  OriginId a = table.Add(OriginNamed("add", frame));
  OriginId b = table.Add(OriginNamed("mul", frame));
  EXPECT_NE(a, b);
  EXPECT_EQ(table.Add(OriginNamed("add", frame)), a);
  OriginId both = table.Merge(a, b);
  EXPECT_EQ(table.Merge(b, a), both);
  EXPECT_EQ(table.Merge(both, a), both);
  EXPECT_EQ(table.Merge(a, OriginId::kNone), a);
  EXPECT_EQ(table.Merge(OriginId::kNone, a), a);
  ASSERT_EQ(table.Of(both).size(), 2u);
  EXPECT_EQ(table.Of(both)[0]->op_name, "add");
  EXPECT_TRUE(table.Of(OriginId::kNone).empty());
}

TEST(Computation, UsesFollowEdits) {
  auto module = Example();
  Computation* main = module->entry();
  Instr* x = main->parameter(0);
  Instr* y = main->Instrs()[1];
  ASSERT_EQ(x->users().size(), 2u);  // x + x uses it twice
  Instr* z = main->Append(Op::kNegate, kFourVector, {x});
  main->ReplaceUses(y, z);
  EXPECT_TRUE(y->users().empty());
  EXPECT_EQ(main->root()->operand(0), z);
  EXPECT_EQ(main->root()->extras().control_predecessors[0], z);
  size_t before = main->size();
  main->Remove(y);
  EXPECT_EQ(main->size(), before - 1);
  EXPECT_EQ(x->users().size(), 1u);
  EXPECT_EQ(main->Instrs().size(), main->size());
  // z now follows its user; a topological order still exists.
  std::vector<Instr*> order = main->PostOrder();
  EXPECT_LT(std::find(order.begin(), order.end(), z),
            std::find(order.begin(), order.end(), main->root()));
}

TEST(Computation, SetOperandMovesTheUse) {
  auto module = Example();
  Computation* main = module->entry();
  Instr* y = main->Instrs()[1];
  Instr* c = main->Append(Op::kNegate, kFourVector, {main->parameter(0)});
  y->set_operand(1, c);
  EXPECT_EQ(c->users().size(), 1u);
  EXPECT_EQ(main->parameter(0)->users().size(), 2u);
}

TEST(Computation, ALongChainIsWalkedWithoutRecursion) {
  Module module;
  Computation* c = module.AddComputation("long");
  Instr* last = c->AppendParameter(0, kFourVector);
  for (int i = 0; i < 300000; ++i) last = c->Append(Op::kNegate, kFourVector, {last});
  c->set_root(last);
  EXPECT_EQ(c->PostOrder().size(), 300001u);
}

TEST(Module, CalleesComeFirst) {
  auto module = Example();
  std::vector<Computation*> order = module->CalleesFirst();
  ASSERT_EQ(order.size(), 2u);
  EXPECT_EQ(order[1], module->entry());
}

TEST(Compare, EqualModulesHaveEqualHashes) {
  auto a = Example(), b = Example();
  b->entry()->set_name("other");
  b->entry()->parameter(0)->set_name("z");
  EXPECT_EQ(FirstDifference(*a, *b), "");
  EXPECT_EQ(StructuralHash(*a), StructuralHash(*b));
  b->entry()->root()->set_attrs(DimensionsAttrs{});
  EXPECT_NE(FirstDifference(*a, *b), "");
  EXPECT_NE(StructuralHash(*a), StructuralHash(*b));
}

TEST(Compare, SeesAliasesAndShardings) {
  auto a = Example(), b = Example();
  b->aliases.clear();
  EXPECT_NE(FirstDifference(*a, *b), "");
  b = Example();
  b->entry()->parameter(0)->mutable_extras().sharding = Sharding{};
  EXPECT_NE(FirstDifference(*a, *b), "");
}

TEST(Clone, AModuleIsEqualAndItsOwn) {
  auto a = Example();
  auto b = CloneModule(*a);
  EXPECT_EQ(FirstDifference(*a, *b), "");
  EXPECT_EQ(b->entry()->name(), "main");
  const Instr* y = b->entry()->Instrs()[1];
  EXPECT_EQ(b->origins().Of(y->origins())[0]->op_name, "jit(f)/add");
  EXPECT_EQ(b->entry()->root()->extras().control_predecessors[0], y);
  EXPECT_EQ(b->entry()->root()->called(0)->module(), b.get());
  EXPECT_TRUE(VerifyModule(*b).ok());
}

TEST(Clone, AComputationSharesWhatItCalls) {
  auto module = Example();
  Computation* shallow = CloneComputation(*module->entry(), "main.2");
  EXPECT_EQ(shallow->root()->called(0), module->entry()->root()->called(0));
  EXPECT_TRUE(VerifyModule(*module).ok());
}

}  // namespace
}  // namespace tokamak
