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
  EXPECT_TRUE(differs([](Kernel& k) { k.body.pop_back(); }));
  EXPECT_FALSE(differs([](Kernel& k) { k.notes = {"x"}; }));
}

}  // namespace
}  // namespace tokamak
