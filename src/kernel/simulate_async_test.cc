#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernel/builder.h"
#include "kernel/simulate.h"
#include "kernel/verify.h"
#include "support/splitmix.h"

namespace tokamak {
namespace {

enum class GemmBug {
  kNone,
  kNoWaitOnFull,
  kNoWaitOnEmpty,
  kEarlyRelease,  // arrives at `empty` before the await
  kNoFinalAwait,  // before the sums are read
  kNoAwaitAtAll,  // nor at the end
  kWrongParity,   // of the wait on `full`
  kFewerBytes,    // `full` expects less than the copies bring
  kMoreBytes,
  kNoSwizzle,
  kMoreArrivals,  // `empty` expects more arrivals than there are
  kFewerArrivals,
  kPastTheEnd,  // the last stage is beyond the shared array
  kStagesOverlap,
  kMisaligned,
  kTensorTooLarge,  // larger than the argument
  kPartOfWarpgroup,
  kNoWarpBarrier,  // between the stores and the reads of the staged sums
  kReleaseByOneWarp,
};

// y = a b of m x n x k. One warpgroup multiplies and a producer warp follows it; or the producer is
// the first warpgroup, and two others multiply 64 rows each.
struct Gemm {
  int64_t m = 64, n = 64, k = 320;
  bool lhs_k_major = true, rhs_k_major = true;
  ScalarType type = ScalarType::kBF16;
  GemmBug bug = GemmBug::kNone;
  int64_t warpgroups = 1;
  bool staged = false;  // the warps store lines of 16 rows, by way of shared memory

  static constexpr int64_t kStages = 2, kTile = 64;
  int64_t depth() const { return MatrixMultiply::kPanelBytes / BytesOf(type); }
  int64_t panels() const { return (k + depth() - 1) / depth(); }
  int64_t tile() const { return kTile * depth(); }
  int64_t first_consumer() const { return warpgroups > 1 ? 128 : 0; }
  int64_t threads() const { return warpgroups > 1 ? 384 : 160; }
  static int64_t RoundUp(int64_t size) { return (size + 7) / 8 * 8; }
  // Elements from line to line of an operand, whose other size is `lines`.
  int64_t Stride(bool k_major, int64_t lines) const { return RoundUp(k_major ? k : lines); }
  int64_t Elements(bool k_major, int64_t lines) const {
    return Stride(k_major, lines) * (k_major ? lines : k);
  }
  Kernel Build() const;
};

class GemmBuilder {
 public:
  explicit GemmBuilder(const Gemm& gemm) : gemm_(gemm) {}

  Kernel Build() {
    a_ = Operand("a", gemm_.lhs_k_major, gemm_.m);
    b_ = Operand("b", gemm_.rhs_k_major, gemm_.n);
    y_ = k_.Argument({.name = "y",
                      .type = ScalarType::kF32,
                      .access = Access::kWrite,
                      .size = gemm_.m * gemm_.n});
    int64_t elements = gemm_.tile() * Gemm::kStages;
    lhs_ = k_.Local("lhs", gemm_.type, Space::kShared, elements * gemm_.warpgroups, 1024);
    rhs_ = k_.Local("rhs", gemm_.type, Space::kShared, elements, 1024);
    if (gemm_.staged)
      lines_ = k_.Local("lines", ScalarType::kF32, Space::kShared,
                        gemm_.warpgroups * Gemm::kTile * kLine);
    sums_ = k_.Local("sums", ScalarType::kF32, Space::kRegisters, 32);
    full_ = k_.Mbarriers("full", Gemm::kStages, 1);
    empty_ = k_.Mbarriers("empty", Gemm::kStages, Arrivals());
    k_.For("t", LoopRole::kThread, k_.Index(gemm_.threads()), [&](Scalar t) {
      if (gemm_.warpgroups > 1) {
        k_.If(
            t < double(gemm_.first_consumer()), [&] { ProduceIf(t == 0.0); }, [&] { Consume(t); },
            false);
      } else {
        k_.If(
            t < (Is(GemmBug::kPartOfWarpgroup) ? 64.0 : 128.0), [&] { Consume(t); },
            [&] { ProduceIf(t == 128.0); }, false);
      }
    });
    return k_.Finish();
  }

 private:
  static constexpr int64_t kLine = Gemm::kTile + 4;  // elements of a staged line

  bool Is(GemmBug bug) const { return gemm_.bug == bug; }

  int64_t Arrivals() const {
    if (Is(GemmBug::kReleaseByOneWarp)) return 1;
    return 4 * gemm_.warpgroups + (Is(GemmBug::kMoreArrivals) ? 1 : 0) -
           (Is(GemmBug::kFewerArrivals) ? 1 : 0);
  }

  ArrayId Operand(std::string name, bool k_major, int64_t lines) {
    return k_.Argument({.name = std::move(name),
                        .type = gemm_.type,
                        .access = Access::kRead,
                        .size = gemm_.Elements(k_major, lines)});
  }

  void ProduceIf(Scalar condition) {
    k_.LimitRegisters(40);
    k_.If(condition, [&] { Produce(); });
  }

  void Produce() {
    k_.For("k", LoopRole::kSerial, k_.Index(gemm_.panels()), [&](Scalar k) {
      Scalar stage = k % k_.Index(Gemm::kStages);
      if (!Is(GemmBug::kNoWaitOnEmpty)) k_.Wait(empty_, stage, k_.Index(1) - Parity(k));
      int64_t bytes = (1 + gemm_.warpgroups) * gemm_.tile() * BytesOf(gemm_.type);
      if (Is(GemmBug::kFewerBytes)) bytes -= 128;
      if (Is(GemmBug::kMoreBytes)) bytes += 128;
      k_.Arrive(full_, stage, bytes);
      for (int64_t i = 0; i < gemm_.warpgroups; ++i)
        Copy(k, {lhs_, LhsAt(stage, k_.Index(i)), a_, gemm_.lhs_k_major, gemm_.m}, i * Gemm::kTile);
      Copy(k, {rhs_, StageAt(stage), b_, gemm_.rhs_k_major, gemm_.n}, 0);
    });
  }
  static Scalar Parity(Scalar k) { return k / double(Gemm::kStages) % k.Like(2); }

  Scalar StageAt(Scalar stage) {
    bool overlap = Is(GemmBug::kStagesOverlap);
    Scalar at = stage * double(overlap ? gemm_.tile() / 2 : gemm_.tile());
    if (Is(GemmBug::kPastTheEnd)) at = at + double(gemm_.tile() / 2);
    if (Is(GemmBug::kMisaligned)) at = stage * double(gemm_.tile() - 64);
    return at;
  }

  // The lhs of one warpgroup.
  Scalar LhsAt(Scalar stage, Scalar warpgroup) {
    return StageAt(stage) * double(gemm_.warpgroups) + warpgroup * double(gemm_.tile());
  }

  struct Tile {
    ArrayId to;
    Scalar to_index;
    ArrayId from;
    bool k_major;
    int64_t lines;
  };
  void Copy(Scalar k, const Tile& tile, int64_t first_line) {
    auto [to, to_index, from, k_major, lines] = tile;
    TileCopy copy;
    copy.from = from;
    copy.to = to;
    copy.to_index = to_index.id();
    copy.swizzled = !Is(GemmBug::kNoSwizzle);
    int64_t stride = gemm_.Stride(k_major, lines);
    if (Is(GemmBug::kTensorTooLarge)) stride += 64;
    TileCopy::Dimension depth{
        .size = gemm_.k, .stride = 1, .box = gemm_.depth(), .at = (k * double(gemm_.depth())).id()},
        line{.size = lines, .stride = stride, .box = Gemm::kTile, .at = k_.Index(first_line).id()};
    if (!k_major) std::swap(depth.stride, line.stride);
    if (k_major) {
      copy.dimensions = {depth, line};
    } else {
      copy.dimensions = {line, depth};
    }
    k_.Copy(full_, k % k_.Index(Gemm::kStages), copy);
  }

  void Consume(Scalar t) {
    k_.LimitRegisters(232);
    k_.For("z", LoopRole::kUnrolled, k_.Index(32),
           [&](Scalar z) { k_.Store(sums_, z, k_.Constant(ScalarType::kF32, 0)); });
    bool early = Is(GemmBug::kEarlyRelease), never = Is(GemmBug::kNoAwaitAtAll);
    k_.For("k", LoopRole::kSerial, k_.Index(gemm_.panels()), [&](Scalar k) {
      Scalar stage = k % k_.Index(Gemm::kStages);
      Scalar parity = Is(GemmBug::kWrongParity) ? k_.Index(1) - Parity(k) : Parity(k);
      if (!Is(GemmBug::kNoWaitOnFull)) k_.Wait(full_, stage, parity);
      MultiplyStage(t, stage);
      if (early) Release(t, stage);
      if (!never) k_.WaitMultiplies(sums_, 1);
      if (!early) k_.If(k > 0.0, [&] { Release(t, (k - 1.0) % k_.Index(Gemm::kStages)); });
    });
    if (!Is(GemmBug::kNoFinalAwait) && !never) k_.WaitMultiplies(sums_, 0);
    if (!never) gemm_.staged ? StoreLines(t) : StoreSums(t);
    if (Is(GemmBug::kNoFinalAwait)) k_.WaitMultiplies(sums_, 0);
  }

  void Release(Scalar t, Scalar stage) {
    double threads = Is(GemmBug::kReleaseByOneWarp) ? 128 : 32;
    k_.If(t % t.Like(threads) == 0.0, [&] { k_.Arrive(empty_, stage); });
  }

  MatrixMultiply Product() const {
    MatrixMultiply product;
    product.async = true;
    product.tf32 = gemm_.type == ScalarType::kF32;
    product.rows = product.columns = Gemm::kTile;
    product.warp_rows = 16;
    product.warp_columns = Gemm::kTile;
    product.lhs = lhs_;
    product.rhs = rhs_;
    int64_t width = gemm_.depth();
    product.lhs_row_stride = gemm_.lhs_k_major ? width : 1;
    product.lhs_column_stride = gemm_.lhs_k_major ? 1 : width;
    product.rhs_row_stride = gemm_.rhs_k_major ? 1 : width;
    product.rhs_column_stride = gemm_.rhs_k_major ? width : 1;
    product.lhs_panel = product.rhs_panel = gemm_.tile();
    return product;
  }

  Scalar WarpgroupOf(Scalar t) { return (t - double(gemm_.first_consumer())) / 128.0; }

  void MultiplyStage(Scalar t, Scalar stage) {
    MatrixMultiply product = Product();
    product.lhs_index = LhsAt(stage, WarpgroupOf(t)).id();
    product.rhs_index = StageAt(stage).id();
    product.depth = k_.Index(gemm_.depth()).id();
    k_.Multiply(sums_, k_.Index(0), product);
  }

  // Calls body(row, column, sum) for all sums of a thread.
  template <typename Body>
  void EachSum(Scalar t, Body&& body) {
    auto constant = [&](int64_t value) { return k_.Index(value); };
    k_.For("s", LoopRole::kUnrolled, k_.Index(32), [&](Scalar s) {
      AccumulatorPosition<Scalar> at(Product(), t % k_.Index(128), s, constant);
      Scalar sum = k_.Read(sums_, s);
      body(at.row + WarpgroupOf(t) * double(Gemm::kTile), at.column, sum);
    });
  }
  void StoreIn(Scalar row, Scalar column, Scalar sum) {
    k_.If(row < double(gemm_.m), [&] {
      k_.If(column < double(gemm_.n), [&] { k_.Store(y_, row * double(gemm_.n) + column, sum); });
    });
  }
  void StoreSums(Scalar t) {
    EachSum(t, [&](Scalar row, Scalar column, Scalar sum) { StoreIn(row, column, sum); });
  }

  // A warp barrier, and a shuffle, in the role of the consumers.
  void StoreLines(Scalar t) {
    EachSum(t, [&](Scalar row, Scalar column, Scalar sum) {
      k_.Store(lines_, row * double(kLine) + column, sum);
    });
    if (!Is(GemmBug::kNoWarpBarrier)) k_.Barrier(BarrierScope::kWarp);
    Scalar lane = t % k_.Index(32), first_row = (t - double(gemm_.first_consumer())) / 32.0 * 16.0;
    k_.For("row", LoopRole::kSerial, k_.Index(16), [&](Scalar i) {
      Scalar row = first_row + i;
      k_.For("half", LoopRole::kUnrolled, k_.Index(2), [&](Scalar half) {
        Scalar column = half * 32.0 + lane;
        Scalar sum = k_.Read(lines_, row * double(kLine) + column);
        Scalar of_neighbour = k_.Shuffle(sum, k_.Constant(ScalarType::kS32, 1));
        Scalar own = k_.Shuffle(of_neighbour, k_.Constant(ScalarType::kS32, 1));
        StoreIn(row, column, own);
      });
    });
  }

  const Gemm& gemm_;
  KernelBuilder k_{"gemm", Dialect::kGpu};
  ArrayId a_{}, b_{}, y_{}, lhs_{}, rhs_{}, lines_{}, sums_{}, full_{}, empty_{};
};

Kernel Gemm::Build() const {
  return GemmBuilder(*this).Build();
}

// Random elements as bytes, and their values.
struct GemmOperand {
  std::vector<unsigned char> data;
  std::vector<float> values;

  GemmOperand(SplitMix64& draw, ScalarType type, int64_t count) {
    auto bytes = static_cast<size_t>(BytesOf(type));
    for (int64_t i = 0; i < count; ++i) {
      Bits bits = BitsOfDouble(type, static_cast<double>(draw.Next() % 4001) / 1024 - 2);
      for (size_t byte = 0; byte < bytes; ++byte)
        data.push_back(static_cast<unsigned char>(bits >> (8 * byte)));
      if (type == ScalarType::kF32) bits &= MatrixMultiply::kTf32Mask;
      values.push_back(static_cast<float>(DoubleOfBits(type, bits)));
    }
  }
};

struct GemmRun {
  explicit GemmRun(const Gemm& gemm)
      : draw(7),
        a(draw, gemm.type, gemm.Elements(gemm.lhs_k_major, gemm.m)),
        b(draw, gemm.type, gemm.Elements(gemm.rhs_k_major, gemm.n)),
        y(static_cast<size_t>(gemm.m * gemm.n), -1) {}

  Result<SimReport> Simulate(const Kernel& kernel, uint64_t seed) {
    SimArgument arguments[] = {{a.data.data(), static_cast<int64_t>(a.values.size())},
                               {b.data.data(), static_cast<int64_t>(b.values.size())},
                               {y.data(), static_cast<int64_t>(y.size())}};
    SimOptions options;
    if (seed > 0) options.seed = seed;
    return SimulateKernel(kernel, arguments, {}, options);
  }

  bool IsRight(const Gemm& gemm) const {
    int64_t a_stride = gemm.Stride(gemm.lhs_k_major, gemm.m),
            b_stride = gemm.Stride(gemm.rhs_k_major, gemm.n);
    for (int64_t i = 0; i < gemm.m; ++i) {
      for (int64_t j = 0; j < gemm.n; ++j) {
        float sum = 0;
        for (int64_t p = 0; p < gemm.k; ++p) {
          int64_t x = gemm.lhs_k_major ? i * a_stride + p : p * a_stride + i,
                  z = gemm.rhs_k_major ? j * b_stride + p : p * b_stride + j;
          sum = std::fma(a.values[static_cast<size_t>(x)], b.values[static_cast<size_t>(z)], sum);
        }
        if (y[static_cast<size_t>(i * gemm.n + j)] != sum) return false;
      }
    }
    return true;
  }

  SplitMix64 draw;
  GemmOperand a, b;
  std::vector<float> y;
};

constexpr uint64_t kAsyncSeeds = 5;

void ExpectRight(const Gemm& gemm) {
  Kernel kernel = gemm.Build();
  Status verified = VerifyKernel(kernel);
  ASSERT_TRUE(verified.ok()) << Render(verified.error(), WriteKernel(kernel));
  for (uint64_t seed = 0; seed < kAsyncSeeds; ++seed) {
    GemmRun run(gemm);
    Result<SimReport> report = run.Simulate(kernel, seed);
    ASSERT_TRUE(report.ok()) << Render(report.error(), WriteKernel(kernel));
    EXPECT_TRUE(run.IsRight(gemm)) << "seed " << seed;
  }
}

TEST(SimulateAsync, Gemm) {
  ExpectRight({.m = 64, .n = 64, .k = 128});
  ExpectRight({});
}

TEST(SimulateAsync, GemmOfEachMajor) {
  for (bool lhs : {false, true})
    for (bool rhs : {false, true}) ExpectRight({.lhs_k_major = lhs, .rhs_k_major = rhs});
}

// Elements outside of the tensors are zeros.
TEST(SimulateAsync, GemmOfOddSizes) {
  for (bool lhs : {false, true})
    for (bool rhs : {false, true})
      ExpectRight({.m = 51, .n = 37, .k = 139, .lhs_k_major = lhs, .rhs_k_major = rhs});
}

TEST(SimulateAsync, GemmOfOtherTypes) {
  ExpectRight({.m = 64, .n = 50, .k = 139, .type = ScalarType::kF16});
  ExpectRight({.m = 51, .n = 64, .k = 139, .type = ScalarType::kF32});
}

TEST(SimulateAsync, GemmOfTwoWarpgroups) {
  ExpectRight({.m = 128, .warpgroups = 2});
  ExpectRight({.m = 100, .n = 57, .warpgroups = 2, .staged = true});
}

// Every seed finds one of the errors.
void ExpectError(const Gemm& gemm, const std::vector<std::string>& texts) {
  Kernel kernel = gemm.Build();
  for (uint64_t seed = 0; seed < kAsyncSeeds; ++seed) {
    GemmRun run(gemm);
    Result<SimReport> report = run.Simulate(kernel, seed);
    ASSERT_FALSE(report.ok()) << "seed " << seed << "\n" << WriteKernel(kernel);
    bool found = false;
    for (const std::string& text : texts)
      found = found || report.error().message.find(text) != std::string::npos;
    EXPECT_TRUE(found) << "seed " << seed << "\n" << Render(report.error());
  }
}

TEST(SimulateAsync, MissingWaits) {
  ExpectError({.bug = GemmBug::kNoWaitOnFull},
              {"reads lhs[0], which is uninitialized because a copy to it has not happened",
               "which a copy stored to without a wait for the copy between them"});
  ExpectError({.bug = GemmBug::kNoWaitOnEmpty},
              {"arrives at full[0], whose phase 0 has all its 1 arrivals"});
  // A wait for another phase passes too soon, or never.
  ExpectError({.bug = GemmBug::kWrongParity},
              {"because a copy to it has not happened", "without a wait for the copy",
               "waits for phase 1 of full[1], which lacks 1 of 1 arrivals"});
}

TEST(SimulateAsync, MissingAwaits) {
  for (GemmBug bug : {GemmBug::kEarlyRelease, GemmBug::kFewerArrivals, GemmBug::kReleaseByOneWarp})
    ExpectError({.bug = bug},
                {"which a multiply of warpgroup 0 read without an await of all its warps"});
  ExpectError({.bug = GemmBug::kNoFinalAwait},
              {"starts a multiply that stores to sums[0], which block 0, thread 0 read without an "
               "await between them",
               "reads sums[0], which a multiply of warpgroup 0 stored to"});
  ExpectError({.bug = GemmBug::kNoAwaitAtAll},
              {"starts a multiply that not all warps of the warpgroup await",
               "without an await of all its warps", "without a wait for the copy"});
}

TEST(SimulateAsync, IncompletePhases) {
  ExpectError({.bug = GemmBug::kFewerBytes},
              {"waits for phase 0 of full[0], which lacks 0 of 1 arrivals, and has 128 bytes that "
               "are not expected"});
  ExpectError({.bug = GemmBug::kMoreBytes},
              {"waits for phase 0 of full[0], which lacks 0 of 1 arrivals and 128 bytes"});
  ExpectError({.bug = GemmBug::kMoreArrivals}, {"of full[0], which lacks 1 of 1 arrivals"});
}

TEST(SimulateAsync, BadCopies) {
  ExpectError({.bug = GemmBug::kPastTheEnd},
              {"copies to lhs[6144] to lhs[10239], which has 8192 elements"});
  ExpectError({.bug = GemmBug::kStagesOverlap},
              {"stores to lhs[2048], which a copy stored to without a wait for the copy"});
  ExpectError({.bug = GemmBug::kMisaligned}, {"lhs[4032], which is not aligned to 1024 bytes"});
  ExpectError({.bug = GemmBug::kTensorTooLarge}, {", which has 20480 elements"});
}

// A copy without the swizzle that the multiply expects is no error, but the values are wrong.
TEST(SimulateAsync, MissingSwizzle) {
  Gemm gemm{.bug = GemmBug::kNoSwizzle};
  Kernel kernel = gemm.Build();
  GemmRun run(gemm);
  Result<SimReport> report = run.Simulate(kernel, 0);
  ASSERT_TRUE(report.ok()) << Render(report.error());
  EXPECT_FALSE(run.IsRight(gemm));
}

TEST(SimulateAsync, MissingCollectives) {
  ExpectError({.bug = GemmBug::kPartOfWarpgroup},
              {"waits at a barrier that 64 threads of its warpgroup do not reach"});
  ExpectError({.bug = GemmBug::kNoWarpBarrier, .staged = true},
              {"without a barrier or mbarrier between them", "is uninitialized"});
}

// ---- operands that threads store

enum class StoredBug { kNone, kNoFence, kFenceAfterBarrier, kNoBarrier, kNoAwait };

// y = a b of 64 x 64 x 64, where threads store a to shared memory, or have it in registers, and
// then store to it again.
Kernel MultiplyStored(bool in_registers, StoredBug bug) {
  KernelBuilder k("stored", Dialect::kGpu);
  constexpr ScalarType kType = ScalarType::kBF16;
  ArrayId a = k.Argument({.name = "a", .type = kType, .access = Access::kRead, .size = 4096});
  ArrayId b = k.Argument({.name = "b", .type = kType, .access = Access::kRead, .size = 4096});
  ArrayId y =
      k.Argument({.name = "y", .type = ScalarType::kF32, .access = Access::kWrite, .size = 4096});
  ArrayId lhs = k.Local("lhs", kType, in_registers ? Space::kRegisters : Space::kShared,
                        in_registers ? 32 : 4096, 1024);
  ArrayId rhs = k.Local("rhs", kType, Space::kShared, 4096, 1024);
  ArrayId sums = k.Local("sums", ScalarType::kF32, Space::kRegisters, 32);
  ArrayId full = k.Mbarriers("full", 1, 1);
  MatrixMultiply product;
  product.async = true;
  product.lhs = lhs, product.rhs = rhs;
  product.rows = product.columns = 64;
  product.warp_rows = 16, product.warp_columns = 64;
  product.lhs_row_stride = product.rhs_column_stride = 64;
  product.lhs_column_stride = product.rhs_row_stride = 1;
  Scalar zero = k.Index(0);
  product.lhs_index = product.rhs_index = zero.id();
  product.depth = k.Index(64).id();
  auto constant = [&](int64_t value) { return k.Index(value); };
  k.For("t", LoopRole::kThread, k.Index(128), [&](Scalar t) {
    k.If(t == 0.0, [&] {
      TileCopy copy;
      copy.from = b, copy.to = rhs, copy.to_index = zero.id(), copy.swizzled = true;
      TileCopy::Dimension dimension{.size = 64, .stride = 1, .box = 64, .at = zero.id()};
      copy.dimensions = {dimension, dimension};
      copy.dimensions[1].stride = 64;
      k.Arrive(full, zero, 8192);
      k.Copy(full, zero, copy);
    });
    k.For("s", LoopRole::kSerial, k.Index(32), [&](Scalar s) {
      AccumulatorPosition<Scalar> at(product, t, s, constant);
      Scalar from = at.row * 64.0 + at.column;
      // Bytes 4 to 6 of the address are swizzled: bits 3 to 5 of the index.
      Scalar swizzled =
          at.row * 64.0 + (at.column / 8.0 ^ at.row % k.Index(8)) * 8.0 + at.column % k.Index(8);
      k.Store(lhs, in_registers ? s : swizzled, k.Load(a, from));
      k.Store(sums, s, k.Constant(ScalarType::kF32, 0));
    });
    if (!in_registers) {
      if (bug != StoredBug::kNoFence && bug != StoredBug::kFenceAfterBarrier) k.AsyncFence();
      if (bug != StoredBug::kNoBarrier) k.Barrier(BarrierScope::kBlock);
      if (bug == StoredBug::kFenceAfterBarrier) k.AsyncFence();
    }
    k.Wait(full, zero, zero);
    k.Multiply(sums, zero, product);
    if (bug != StoredBug::kNoAwait) k.WaitMultiplies(sums, 0);
    if (!in_registers && bug != StoredBug::kNoAwait) k.Barrier(BarrierScope::kBlock);
    k.For("c", LoopRole::kSerial, k.Index(32),
          [&](Scalar s) { k.Store(lhs, in_registers ? s : t * 32.0 + s, k.Constant(kType, 0)); });
    if (bug == StoredBug::kNoAwait) k.WaitMultiplies(sums, 0);
    k.For("o", LoopRole::kSerial, k.Index(32), [&](Scalar s) {
      AccumulatorPosition<Scalar> at(product, t, s, constant);
      k.Store(y, at.row * 64.0 + at.column, k.Read(sums, s));
    });
  });
  return k.Finish();
}

void ExpectStored(bool in_registers, StoredBug bug, const std::string& text) {
  Kernel kernel = MultiplyStored(in_registers, bug);
  Status verified = VerifyKernel(kernel);
  ASSERT_TRUE(verified.ok()) << Render(verified.error(), WriteKernel(kernel));
  Gemm gemm{.m = 64, .n = 64, .k = 64};
  for (uint64_t seed = 0; seed < kAsyncSeeds; ++seed) {
    GemmRun run(gemm);
    Result<SimReport> report = run.Simulate(kernel, seed);
    ASSERT_EQ(report.ok(), text.empty()) << (report.ok() ? "" : Render(report.error()));
    if (report.ok()) {
      EXPECT_TRUE(run.IsRight(gemm)) << "seed " << seed;
    } else {
      EXPECT_NE(report.error().message.find(text), std::string::npos) << Render(report.error());
    }
  }
}

TEST(SimulateAsync, LhsThatThreadsStore) {
  ExpectStored(false, StoredBug::kNone, "");
  for (StoredBug bug : {StoredBug::kNoFence, StoredBug::kFenceAfterBarrier})
    ExpectStored(false, bug, "thread 0 stored to without a fence before the barrier between them");
  ExpectStored(false, StoredBug::kNoBarrier, "stored to without a barrier or mbarrier");
  ExpectStored(false, StoredBug::kNoAwait, "without a");
}

TEST(SimulateAsync, LhsInRegisters) {
  ExpectStored(true, StoredBug::kNone, "");
  ExpectStored(true, StoredBug::kNoAwait, "without an await");
}

// ---- mbarriers

// Two warps. `body` emits the statements of thread t.
template <typename Body>
Result<SimReport> SimulateMbarriers(int64_t arrivals, uint64_t seed, Body&& body) {
  KernelBuilder k("mbarriers", Dialect::kGpu);
  ArrayId x =
      k.Argument({.name = "x", .type = ScalarType::kF32, .access = Access::kRead, .size = 32});
  ArrayId to = k.Local("to", ScalarType::kF32, Space::kShared, 64, 1024);
  ArrayId m = k.Mbarriers("m", 2, arrivals);
  k.For("t", LoopRole::kThread, k.Index(64), [&](Scalar t) {
    body(k, t, m, [&](Scalar index) {
      TileCopy copy;
      copy.from = x, copy.to = to, copy.to_index = k.Index(0).id();
      copy.dimensions = {{.size = 32, .stride = 1, .box = 32, .at = k.Index(0).id()}};
      k.Copy(m, index, copy);
    });
  });
  Kernel kernel = k.Finish();
  if (Status verified = VerifyKernel(kernel); !verified.ok()) return verified.error();
  std::vector<float> data(32);
  SimArgument arguments[] = {{data.data(), 32}};
  SimOptions options;
  if (seed > 0) options.seed = seed;
  return SimulateKernel(kernel, arguments, {}, options);
}

template <typename Body>
void ExpectMbarriers(int64_t arrivals, const std::string& text, Body&& body) {
  for (uint64_t seed = 0; seed < kAsyncSeeds; ++seed) {
    Result<SimReport> report = SimulateMbarriers(arrivals, seed, body);
    ASSERT_EQ(report.ok(), text.empty()) << (report.ok() ? "" : Render(report.error()));
    if (report.ok()) continue;
    EXPECT_NE(report.error().message.find(text), std::string::npos) << Render(report.error());
  }
}

TEST(SimulateAsync, Mbarriers) {
  auto all = [](KernelBuilder& k, Scalar, ArrayId m, auto&&) {
    k.Arrive(m, k.Index(0));
    k.Wait(m, k.Index(0), k.Index(0));
  };
  ExpectMbarriers(64, "", all);
  ExpectMbarriers(65, "waits for phase 0 of m[0], which lacks 1 of 65 arrivals", all);
  ExpectMbarriers(
      1, "uses m[2], which has 2 elements",
      [](KernelBuilder& k, Scalar t, ArrayId m, auto&&) { k.Arrive(m, t / 32.0 + 1.0); });
  ExpectMbarriers(1, "with parity 2", [](KernelBuilder& k, Scalar t, ArrayId m, auto&&) {
    k.Wait(m, k.Index(0), t / 64.0 + 2.0);
  });
}

// Two phases that complete while a thread still waits for the first of them.
TEST(SimulateAsync, MissedPhase) {
  auto twice = [](KernelBuilder& k, Scalar t, ArrayId m, auto&&) {
    Scalar zero = k.Index(0), one = k.Index(1);
    k.If(
        t < 32.0,
        [&] {
          k.If(t == 0.0, [&] {
            k.Wait(m, one, zero);
            k.Arrive(m, zero);
            k.Arrive(m, zero);
          });
        },
        [&] {
          k.If(t == 32.0, [&] { k.Arrive(m, one); });
          k.Wait(m, zero, zero);
        },
        false);
  };
  bool found = false;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Result<SimReport> report = SimulateMbarriers(1, seed, twice);
    found = found || (!report.ok() &&
                      report.error().message.find("which they can miss") != std::string::npos);
  }
  EXPECT_TRUE(found);
}

TEST(SimulateAsync, CopyForWhichNoThreadWaits) {
  auto body = [](bool waits) {
    return [waits](KernelBuilder& k, Scalar t, ArrayId m, auto&& copy) {
      k.If(t == 0.0, [&] {
        copy(k.Index(0));
        k.Arrive(m, k.Index(0), 128);  // after the copy, which may bring its bytes before
        if (waits) k.Wait(m, k.Index(0), k.Index(0));
      });
    };
  };
  ExpectMbarriers(1, "", body(true));
  ExpectMbarriers(1, "starts a copy to m[0] for which no thread waits", body(false));
}

}  // namespace
}  // namespace tokamak
