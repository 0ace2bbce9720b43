#include "kernel/simulate.h"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "kernel/builder.h"
#include "kernel/sim_program.h"
#include "kernel/verify.h"
#include "support/splitmix.h"

namespace tokamak {
namespace {

constexpr ScalarType kF32 = ScalarType::kF32;

// Row sums with one thread block per row: a tree reduction in shared memory with barriers.
Kernel RowSums(int64_t rows, int64_t columns, int64_t threads) {
  KernelBuilder b("row_sums");
  ArrayId x =
      b.Argument({.name = "x", .type = kF32, .access = Access::kRead, .size = rows * columns});
  ArrayId y = b.Argument({.name = "y", .type = kF32, .access = Access::kWrite, .size = rows});
  ArrayId acc = b.Local("acc", kF32, Space::kRegisters, 1);
  ArrayId shared = b.Local("shared", kF32, Space::kShared, threads);
  b.For("row", LoopRole::kGrid, b.Index(rows), [&](Scalar row) {
    b.For("t", LoopRole::kThread, b.Index(threads), [&](Scalar t) {
      Scalar zero = b.Index(0);
      b.Store(acc, zero, b.Constant(kF32, 0));
      b.For("k", LoopRole::kSerial, b.Index(columns / threads), [&](Scalar k) {
        Scalar sum = b.Read(acc, zero) + b.Load(x, row * double(columns) + k * double(threads) + t);
        b.Store(acc, zero, sum);
      });
      b.Store(shared, t, b.Read(acc, zero));
      b.Barrier(BarrierScope::kBlock);
      for (int64_t half = threads / 2; half > 0; half /= 2) {
        b.If(t < double(half), [&] {
          Scalar sum = b.Read(shared, t) + b.Read(shared, t + double(half));
          b.Store(shared, t, sum);
        });
        b.Barrier(BarrierScope::kBlock);
      }
      b.If(t == 0.0, [&] { b.Store(y, row, b.Read(shared, b.Index(0))); });
    });
  });
  return b.Finish();
}

// A kernel of `count` blocks that store one number each.
Kernel Fill(int64_t count, double value) {
  KernelBuilder b("fill");
  ArrayId y = b.Argument({.name = "y", .type = kF32, .access = Access::kWrite, .size = count});
  b.For("i", LoopRole::kGrid, b.Index(count),
        [&](Scalar i) { b.Store(y, i, b.Constant(kF32, value)); });
  return b.Finish();
}

// Kernels of a horizontally fused launch have different block sizes and run in any order.
TEST(Simulate, HorizontalKernels) {
  Kernel sums = RowSums(3, 64, 32), fill = Fill(5, 7);
  std::vector<float> x(3 * 64, 1.0f), y(3), z(5);
  SimArgument of_sums[] = {{x.data(), 192}, {y.data(), 3}}, of_fill[] = {{z.data(), 5}};
  SimLaunch entries[] = {{&sums, of_sums}, {&fill, of_fill}};
  for (uint64_t seed = 0; seed < 8; ++seed) {
    SimOptions options;
    if (seed > 0) options.seed = seed;
    Result<SimReport> report = SimulateHorizontal(entries, options);
    ASSERT_TRUE(report.ok()) << Render(report.error());
    EXPECT_EQ(report.value().unwritten, (std::vector<int64_t>{0, 0, 0}));
    EXPECT_EQ(y, (std::vector<float>{64, 64, 64}));
    EXPECT_EQ(z, std::vector<float>(5, 7));
  }
}

// Kernels of a horizontally fused launch are unordered.
TEST(Simulate, RaceBetweenKernelsOfOneLaunch) {
  Kernel sums = RowSums(3, 64, 32), fill = Fill(5, 7);
  std::vector<float> x(3 * 64, 1.0f), y(3);
  SimArgument of_sums[] = {{x.data(), 192}, {y.data(), 3}}, of_fill[] = {{x.data() + 70, 5}};
  SimLaunch entries[] = {{&sums, of_sums}, {&fill, of_fill}};
  for (uint64_t seed = 0; seed < 4; ++seed) {
    SimOptions options;
    if (seed > 0) options.seed = seed;
    Result<SimReport> report = SimulateHorizontal(entries, options);
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.error().code, ErrorCode::kKernelRace);
  }
}

TEST(Simulate, RowSumsByThreads) {
  Kernel kernel = RowSums(3, 256, 64);
  ASSERT_TRUE(VerifyKernel(kernel).ok()) << VerifyKernel(kernel).error().message;
  std::vector<float> x(3 * 256), y(3);
  std::iota(x.begin(), x.end(), 0.0f);
  SimArgument arguments[] = {{x.data(), 768}, {y.data(), 3}};
  for (uint64_t seed = 0; seed < 8; ++seed) {
    SimOptions options;
    if (seed > 0) options.seed = seed;
    Result<SimReport> report = SimulateKernel(kernel, arguments, {}, options);
    ASSERT_TRUE(report.ok()) << Render(report.error(), WriteKernel(kernel));
    for (int row = 0; row < 3; ++row)
      EXPECT_EQ(y[static_cast<size_t>(row)], 256.0f * 256 * static_cast<float>(row) + 255 * 128);
  }
}

// Every fast function agrees with EvaluatePrim.
TEST(Simulate, ComputesAsEvaluatePrimDoes) {
  SplitMix64 draw(1);
  for (size_t p = 0; p <= static_cast<size_t>(Prim::kBitcast); ++p) {
    Prim prim = static_cast<Prim>(p);
    if (InfoOf(prim).arity == 0 || prim == Prim::kLoad || IsOrdered(prim)) continue;
    for (size_t t = 0; t <= static_cast<size_t>(ScalarType::kIndex); ++t) {
      auto from = static_cast<ScalarType>(t);
      for (size_t r = 0; r <= static_cast<size_t>(ScalarType::kIndex); ++r) {
        auto type = static_cast<ScalarType>(r);
        PrimOperands takes = InfoOf(prim).operands;
        bool is_convert = prim == Prim::kConvert;
        if (InfoOf(prim).result == PrimResult::kSame && type != from) continue;
        if (InfoOf(prim).result == PrimResult::kPred && type != ScalarType::kPred) continue;
        if (prim == Prim::kBitcast && InfoOf(type).bits != InfoOf(from).bits) continue;
        if (takes == PrimOperands::kFloat && !IsFloat(from)) continue;
        if ((takes == PrimOperands::kInteger || takes == PrimOperands::kBits) && !IsInteger(from))
          continue;
        if (takes == PrimOperands::kNumber && from == ScalarType::kPred) continue;
        SimOp op;
        op.prim = prim;
        op.type = type;
        op.from = from;
        op.a = {0, 0}, op.b = {1, 0}, op.c = {2, 0};
        op.to = 3;
        SimCompute compute = ComputeOf(prim, type, from);
        for (int i = 0; i < 200; ++i) {
          Bits slots[4] = {};
          for (int k = 0; k < 3; ++k) {
            Bits bits = draw.Next();
            if (i % 2 == 1 && IsFloat(from))
              bits = BitsOfDouble(from, static_cast<double>(bits % 2001) / 8 - 125);
            int unused = 64 - InfoOf(from).bits;
            slots[k] = bits << unused >> unused;
          }
          std::optional<Bits> expected = EvaluatePrim(prim, type, from, slots);
          if (!expected) continue;
          compute(op, slots);
          bool nan = IsFloat(type) && std::isnan(DoubleOfBits(type, *expected));
          if (nan && std::isnan(DoubleOfBits(type, slots[3]))) continue;
          ASSERT_EQ(slots[3], *expected)
              << InfoOf(prim).text << " " << InfoOf(from).text << " to " << InfoOf(type).text
              << (is_convert ? " convert" : "") << " of " << slots[0] << ", " << slots[1];
        }
      }
    }
  }
}

}  // namespace
}  // namespace tokamak
