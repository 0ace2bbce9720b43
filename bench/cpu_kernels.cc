// Speed and compile time of generated kernels:
//   cmake --build build --target cpu_kernels && build/bin/cpu_kernels
// GB/s count each byte read and written once. Best of several runs, on one thread unless stated.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "backend/cpu/code.h"
#include "backend/cpu/launch.h"
#include "cpu_kernels_loops.h"
#include "kernel/builder.h"
#include "runtime/disk_cache.h"
#include "runtime/host_allocator.h"
#include "runtime/thread_pool.h"

namespace tokamak::cpu {
namespace {

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <typename F>
double BestSeconds(F&& work) {
  double best = 1e9, spent = 0;
  for (int i = 0; i < 2000 && (i < 5 || spent < 0.4); ++i) {
    double begin = Now();
    work();
    double took = Now() - begin;
    best = std::min(best, took);
    spent += took;
  }
  return best;
}

Array In(const char* name, int64_t size) {
  return {.name = name,
          .type = ScalarType::kF32,
          .access = Access::kRead,
          .size = size,
          .alignment = 64};
}
Array Out(const char* name, int64_t size, Access access = Access::kWrite) {
  return {.name = name, .type = ScalarType::kF32, .access = access, .size = size, .alignment = 64};
}

// A grid over blocks of `per` vectors, as the elementwise generator emits it.
template <typename Body>
void Elementwise(KernelBuilder& b, int64_t n, int64_t lanes, Body&& body) {
  int64_t vectors = n / lanes, per = std::min<int64_t>(vectors, 64);
  b.For("block", LoopRole::kGrid, b.Index(vectors / per), [&](Scalar block) {
    b.For("v", LoopRole::kSerial, b.Index(per), [&](Scalar v) {
      b.For("lane", LoopRole::kVector, b.Index(lanes),
            [&](Scalar lane) { body((block * b.Index(per) + v) * b.Index(lanes) + lane); });
    });
  });
}

Kernel Axpy(int64_t n, int64_t lanes) {
  KernelBuilder b("axpy");
  ArrayId x = b.Argument(In("x", n)), y = b.Argument(Out("y", n, Access::kReadWrite));
  Elementwise(b, n, lanes, [&](Scalar i) {
    Scalar value = b.Load(x, i);
    b.Store(y, i, Fma(value.Like(2.5), value, b.Read(y, i)));
  });
  return b.Finish();
}

Kernel Chain(int64_t n, int64_t lanes) {
  KernelBuilder b("chain");
  ArrayId x = b.Argument(In("x", n)), y = b.Argument(Out("y", n));
  Elementwise(b, n, lanes, [&](Scalar i) {
    Scalar t = b.Load(x, i) * 1.44269504f;
    Scalar k = RoundEvenOf(t), r = t - k, p = t.Like(0.00133335581f);
    for (float c : {0.00961812910f, 0.05550410866f, 0.24022650695f, 0.69314718056f, 1.0f})
      p = Fma(p, r, t.Like(c));
    Scalar bits = (k.As(ScalarType::kS32) + 127) << b.Constant(ScalarType::kS32, 23);
    b.Store(y, i, p * bits.BitsAs(ScalarType::kF32));
  });
  return b.Finish();
}

Kernel RowSum(int64_t rows, int64_t columns, int64_t lanes) {
  KernelBuilder b("row_sum");
  ArrayId x = b.Argument(In("x", rows * columns)), y = b.Argument(Out("y", rows));
  int64_t accumulators = 64 / lanes;
  ArrayId part = b.Local("part", ScalarType::kF32, Space::kRegisters, 64);
  ArrayId sum = b.Local("sum", ScalarType::kF32, Space::kRegisters, 1);
  b.For("row", LoopRole::kGrid, b.Index(rows), [&](Scalar row) {
    auto each = [&](auto&& body) {
      b.For("way", LoopRole::kUnrolled, b.Index(accumulators), [&](Scalar way) {
        b.For("lane", LoopRole::kVector, b.Index(lanes),
              [&](Scalar lane) { body(way * b.Index(lanes) + lane); });
      });
    };
    each([&](Scalar at) { b.Store(part, at, b.Constant(ScalarType::kF32, 0)); });
    b.For("c", LoopRole::kSerial, b.Index(columns / 64), [&](Scalar c) {
      each([&](Scalar at) {
        Scalar value = b.Load(x, row * b.Index(columns) + c * b.Index(64) + at);
        b.Store(part, at, b.Read(part, at) + value);
      });
    });
    b.Store(sum, b.Index(0), b.Constant(ScalarType::kF32, 0));
    b.For("l", LoopRole::kUnrolled, b.Index(64),
          [&](Scalar l) { b.Store(sum, b.Index(0), b.Read(sum, b.Index(0)) + b.Read(part, l)); });
    b.Store(y, row, b.Read(sum, b.Index(0)));
  });
  return b.Finish();
}

// Square tiles go through registers; the emitter reads their columns by shuffles.
Kernel Transpose(int64_t rows, int64_t columns, int64_t lanes) {
  KernelBuilder b("transpose");
  ArrayId x = b.Argument(In("x", rows * columns)), y = b.Argument(Out("y", rows * columns));
  ArrayId tile = b.Local("tile", ScalarType::kF32, Space::kRegisters, lanes * lanes);
  b.For("r", LoopRole::kGrid, b.Index(rows / lanes), [&](Scalar r) {
    b.For("c", LoopRole::kSerial, b.Index(columns / lanes), [&](Scalar c) {
      auto each = [&](auto&& body) {
        b.For("k", LoopRole::kUnrolled, b.Index(lanes), [&](Scalar k) {
          b.For("l", LoopRole::kVector, b.Index(lanes), [&](Scalar l) { body(k, l); });
        });
      };
      Scalar row = r * b.Index(lanes), column = c * b.Index(lanes);
      each([&](Scalar k, Scalar l) {
        b.Store(tile, k * b.Index(lanes) + l, b.Load(x, (row + k) * b.Index(columns) + column + l));
      });
      each([&](Scalar k, Scalar l) {
        b.Store(y, (column + k) * b.Index(rows) + row + l, b.Read(tile, l * b.Index(lanes) + k));
      });
    });
  });
  return b.Finish();
}

struct Row {
  const char* name;
  Kernel kernel;
  int64_t reads, writes;  // floats
};

void Measure(const Row& row, int64_t rows, int64_t columns) {
  const Kernel* kernels[] = {&row.kernel};
  auto code = Code::Compile(kernels);
  if (!code.ok()) {
    std::printf("%s: %s\n", row.name, code.error().message.c_str());
    return;
  }
  const CompileTimes& t = code.value()->times();
  auto bytes_of = [](int64_t n) { return static_cast<size_t>(n) * 4; };
  HostAllocator& memory = HostAllocator::OfProcess();
  int64_t n = rows * columns;
  auto* x = static_cast<float*>(memory.Allocate(bytes_of(n)));
  auto* y = static_cast<float*>(memory.Allocate(bytes_of(n)));
  auto* z = static_cast<float*>(memory.Allocate(bytes_of(n)));
  for (int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(i % 1000) * 0.01f, y[i] = z[i] = 1;
  std::string name = row.name;
  auto loop = [&] {
    if (name == "axpy") LoopAxpy(x, z, 2.5f, n);
    if (name == "chain") LoopChain(x, z, n);
    if (name == "turn") LoopTranspose(x, z, rows, columns);
    if (name == "row sum") LoopRowSum(x, z, rows, columns);
  };
  Launch launch = PlanLaunch(row.kernel, code.value()->function(0));
  void* arguments[] = {x, y};
  if (name != "axpy") loop();
  if (name != "axpy") RunLaunch(launch, arguments, nullptr, nullptr);
  bool same = std::memcmp(y, z, bytes_of(std::min(row.writes, n))) == 0;
  double ours = BestSeconds([&] { RunLaunch(launch, arguments, nullptr, nullptr); });
  double all =
      BestSeconds([&] { RunLaunch(launch, arguments, nullptr, &ThreadPool::OfProcess()); });
  double theirs = BestSeconds(loop);
  double bytes = static_cast<double>(row.reads + row.writes) * 4;
  std::printf(
      "%-8s %10ld  ours %7.1f GB/s  g++ %7.1f GB/s  ratio %5.2f  threads %7.1f GB/s  %s"
      "  compile: emit %.2f passes %.2f code %.2f load %.2f ms\n",
      row.name, static_cast<long>(n), bytes / ours / 1e9, bytes / theirs / 1e9, theirs / ours,
      bytes / all / 1e9, same ? "same bits" : "OTHER BITS", static_cast<double>(t.emit_us) / 1e3,
      static_cast<double>(t.optimize_us) / 1e3, static_cast<double>(t.generate_us) / 1e3,
      static_cast<double>(t.load_us) / 1e3);
  memory.Free(x, bytes_of(n));
  memory.Free(y, bytes_of(n));
  memory.Free(z, bytes_of(n));
}

void MeasurePool() {
  ThreadPool& pool = ThreadPool::OfProcess();
  auto nothing = [](int64_t, int64_t) {};
  pool.For(pool.threads(), 1, nothing);
  double warm = BestSeconds([&] { pool.For(pool.threads(), 1, nothing); });
  std::vector<double> asleep;
  for (int i = 0; i < 101; ++i) {
    timespec ms{0, 1000000};
    nanosleep(&ms, nullptr);
    double begin = Now();
    pool.For(pool.threads(), 1, nothing);
    asleep.push_back(Now() - begin);
  }
  std::sort(asleep.begin(), asleep.end());
  std::printf("pool of %d: an empty loop %.2f us awake, %.2f us when they slept (median)\n",
              pool.threads(), warm * 1e6, asleep[asleep.size() / 2] * 1e6);
}

int Main() {
  auto target = HostTarget();
  if (!target.ok()) return 4;
  int64_t lanes = target.value().vector_bytes / 4;
  std::printf("%s, vectors of %d bytes\n", target.value().cpu.c_str(), target.value().vector_bytes);
  for (int64_t rows : {4, 256, 16384, 65536}) {
    int64_t columns = 1024, n = rows * columns;
    Measure({"axpy", Axpy(n, lanes), 2 * n, n}, rows, columns);
    Measure({"chain", Chain(n, lanes), n, n}, rows, columns);
    if (rows >= lanes) Measure({"turn", Transpose(rows, columns, lanes), n, n}, rows, columns);
    Measure({"row sum", RowSum(rows, columns, lanes), n, rows}, rows, columns);
  }
  MeasurePool();
  return 0;
}

}  // namespace
}  // namespace tokamak::cpu

int main() {
  return tokamak::cpu::Main();
}
