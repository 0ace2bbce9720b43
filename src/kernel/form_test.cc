#include "kernel/form.h"

#include <gtest/gtest.h>

#include "kernel/builder.h"

namespace tokamak {
namespace {

Kernel Doubled(const std::string& name, int64_t size) {
  KernelBuilder b(name);
  ArrayId x = b.Argument(
      {.name = name + "_x", .type = ScalarType::kF32, .access = Access::kRead, .size = size});
  ArrayId y = b.Argument(
      {.name = name + "_y", .type = ScalarType::kF32, .access = Access::kWrite, .size = size});
  b.For("i", LoopRole::kGrid, b.Index(size), [&](Scalar i) {
    Scalar value = b.Load(x, i);
    b.Store(y, i, value + value);
  });
  return b.Finish();
}

TEST(Form, NamesDoNotCount) {
  EXPECT_EQ(FormOf(Doubled("a", 64)), FormOf(Doubled("b", 64)));
  EXPECT_NE(FormOf(Doubled("a", 64)), FormOf(Doubled("a", 65)));
}

// Changes everything but names, one thing at a time.
TEST(Form, EverythingElseDoes) {
  Kernel kernel = Doubled("a", 64);
  const std::string form = FormOf(kernel);
  auto differs = [&](auto change) {
    Kernel other = kernel;
    change(other);
    return FormOf(other) != form;
  };
  EXPECT_TRUE(differs([](Kernel& k) { k.index_bits = 32; }));
  EXPECT_TRUE(differs([](Kernel& k) { k.arrays[0].distinct = false; }));
  EXPECT_TRUE(differs([](Kernel& k) { k.arrays[0].alignment = 4; }));
  EXPECT_TRUE(differs([](Kernel& k) { k.nodes[0].bits += 1; }));
  EXPECT_TRUE(differs([](Kernel& k) { k.loops[0].role = LoopRole::kSerial; }));
  EXPECT_TRUE(differs([](Kernel& k) { k.body[0].matmul.tf32 = true; }));
  EXPECT_TRUE(differs([](Kernel& k) { k.body[0].matmul.warp_rows = 16; }));
  EXPECT_TRUE(differs([](Kernel& k) { k.body[0].uniform = true; }));
  EXPECT_TRUE(differs([](Kernel& k) { k.body[0].matmul.async = true; }));
  EXPECT_TRUE(differs([](Kernel& k) { k.body[0].matmul.rhs_panel = 512; }));
  EXPECT_TRUE(differs([](Kernel& k) { k.arrays[0].arrivals = 2; }));
  EXPECT_TRUE(differs([](Kernel& k) { k.body.pop_back(); }));
  EXPECT_FALSE(differs([](Kernel& k) { k.notes = {"x"}; }));
}

// Kernels of two convolutions may differ in nothing else.
TEST(Form, CopiesCount) {
  const AsyncOp op{.kind = AsyncKind::kCopy,
                   .copy = {.dimensions = {{.size = 8, .stride = 1, .box = 4, .at = ValueId{0}}}}};
  auto form = [&](auto change) {
    AsyncOp other = op;
    change(other);
    Kernel kernel = Doubled("a", 64);
    Stmt& stmt = kernel.body.emplace_back();
    stmt.kind = StmtKind::kAsync;
    stmt.async = std::make_shared<AsyncOp>(other);
    return FormOf(kernel);
  };
  const std::string as_is = form([](AsyncOp&) {});
  EXPECT_NE(as_is, FormOf(Doubled("a", 64)));
  EXPECT_EQ(as_is, form([](AsyncOp&) {}));
  EXPECT_NE(as_is, form([](AsyncOp& o) { o.kind = AsyncKind::kCopyBack; }));
  EXPECT_NE(as_is, form([](AsyncOp& o) { o.number = 1; }));
  EXPECT_NE(as_is, form([](AsyncOp& o) { o.parity = ValueId{1}; }));
  EXPECT_NE(as_is, form([](AsyncOp& o) { o.copy.to_index = ValueId{1}; }));
  EXPECT_NE(as_is, form([](AsyncOp& o) { o.copy.swizzled = true; }));
  EXPECT_NE(as_is, form([](AsyncOp& o) { o.copy.dimensions[0].size = 9; }));
  EXPECT_NE(as_is, form([](AsyncOp& o) { o.copy.dimensions[0].stride = 2; }));
  EXPECT_NE(as_is, form([](AsyncOp& o) { o.copy.dimensions[0].at = ValueId{1}; }));
  EXPECT_NE(as_is, form([](AsyncOp& o) { o.copy.dimensions[0].step = 2; }));
  EXPECT_NE(as_is, form([](AsyncOp& o) { o.copy.dimensions.push_back({.size = 8}); }));
}

}  // namespace
}  // namespace tokamak
