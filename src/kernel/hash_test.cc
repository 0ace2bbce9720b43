#include "kernel/hash.h"

#include <gtest/gtest.h>

#include "kernel/builder.h"

namespace tokamak {
namespace {

// A kernel with shuffles and a multiply.
Kernel Exchanging() {
  KernelBuilder b("exchanging", Dialect::kGpu);
  ArrayId x =
      b.Argument({.name = "x", .type = ScalarType::kF32, .access = Access::kRead, .size = 64});
  ArrayId y =
      b.Argument({.name = "y", .type = ScalarType::kF32, .access = Access::kWrite, .size = 64});
  ArrayId s = b.Local("s", ScalarType::kF32, Space::kShared, 64);
  ArrayId sums = b.Local("sums", ScalarType::kF32, Space::kRegisters, 4);
  Multiplication product{.lhs = s,
                         .rhs = s,
                         .lhs_at = b.Index(0).id(),
                         .rhs_at = b.Index(0).id(),
                         .depth = b.Index(2).id(),
                         .rows = 2,
                         .columns = 2,
                         .lhs_row = 2,
                         .lhs_column = 1,
                         .rhs_row = 2,
                         .to_row = 2};
  b.For("t", LoopRole::kThread, b.Index(64), [&](Scalar t) {
    b.Store(s, t, b.Load(x, t));
    b.Barrier(Scope::kBlock);
    b.Multiply(sums, b.Index(0), product);
    b.Store(y, t, b.Read(s, b.Index(63) - t) - b.Read(sums, b.Index(0)));
  });
  return b.Finish();
}

// One change at a time.
TEST(KernelHash, AllButNamesCounts) {
  const Kernel kernel = Exchanging();
  auto differs = [&](auto change) {
    Kernel other = kernel;
    change(other, other.body[0].body);
    return HashOf(other) != HashOf(kernel);
  };
  EXPECT_FALSE(differs([](Kernel& k, Block&) { k.name = k.arrays[0].name = "other"; }));
  EXPECT_TRUE(differs([](Kernel& k, Block&) { k.index_bits = 32; }));
  EXPECT_TRUE(differs([](Kernel& k, Block&) { k.arrays[0].type = ScalarType::kS32; }));
  EXPECT_TRUE(differs([](Kernel& k, Block&) { k.arrays[0].size = 65; }));
  EXPECT_TRUE(differs([](Kernel& k, Block&) { k.arrays[1].access = Access::kReadWrite; }));
  EXPECT_TRUE(differs([](Kernel& k, Block&) { k.arrays[1].distinct = false; }));
  EXPECT_TRUE(differs([](Kernel& k, Block&) { k.arrays[1].alignment = 64; }));
  EXPECT_TRUE(differs([](Kernel& k, Block&) { k.arrays[2].space = Space::kRegisters; }));
  EXPECT_TRUE(differs([](Kernel& k, Block&) { k.loops[0].role = LoopRole::kSerial; }));
  ASSERT_EQ(kernel.body[0].body[1].kind, StmtKind::kBarrier);
  EXPECT_TRUE(differs([](Kernel&, Block& body) { body[1].scope = Scope::kWarp; }));
  ASSERT_EQ(kernel.body[0].body[2].kind, StmtKind::kMultiply);
  auto product = [&](auto change) {
    return differs([&](Kernel&, Block& body) { change(body[2].product); });
  };
  EXPECT_TRUE(product([](Multiplication& p) { p.fresh = !p.fresh; }));
  EXPECT_TRUE(product([](Multiplication& p) { p.tf32 = true; }));
  for (int64_t Multiplication::*number :
       {&Multiplication::rows, &Multiplication::columns, &Multiplication::lhs_row,
        &Multiplication::lhs_column, &Multiplication::rhs_row, &Multiplication::rhs_column,
        &Multiplication::to_row, &Multiplication::warp_rows, &Multiplication::warp_columns})
    EXPECT_TRUE(product([&](Multiplication& p) { p.*number += 8; }));
}

}  // namespace
}  // namespace tokamak
