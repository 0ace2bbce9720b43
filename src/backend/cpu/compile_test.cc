// Handwritten kernels, each for one form that the emitter handles, compared with the simulator.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <unistd.h>

#include <gtest/gtest.h>

#include "backend/cpu/code.h"
#include "backend/cpu/kernel_run.h"
#include "backend/cpu/launch.h"
#include "kernel/builder.h"
#include "runtime/disk_cache.h"
#include "runtime/thread_pool.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace tokamak::cpu {
namespace {

constexpr ScalarType kF32 = ScalarType::kF32, kS32 = ScalarType::kS32, kIndex = ScalarType::kIndex;

class Compiled : public ::testing::Test {
 protected:
  ArrayId In(KernelBuilder& b, ScalarType type, int64_t size, bool wild = false) {
    arguments_.push_back(Draw(type, size, random_, wild));
    return b.Argument({.name = "x" + std::to_string(arguments_.size()),
                       .type = type,
                       .access = Access::kRead,
                       .size = size,
                       .alignment = 8});
  }
  ArrayId Out(KernelBuilder& b, ScalarType type, int64_t size, Access access = Access::kWrite) {
    arguments_.push_back(Draw(type, size, random_));
    return b.Argument({.name = "y" + std::to_string(arguments_.size()),
                       .type = type,
                       .access = access,
                       .size = size,
                       .alignment = 8});
  }
  void Check(KernelBuilder& b, const std::vector<int64_t>& extents = {}) {
    Difference difference = Compare(b.Finish(), arguments_, extents);
    EXPECT_EQ(difference.text, "");
    arguments_.clear();
  }

  SplitMix64 random_{1};
  std::vector<Bytes> arguments_;
};

TEST_F(Compiled, ElementwiseWithAMaskedTail) {
  for (int64_t lanes : {1, 3, 4, 8, 16, 64}) {
    for (int64_t n : {1, 15, 16, 17, 100}) {
      KernelBuilder b("tail");
      ArrayId x = In(b, kF32, n), y = In(b, kF32, n), z = Out(b, kF32, n);
      Scalar extent = b.NewLaunchExtent({.name = "n", .maximum = 1000});
      Scalar blocks = (extent + b.Index(lanes - 1)) / b.Index(lanes);
      b.For("i", LoopRole::kGrid, blocks, [&](Scalar i) {
        b.For("l", LoopRole::kVector, b.Index(lanes), [&](Scalar l) {
          Scalar at = i * b.Index(lanes) + l;
          b.If(at < extent, [&] { b.Store(z, at, b.Load(x, at) * b.Load(y, at) + 1.0); });
        });
      });
      Check(b, {n});
    }
  }
}

TEST_F(Compiled, ElementwiseWithAnOverlappedTail) {
  KernelBuilder b("overlap");
  int64_t n = 101, lanes = 16;
  ArrayId x = In(b, ScalarType::kF64, n), z = Out(b, ScalarType::kF64, n);
  b.For("i", LoopRole::kGrid, b.Index(7), [&](Scalar i) {
    Scalar base = LesserOf(i * b.Index(lanes), b.Index(n - lanes));
    b.For("l", LoopRole::kVector, b.Index(lanes), [&](Scalar l) {
      Scalar value = b.Load(x, base + l);
      b.Store(z, base + l, SqrtOf(AbsOf(value)) - value);
    });
  });
  Check(b);
}

TEST_F(Compiled, RowSumsInRegistersOfTheThread) {
  for (int64_t accumulators : {1, 4}) {
    KernelBuilder b("row_sum");
    int64_t rows = 5, columns = 128, lanes = 8;
    ArrayId x = In(b, kF32, rows * columns), y = Out(b, kF32, rows);
    ArrayId part = b.Local("part", kF32, Space::kRegisters, accumulators * lanes);
    ArrayId sum = b.Local("sum", kF32, Space::kRegisters, 1);
    Scalar zero = b.Constant(kF32, 0), first = b.Index(0);
    auto each = [&](auto&& body) {
      b.For("w", LoopRole::kUnrolled, b.Index(accumulators), [&](Scalar way) {
        b.For("l", LoopRole::kVector, b.Index(lanes),
              [&](Scalar l) { body(way * b.Index(lanes) + l); });
      });
    };
    b.For("r", LoopRole::kGrid, b.Index(rows), [&](Scalar row) {
      each([&](Scalar at) { b.Store(part, at, zero); });
      b.For("c", LoopRole::kSerial, b.Index(columns / (accumulators * lanes)), [&](Scalar c) {
        each([&](Scalar at) {
          Scalar value = b.Load(x, row * b.Index(columns) + c * b.Index(accumulators * lanes) + at);
          b.Store(part, at, b.Read(part, at) + value);
        });
      });
      b.Store(sum, first, zero);
      b.For("k", LoopRole::kUnrolled, b.Index(accumulators * lanes),
            [&](Scalar k) { b.Store(sum, first, b.Read(sum, first) + b.Read(part, k)); });
      b.Store(y, row, b.Read(sum, first));
    });
    Check(b);
  }
}

TEST_F(Compiled, ColumnSumsInRegistersOfEachLane) {
  KernelBuilder b("column_sum");
  int64_t rows = 37, columns = 48, lanes = 16;
  ArrayId x = In(b, kF32, rows * columns), y = Out(b, kF32, columns), z = Out(b, kS32, columns);
  ArrayId best = b.Local("best", kF32, Space::kRegisters, 2);
  ArrayId at = b.Local("at", kS32, Space::kRegisters, 1);
  b.Store(best, b.Index(1), b.Constant(kF32, 0.5));  // outside: for all lanes
  b.For("i", LoopRole::kSerial, b.Index(columns / lanes), [&](Scalar i) {
    b.For("l", LoopRole::kVector, b.Index(lanes), [&](Scalar l) {
      Scalar column = i * b.Index(lanes) + l;
      b.Store(best, b.Index(0), b.Constant(kF32, -INFINITY));
      b.Store(at, b.Index(0), b.Constant(kS32, 0));
      b.For("r", LoopRole::kSerial, b.Index(rows), [&](Scalar r) {
        Scalar value = b.Load(x, r * b.Index(columns) + column);
        b.If(b.Read(best, b.Index(0)) < value, [&] {
          b.Store(best, b.Index(0), value);
          b.Store(at, b.Index(0), r.As(kS32));
        });
      });
      b.Store(y, column, b.Read(best, b.Index(0)) + b.Read(best, b.Index(1)));
      b.Store(z, column, b.Read(at, b.Index(0)));
    });
  });
  Check(b);
}

TEST_F(Compiled, GathersAndScatters) {
  for (int index_bits : {32, 64}) {
    KernelBuilder b("gather");
    int64_t n = 64, m = 50, lanes = 16;
    ArrayId x = In(b, kF32, m), from = In(b, kS32, n), to = In(b, ScalarType::kS64, n);
    for (int64_t i = 0; i < n; ++i) {
      auto s32 = static_cast<int32_t>(random_.Next() % 70) - 10;
      int64_t s64 = (i * 37) % n;
      std::memcpy(arguments_[1].data() + i * 4, &s32, 4);
      std::memcpy(arguments_[2].data() + i * 8, &s64, 8);
    }
    ArrayId y = Out(b, kF32, n);
    b.For("i", LoopRole::kGrid, b.Index(n / lanes), [&](Scalar i) {
      b.For("l", LoopRole::kVector, b.Index(lanes), [&](Scalar l) {
        Scalar at = i * b.Index(lanes) + l;
        Scalar where = GreaterOf(LesserOf(b.Load(from, at).As(kIndex), b.Index(m - 1)), b.Index(0));
        b.Store(y, b.Load(to, at).As(kIndex), b.Load(x, where));
      });
    });
    Kernel kernel = b.Finish();
    kernel.index_bits = index_bits;
    EXPECT_EQ(Compare(kernel, arguments_).text, "");
    arguments_.clear();
  }
}

TEST_F(Compiled, LanesThatDecideDifferently) {
  KernelBuilder b("if");
  int64_t n = 64, lanes = 16;
  ArrayId x = In(b, kS32, n), d = In(b, kS32, n), table = In(b, kS32, 4);
  ArrayId y = Out(b, kS32, n, Access::kReadWrite);
  ArrayId own = b.Local("own", kS32, Space::kRegisters, 1);
  b.For("i", LoopRole::kGrid, b.Index(n / lanes), [&](Scalar i) {
    b.For("l", LoopRole::kVector, b.Index(lanes), [&](Scalar l) {
      Scalar at = i * b.Index(lanes) + l;
      Scalar value = b.Load(x, at), by = b.Load(d, at) % b.Constant(kS32, 3);
      b.Store(own, b.Index(0), value);
      b.If(
          by != 0,
          [&] {
            // An inactive lane holds a zero.
            b.Store(own, b.Index(0), value / by);
            b.If(value > 0, [&] { b.Store(y, at, b.Load(table, i)); });
          },
          [&] { b.Store(y, at, b.Read(y, at) + 7); }, false);
      b.If(b.Read(own, b.Index(0)) < -1000.0,
           [&] { b.Store(y, at, b.Load(table, b.Index(3) - i)); });
      b.Store(y, at, b.Read(y, at) + b.Read(own, b.Index(0)));
    });
  });
  Check(b);
}

TEST_F(Compiled, WhilesUntilNoLaneIsLive) {
  KernelBuilder b("collatz");
  int64_t n = 48, lanes = 16;
  ArrayId x = In(b, kS32, n), y = Out(b, kS32, n);
  ArrayId own = b.Local("own", kS32, Space::kRegisters, 2);
  b.For("i", LoopRole::kGrid, b.Index(n / lanes), [&](Scalar i) {
    b.For("l", LoopRole::kVector, b.Index(lanes), [&](Scalar l) {
      Scalar at = i * b.Index(lanes) + l;
      Scalar start = b.Load(x, at) & b.Constant(kS32, 127);
      b.Store(own, b.Index(0), start + 1);
      b.Store(own, b.Index(1), b.Constant(kS32, 0));
      b.If(start != 13, [&] {
        b.While([&] { return b.Read(own, b.Index(0)) > 1; },
                [&] {
                  Scalar now = b.Read(own, b.Index(0));
                  Scalar odd = (now & b.Constant(kS32, 1)) != 0;
                  b.Store(own, b.Index(0), Choose(odd, now * 3 + 1, now >> b.Constant(kS32, 1)));
                  b.Store(own, b.Index(1), b.Read(own, b.Index(1)) + 1);
                });
      });
      b.Store(y, at, b.Read(own, b.Index(1)));
    });
  });
  Check(b);
}

TEST_F(Compiled, ScalarControlFlow) {
  KernelBuilder b("scalar");
  ArrayId x = In(b, kS32, 20), y = Out(b, kS32, 20);
  ArrayId own = b.Local("own", kS32, Space::kRegisters, 4);
  b.For("i", LoopRole::kSerial, b.Index(20), [&](Scalar i) {
    b.Store(own, i % b.Index(4), b.Load(x, i));
    b.If(
        b.Load(x, i) < 0.0, [&] { b.Store(own, b.Index(0), b.Constant(kS32, 5)); },
        [&] { b.Store(own, b.Index(0), b.Constant(kS32, 50)); }, true);
    b.While([&] { return b.Read(own, b.Index(0)) > 3; },
            [&] { b.Store(own, b.Index(0), b.Read(own, b.Index(0)) / b.Constant(kS32, 2)); }, true);
    b.Store(y, i, b.Read(own, b.Index(0)) + b.Read(own, i % b.Index(4)));
  });
  Check(b);
}

TEST_F(Compiled, PairsStridesAndReversals) {
  KernelBuilder b("complex");
  int64_t n = 64, lanes = 8;
  ArrayId x = In(b, kF32, 2 * n), y = Out(b, kF32, 2 * n), turned = Out(b, kF32, n);
  ArrayId three = Out(b, kF32, 3 * n, Access::kReadWrite);
  b.For("i", LoopRole::kGrid, b.Index(n / lanes), [&](Scalar i) {
    b.For("l", LoopRole::kVector, b.Index(lanes), [&](Scalar l) {
      Scalar at = i * b.Index(lanes) + l, re_at = at * b.Index(2), im_at = re_at + b.Index(1);
      Scalar re = b.Load(x, re_at), im = b.Load(x, im_at);
      b.Store(y, re_at, re * re - im * im);
      b.Store(y, im_at, re * im * 2.0);
      b.Store(turned, b.Index(n - 1) - at, b.Load(x, b.Index(2 * n - 1) - at));
      b.Store(three, at * b.Index(3), b.Read(three, at * b.Index(3) + b.Index(2)));
    });
  });
  Check(b);
}

TEST_F(Compiled, SquaresOfRegistersAreTransposed) {
  for (int64_t lanes : {2, 4, 8, 16}) {
    KernelBuilder b("transpose");
    int64_t rows = 2 * lanes, columns = lanes;
    ArrayId x = In(b, kS32, rows * columns), y = Out(b, kS32, rows * columns);
    ArrayId tile = b.Local("tile", kS32, Space::kRegisters, lanes * rows);
    auto each = [&](int64_t count, auto&& body) {
      b.For("k", LoopRole::kUnrolled, b.Index(count), [&](Scalar k) {
        b.For("l", LoopRole::kVector, b.Index(lanes), [&](Scalar l) { body(k, l); });
      });
    };
    each(rows, [&](Scalar k, Scalar l) {
      Scalar at = k * b.Index(lanes) + l;
      b.Store(tile, at, b.Load(x, at));
    });
    // Two squares, one below the other.
    each(columns, [&](Scalar k, Scalar l) {
      for (int64_t square : {0, 1}) {
        Scalar from = l * b.Index(lanes) + k + b.Index(square * lanes * lanes);
        b.Store(y, k * b.Index(rows) + b.Index(square * lanes) + l, b.Read(tile, from));
      }
    });
    Check(b);
  }
}

// The last lane has the next quotient.
TEST_F(Compiled, QuotientsThatTheLastLaneReaches) {
  for (int64_t lanes : {4, 8, 16}) {
    KernelBuilder b("quotients");
    ArrayId x = In(b, kS32, 100), y = Out(b, kS32, 6 * lanes);
    b.For("i", LoopRole::kGrid, b.Index(6), [&](Scalar i) {
      b.For("l", LoopRole::kVector, b.Index(lanes), [&](Scalar l) {
        Scalar at = i * b.Index(lanes - 1) + l, by = b.Index(lanes - 1);
        b.Store(y, i * b.Index(lanes) + l, b.Load(x, at / by) - b.Load(x, at % by));
      });
    });
    Check(b);
  }
}

TEST_F(Compiled, IndicesAsNumbers) {
  KernelBuilder b("iota");
  int64_t n = 96, lanes = 16;
  ArrayId y = Out(b, kS32, n), z = Out(b, kF32, n), t = In(b, kF32, n), u = Out(b, kF32, n);
  b.For("i", LoopRole::kGrid, b.Index(n / lanes), [&](Scalar i) {
    b.For("l", LoopRole::kVector, b.Index(lanes), [&](Scalar l) {
      Scalar at = i * b.Index(lanes) + l;
      // Lanes cross rows of 12, but not the halves of 48.
      Scalar row = at / b.Index(12), column = at % b.Index(12);
      b.Store(y, at, (row * b.Index(1000) + column).As(kS32));
      b.Store(z, at, (at / b.Index(48) * b.Index(100) + at % b.Index(48)).As(kF32));
      b.Store(u, column * b.Index(8) + row, b.Load(t, at));  // a transpose
    });
  });
  Check(b);
}

TEST_F(Compiled, ShufflesBetweenLanes) {
  KernelBuilder b("butterfly");
  int64_t n = 64, lanes = 16;
  ArrayId x = In(b, kF32, n), y = Out(b, kF32, n);
  b.For("i", LoopRole::kGrid, b.Index(n / lanes), [&](Scalar i) {
    b.For("l", LoopRole::kVector, b.Index(lanes), [&](Scalar l) {
      Scalar at = i * b.Index(lanes) + l, sum = b.Load(x, at);
      for (int64_t by = 1; by < lanes; by *= 2)
        sum = sum + b.Shuffle(sum, b.Constant(kS32, static_cast<double>(by)));
      b.Store(y, at, sum);
    });
  });
  Check(b);
}

TEST_F(Compiled, NarrowTypesInMemory) {
  for (ScalarType type : {ScalarType::kF16, ScalarType::kBF16}) {
    KernelBuilder b("narrow");
    int64_t n = 64, lanes = 16;
    ArrayId x = In(b, type, n, true), p = In(b, ScalarType::kPred, n);
    ArrayId y = Out(b, type, n), q = Out(b, ScalarType::kPred, n);
    b.For("i", LoopRole::kGrid, b.Index(n / lanes), [&](Scalar i) {
      b.For("l", LoopRole::kVector, b.Index(lanes), [&](Scalar l) {
        Scalar at = i * b.Index(lanes) + l;
        Scalar value = b.Load(x, at).As(kF32);
        b.Store(y, at, Choose(b.Load(p, at), value * value + 0.1, value).As(type));
        b.Store(q, at, (value < 0.0) ^ b.Load(p, at));
      });
    });
    Check(b);
  }
}

// NaNs whose upper bits alone would be infinite or would round up to a number.
TEST_F(Compiled, NansOfLowBitsStayNansInBf16) {
  const std::vector<uint32_t> bits = {0x7f800001, 0xff800001, 0x7f80ffff, 0x7fffffff,
                                      0xffffffff, 0x7fc00000, 0x7f800000, 0xff7fffff};
  KernelBuilder b("nans");
  ArrayId x = In(b, kF32, 8), y = Out(b, ScalarType::kBF16, 8);
  std::memcpy(arguments_[0].data(), bits.data(), 8 * sizeof(uint32_t));
  b.For("i", LoopRole::kGrid, b.Index(2), [&](Scalar i) {
    b.For("l", LoopRole::kVector, b.Index(4), [&](Scalar l) {
      Scalar at = i * 4.0 + l;
      b.Store(y, at, b.Load(x, at).As(ScalarType::kBF16));
    });
  });
  Check(b);
}

TEST_F(Compiled, OneBufferForTwoArguments) {
  KernelBuilder b("in_place");
  int64_t n = 64, lanes = 16;
  ArrayId x = b.Argument(
      {.name = "x", .type = kF32, .access = Access::kRead, .size = n, .distinct = false});
  ArrayId y = b.Argument(
      {.name = "y", .type = kF32, .access = Access::kWrite, .size = n, .distinct = false});
  b.For("i", LoopRole::kGrid, b.Index(n / lanes), [&](Scalar i) {
    b.For("l", LoopRole::kVector, b.Index(lanes), [&](Scalar l) {
      Scalar at = i * b.Index(lanes) + l;
      b.Store(y, at, b.Load(x, at) + 1.0);
    });
  });
  Kernel kernel = b.Finish();
  const Kernel* kernels[] = {&kernel};
  auto code = Code::Compile(kernels);
  ASSERT_TRUE(code.ok()) << code.error().message;
  std::vector<float> data(64);
  std::iota(data.begin(), data.end(), 0.0f);
  void* arguments[] = {data.data(), data.data()};
  RunLaunch(PlanLaunch(kernel, code.value()->function(0)), arguments, nullptr, nullptr);
  for (size_t i = 0; i < data.size(); ++i) EXPECT_EQ(data[i], static_cast<float>(i) + 1);
}

Kernel Doubled(int64_t n, double by = 2) {
  KernelBuilder b("doubled");
  ArrayId x = b.Argument({.name = "x", .type = kF32, .access = Access::kRead, .size = n});
  ArrayId y = b.Argument({.name = "y", .type = kF32, .access = Access::kWrite, .size = n});
  b.For("i", LoopRole::kGrid, b.Index(n / 16), [&](Scalar i) {
    b.For("l", LoopRole::kVector, b.Index(16), [&](Scalar l) {
      Scalar at = i * b.Index(16) + l;
      b.Store(y, at, b.Load(x, at) * by);
    });
  });
  return b.Finish();
}

TEST_F(Compiled, ColdPathsAreBranchedOver) {
  KernelBuilder b("k");
  ArrayId x = b.Argument({.name = "x", .type = kF32, .access = Access::kRead, .size = 32});
  ArrayId y = b.Argument({.name = "y", .type = kF32, .access = Access::kWrite, .size = 32});
  b.For("i", LoopRole::kGrid, b.Index(2), [&](Scalar i) {
    b.For("l", LoopRole::kVector, b.Index(16), [&](Scalar l) {
      Scalar at = i * b.Index(16) + l, v = b.Load(x, at), scaled = v;
      for (int k = 0; k < 30; ++k) scaled = scaled * v.Like(0.5);
      b.Store(y, at, Choose(v >= 0x1p20, scaled, v));
    });
  });
  Kernel kernel = b.Finish();
  Result<std::string> ir = MakeIr(kernel, HostTarget().value(), true);
  ASSERT_TRUE(ir.ok()) << ir.error().message;
  EXPECT_NE(ir.value().find("cold"), std::string::npos);
  const Kernel* kernels[] = {&kernel};
  auto code = Code::Compile(kernels);
  ASSERT_TRUE(code.ok()) << code.error().message;
  float from[32], to[32];  // the first vector has a large number, the second none
  for (int i = 0; i < 32; ++i) from[i] = i == 5 ? 0x1p30f : static_cast<float>(i);
  void* arguments[] = {from, to};
  code.value()->function(0)(arguments, nullptr, 0, 2);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(to[i], i == 5 ? 1.0f : static_cast<float>(i));
}

TEST_F(Compiled, StoresMayGoPastTheCaches) {
  Kernel kernel = Doubled(64);
  const Kernel* kernels[] = {&kernel};
  Target target = HostTarget().value();
  target.stream_bytes = 1;
  Result<std::string> ir = MakeIr(kernel, target, true);
  ASSERT_TRUE(ir.ok()) << ir.error().message;
  EXPECT_NE(ir.value().find("!nontemporal"), std::string::npos);
  Result<std::string> object = MakeObject(kernels, target);
  ASSERT_TRUE(object.ok()) << object.error().message;
  auto code = LoadObject(object.value(), 1);
  ASSERT_TRUE(code.ok()) << code.error().message;
  alignas(64) float x[64], y[64];
  std::iota(std::begin(x), std::end(x), 0.0f);
  void* arguments[] = {x, y};
  RunLaunch(PlanLaunch(kernel, code.value()->function(0)), arguments, nullptr, nullptr);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(y[i], 2 * x[i]);
}

TEST_F(Compiled, ManyThreadsGiveTheSameResult) {
  int64_t n = 1 << 20;
  Kernel kernel = Doubled(n);
  const Kernel* kernels[] = {&kernel};
  auto code = Code::Compile(kernels);
  ASSERT_TRUE(code.ok()) << code.error().message;
  std::vector<float> x(static_cast<size_t>(n)), y(x.size());
  std::iota(x.begin(), x.end(), 0.0f);
  void* arguments[] = {x.data(), y.data()};
  ThreadPool pool(3);
  Launch launch = PlanLaunch(kernel, code.value()->function(0));
  EXPECT_EQ(launch.grid, n / 16);
  EXPECT_GT(launch.grid, 2 * launch.min_chunk);
  RunLaunch(launch, arguments, nullptr, &pool);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], 2 * x[i]);
}

#if defined(__x86_64__)
TEST_F(Compiled, SubnormalsAreKeptWhateverTheCallerSet) {
  Kernel kernel = Doubled(16, 0.5);
  const Kernel* kernels[] = {&kernel};
  auto code = Code::Compile(kernels);
  ASSERT_TRUE(code.ok()) << code.error().message;
  std::vector<float> x(16, 1.5e-38f), y(16);
  void* arguments[] = {x.data(), y.data()};
  unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);  // flush-to-zero and denormals-are-zero
  RunLaunch(PlanLaunch(kernel, code.value()->function(0)), arguments, nullptr, nullptr);
  EXPECT_EQ(_mm_getcsr() & 0x8040, 0x8040u);
  _mm_setcsr(before);
  EXPECT_EQ(y[3], 0.75e-38f);
}
#endif

TEST_F(Compiled, EqualKernelsShareAFunctionAndTheCacheKeepsIt) {
  Kernel one = Doubled(64), two = Doubled(64), three = Doubled(64, 3);
  two.name = "another";
  const Kernel* kernels[] = {&one, &two, &three};
  std::string dir = "/tmp/tok_code_test." + std::to_string(getpid());
  DiskCache cache(dir, 1 << 24);
  auto first = Code::Compile(kernels, {.cache = &cache});
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_EQ(first.value()->function(0), first.value()->function(1));
  EXPECT_NE(first.value()->function(0), first.value()->function(2));
  EXPECT_EQ(first.value()->cached(), 0);
  auto second = Code::Compile(kernels, {.cache = &cache});
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_EQ(second.value()->cached(), second.value()->objects());
  std::vector<float> x(64, 1.25f), y(64);
  void* arguments[] = {x.data(), y.data()};
  second.value()->function(2)(arguments, nullptr, 0, 4);
  EXPECT_EQ(y[63], 3.75f);
  std::string remove = "rm -r " + dir;
  EXPECT_EQ(std::system(remove.c_str()), 0);
}

TEST_F(Compiled, BadKernelsAreErrors) {
  KernelBuilder b("threads");
  ArrayId y = b.Argument({.name = "y", .type = kF32, .access = Access::kWrite, .size = 32});
  b.For("t", LoopRole::kThread, b.Index(32), [&](Scalar t) { b.Store(y, t, b.Constant(kF32, 1)); });
  Kernel threads = b.Finish();
  const Kernel* kernels[] = {&threads};
  auto rejected = Code::Compile(kernels);
  ASSERT_FALSE(rejected.ok());
  EXPECT_EQ(rejected.error().code, ErrorCode::kKernelForm);

  KernelBuilder large("large");
  ArrayId out = large.Argument({.name = "y", .type = kF32, .access = Access::kWrite, .size = 32});
  ArrayId own = large.Local("own", kF32, Space::kRegisters, 1 << 20);
  large.Store(own, large.Index(5), large.Constant(kF32, 1));
  large.Store(out, large.Index(0), large.Read(own, large.Index(5)));
  Kernel kernel = large.Finish();
  const Kernel* too_large[] = {&kernel};
  rejected = Code::Compile(too_large);
  ASSERT_FALSE(rejected.ok());
  EXPECT_EQ(rejected.error().code, ErrorCode::kKernelForm);

  auto garbage = LoadObject("this is no object file", 1);
  ASSERT_FALSE(garbage.ok());
  EXPECT_EQ(garbage.error().code, ErrorCode::kCodeGeneration);

  Target target = HostTarget().value();
  target.triple = "nothing-unknown";
  auto unknown = MakeObject(kernels, target);
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, ErrorCode::kCodeGeneration);

  target.triple = "x86_64-pc-linux-gnu";
  target.features = {"+sse4.1"};
  EXPECT_EQ(LackOf(target), "fma");
}

// Compiles three kernels in one object file and injects `fault` into the first.
std::shared_ptr<const Code> CompileWithFault(InjectedFault fault, int efforts) {
  Kernel one = Doubled(64), two = Doubled(64, 3), three = Doubled(64);
  const Kernel* kernels[] = {&one, &two, &three};
  auto code = Code::Compile(
      kernels,
      {.kernel_time = std::chrono::milliseconds(1000), .fault = fault, .fault_efforts = efforts});
  EXPECT_TRUE(code.ok()) << code.error().message;
  return std::move(code.value());
}

void ExpectProduct(KernelFn function, float by) {
  ASSERT_NE(function, nullptr);
  std::vector<float> x(64, 1.25f), y(64);
  void* arguments[] = {x.data(), y.data()};
  function(arguments, nullptr, 0, 4);
  for (float value : y) EXPECT_EQ(value, 1.25f * by);
}

TEST_F(Compiled, InjectedCodegenFaultsFallBack) {
  for (int efforts : {1, 2, 3}) {
    auto code = CompileWithFault(InjectedFault::kCrash, efforts);
    // Kernels 0 and 2 are equal; kernel 1 differs.
    ASSERT_EQ(code->fallbacks().size(), 2u);
    EXPECT_EQ(code->fallbacks()[0].kernel, 0u);
    EXPECT_EQ(code->fallbacks()[1].kernel, 2u);
    for (const CodegenFallback& fallback : code->fallbacks()) {
      EXPECT_EQ(fallback.reason, "code generation was abandoned: SIGSEGV");
      EXPECT_EQ(fallback.effort.has_value(), efforts < 3);
      EXPECT_EQ(static_cast<int>(fallback.effort.value_or(CodegenEffort::kFull)), efforts % 3);
    }
    ExpectProduct(code->function(1), 3);
    if (efforts == 3) {
      EXPECT_EQ(code->function(0), nullptr);
    } else {
      ExpectProduct(code->function(0), 2);
      ExpectProduct(code->function(2), 2);
    }
  }
}

TEST_F(Compiled, EveryCodegenFallbackHasAReason) {
  const std::pair<InjectedFault, const char*> faults[] = {
      {InjectedFault::kAbort, "SIGABRT"},
      {InjectedFault::kFatalError, "llvm: planted"},
      {InjectedFault::kEndless, "s of processor time are used up"},
  };
  for (auto [fault, reason] : faults) {
    auto code = CompileWithFault(fault, 1);
    ASSERT_EQ(code->fallbacks().size(), 2u) << reason;
    EXPECT_NE(code->fallbacks()[0].reason.find(reason), std::string::npos)
        << code->fallbacks()[0].reason;
    ExpectProduct(code->function(0), 2);
  }
}

// LLVM 19 reverses comparisons of f16 with a spilled operand.
TEST(Target, NoVectorsOfF16) {
  Target target = HostTarget().value();
  EXPECT_EQ(std::ranges::count(target.features, "+avx512fp16"), 0);
}

}  // namespace
}  // namespace tokamak::cpu
