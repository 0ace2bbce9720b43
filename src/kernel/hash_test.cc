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
  MatrixMultiply product{.lhs = s,
                         .rhs = s,
                         .lhs_index = b.Index(0).id(),
                         .rhs_index = b.Index(0).id(),
                         .depth = b.Index(2).id(),
                         .rows = 2,
                         .columns = 2,
                         .lhs_row_stride = 2,
                         .lhs_column_stride = 1,
                         .rhs_row_stride = 2,
                         .result_row_stride = 2};
  b.For("t", LoopRole::kThread, b.Index(64), [&](Scalar t) {
    b.Store(s, t, b.Load(x, t));
    b.Barrier(BarrierScope::kBlock);
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
  EXPECT_FALSE(differs([](Kernel& k, StmtList&) { k.name = k.arrays[0].name = "other"; }));
  EXPECT_TRUE(differs([](Kernel& k, StmtList&) { k.index_bits = 32; }));
  EXPECT_TRUE(differs([](Kernel& k, StmtList&) { k.arrays[0].type = ScalarType::kS32; }));
  EXPECT_TRUE(differs([](Kernel& k, StmtList&) { k.arrays[0].size = 65; }));
  EXPECT_TRUE(differs([](Kernel& k, StmtList&) { k.arrays[1].access = Access::kReadWrite; }));
  EXPECT_TRUE(differs([](Kernel& k, StmtList&) { k.arrays[1].distinct = false; }));
  EXPECT_TRUE(differs([](Kernel& k, StmtList&) { k.arrays[1].alignment = 64; }));
  EXPECT_TRUE(differs([](Kernel& k, StmtList&) { k.arrays[2].space = Space::kRegisters; }));
  EXPECT_TRUE(differs([](Kernel& k, StmtList&) { k.loops[0].role = LoopRole::kSerial; }));
  ASSERT_EQ(kernel.body[0].body[1].kind, StmtKind::kBarrier);
  EXPECT_TRUE(differs([](Kernel&, StmtList& body) { body[1].scope = BarrierScope::kWarp; }));
  ASSERT_EQ(kernel.body[0].body[2].kind, StmtKind::kMatMul);
  auto product = [&](auto change) {
    return differs([&](Kernel&, StmtList& body) { change(body[2].matmul); });
  };
  EXPECT_TRUE(product([](MatrixMultiply& p) { p.overwrite = !p.overwrite; }));
  EXPECT_TRUE(product([](MatrixMultiply& p) { p.tf32 = true; }));
  for (int64_t MatrixMultiply::*number :
       {&MatrixMultiply::rows, &MatrixMultiply::columns, &MatrixMultiply::lhs_row_stride,
        &MatrixMultiply::lhs_column_stride, &MatrixMultiply::rhs_row_stride,
        &MatrixMultiply::rhs_column_stride, &MatrixMultiply::result_row_stride,
        &MatrixMultiply::warp_rows, &MatrixMultiply::warp_columns})
    EXPECT_TRUE(product([&](MatrixMultiply& p) { p.*number += 8; }));
}

}  // namespace
}  // namespace tokamak
