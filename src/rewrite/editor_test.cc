#include "rewrite/editor.h"

#include <gtest/gtest.h>

#include "ir/builder.h"
#include "ir/infer.h"

namespace tokamak {
namespace {

const Shape kEditedArray = Shape::Array(ElementType::kF32, {4});

class EditorTest : public testing::Test {
 protected:
  void Name(Instr* instr, const std::string& origin) {
    instr->set_origins(module_.origins().Add({.op_name = origin, .op_type = "", .other = ""}));
  }
  size_t CountOrigins(const Instr* instr) { return module_.origins().Of(instr->origins()).size(); }

  Module module_{"m"};
};

TEST_F(EditorTest, ANewInstructionGetsWhatUsersSaid) {
  Builder b(module_, "main");
  Instr* x = b.Parameter(kEditedArray);
  Instr* old = b.Negate(x);
  module_.set_entry(b.Finish(old).value());
  Name(old, "old");
  Sharding sharding;
  sharding.kind = ShardingKind::kReplicated;
  old->mutable_extras().sharding = sharding;
  old->set_name("y");
  Editor edit(*old);
  Instr* made = edit.Make(Op::kAbs, kEditedArray, {x});
  edit.Replace(made);
  EXPECT_EQ(module_.entry()->root(), made);
  EXPECT_EQ(made->name(), "y");
  EXPECT_EQ(CountOrigins(made), 1u);
  EXPECT_EQ(made->extras().sharding, sharding);
  EXPECT_TRUE(VerifyModule(module_).ok());
}

TEST_F(EditorTest, AnInstructionThatWasThereGetsOriginsAlone) {
  Builder b(module_, "main");
  Instr* x = b.Parameter(kEditedArray);
  Instr* kept = b.Abs(x);
  Instr* old = b.Abs(kept);
  Instr* root = b.Negate(old);
  module_.set_entry(b.Finish(root).value());
  Name(kept, "kept");
  Name(old, "old");
  Sharding sharding;
  sharding.kind = ShardingKind::kReplicated;
  old->mutable_extras().sharding = sharding;
  Editor(*old).Replace(kept);
  EXPECT_EQ(root->operand(0), kept);
  EXPECT_EQ(CountOrigins(kept), 2u);
  EXPECT_FALSE(kept->extras().sharding);
  EXPECT_TRUE(VerifyModule(module_).ok());
}

TEST_F(EditorTest, PartsOfATupleAreReplacedOneByOne) {
  Builder b(module_, "main");
  Instr* x = b.Parameter(kEditedArray);
  Instr* pair = b.Tuple({x, b.Negate(x)});
  Instr* first = b.GetTupleElement(pair, 0);
  Instr* second = b.GetTupleElement(pair, 1);
  Instr* root = b.Add(first, second);
  module_.set_entry(b.Finish(root).value());
  Editor edit(*pair);
  Instr* abs = edit.Make(Op::kAbs, kEditedArray, {x});
  edit.ReplaceParts({abs, x});
  EXPECT_EQ(root->operand(0), abs);
  EXPECT_EQ(root->operand(1), x);
  EXPECT_TRUE(pair->is_removed());
  for (const Instr* instr : module_.entry()->Instrs()) EXPECT_NE(instr->op(), Op::kTuple);
  EXPECT_TRUE(VerifyModule(module_).ok());
}

}  // namespace
}  // namespace tokamak
