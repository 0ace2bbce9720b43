// Tests of the cost model. Work: counts of kernels that are written as text, so that the expected
// numbers can be computed by hand. CostEstimate: properties of predicted times that hold for any
// rates; they grow with bytes and operations and name the largest term. Rates: machine files.

#include "cost/work.h"

#include <gtest/gtest.h>

#include "cost/calibrate.h"
#include "cost/json.h"
#include "cost/machine_files.h"
#include "cost/rates.h"
#include "ir/ir.h"
#include "kernel/parse.h"

namespace tokamak {
namespace {

Machine WideCpu() {
  return {.vector_bits = 512, .cores = 4};
}

Kernel KernelOf(const std::string& text) {
  Result<ParsedKernel> parsed = ParseKernel(text, "test");
  EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : parsed.error().message);
  return parsed.ok() ? std::move(parsed.value().kernel) : Kernel{};
}

constexpr const char* kScale = R"(
kernel scale {
  index 64
  argument x: f32[65536] read align 64
  argument y: f32[65536] write align 64
  grid g < 2048 {
    v0: index = g * 32
    vector l < 32 {
      v1: index = v0 + l
      v2: f32 = load x[v1]
      v3: f32 = v2 * v2
      v4: f32 = v3 / v2
      store y[v1] = v4
    }
  }
}
)";

TEST(Work, CountsVectorsAndBytesOnce) {
  Work work = WorkOf(KernelOf(kScale), 0, WideCpu());
  EXPECT_EQ(work.tasks, 2048);
  EXPECT_EQ(work.reads, 65536 * 4);
  EXPECT_EQ(work.writes, 65536 * 4);
  EXPECT_EQ(work.rereads + work.memory_rereads, 0);
  EXPECT_EQ(work[Pipe::kSimple], 4096);  // 32 lanes are two registers
  EXPECT_EQ(work[Pipe::kDivide], 4096);
  EXPECT_EQ(work[Pipe::kLoad], 4096);
  EXPECT_EQ(work[Pipe::kStore], 4096);
  EXPECT_EQ(work[Pipe::kGather] + work[Pipe::kScatter], 0);
  EXPECT_EQ(work.chain, 0);
}

// Stride 3 uses vector loads and shuffles; stride 7 uses gathers.
TEST(Work, LanesOfSmallStrideAreVectors) {
  auto work = [](const std::string& step) {
    return WorkOf(KernelOf(R"(
kernel strided {
  index 64
  argument x: f32[8192] read align 64
  argument y: f32[1024] write align 64
  grid g < 64 {
    v0: index = g * 16
    vector l < 16 {
      v1: index = v0 + l
      v2: index = v1 * )" + step +
                           R"(
      v3: f32 = load x[v2]
      store y[v1] = v3
    }
  }
}
)"),
                  0, WideCpu());
  };
  Work three = work("3");
  EXPECT_EQ(three[Pipe::kGather], 0);
  EXPECT_EQ(three[Pipe::kLoad], 3 * 64);
  EXPECT_EQ(three[Pipe::kSimple], 2 * 64);
  EXPECT_EQ(work("7")[Pipe::kGather], 16 * 64);
}

// On GPUs, an element of a register array at a number that is known to the compiler is a register,
// however the number follows from unrolled loops.
TEST(Work, RegistersAreNoAccesses) {
  auto work = [](const std::string& role) {
    return WorkOf(KernelOf(R"(
kernel registers {
  index 64
  argument y: f32[4096] write align 16
  registers x: f32[8]
  grid g < 512 {
    )" + role + R"( i < 8 {
      v0: index = i / 2
      v1: index = v0 % 4
      v2: f32 = read x[v1]
      v3: index = g * 8
      v4: index = v3 + i
      store y[v4] = v2
    }
  }
}
)"),
                  0, GpuMachine());
  };
  EXPECT_EQ(work("unrolled")[Pipe::kLoad] + work("unrolled")[Pipe::kGather], 0);
  EXPECT_GT(work("serial")[Pipe::kLoad] + work("serial")[Pipe::kGather], 0);
}

// A clamped contiguous index is a masked vector load plus the boundary element.
TEST(Work, VectorsThatAnEndLiesWithin) {
  Work work = WorkOf(KernelOf(R"(
kernel part {
  index 64
  argument x: f32[1000] read align 64
  argument y: f32[1024] write align 64
  grid g < 64 {
    v0: index = g * 16
    vector l < 16 {
      v1: index = v0 + l
      v2: index = v1 + -12
      v3: index = max(v2, 0)
      v4: index = min(v3, 999)
      v5: f32 = load x[v4]
      store y[v1] = v5
    }
  }
}
)"),
                     0, WideCpu());
  EXPECT_EQ(work[Pipe::kGather], 0);
  EXPECT_EQ(work[Pipe::kLoad], (1 + 2) * 64);
}

// A scalar operation counts like a vector operation; a division by a constant is not a division.
TEST(Work, NumbersThatAreOneForAllLanes) {
  Work work = WorkOf(KernelOf(R"(
kernel one {
  index 64
  argument x: f32[64] read align 64
  argument y: f32[64] write align 64
  grid g < 64 {
    v0: index = g / 3
    v1: index = g / 8
    v2: index = v0 + v1
    v3: f32 = load x[v2]
    v4: f32 = v3 * v3
    v5: f32 = v4 / v3
    store y[g] = v5
  }
}
)"),
                     0, WideCpu());
  EXPECT_EQ(work[Pipe::kSimple], 64);
  EXPECT_EQ(work[Pipe::kDivide], 16);
  EXPECT_EQ(work[Pipe::kScalar], 0);
  EXPECT_EQ(work[Pipe::kIndex], (4 + 1 + 1) * 64);
}

// Four adjacent rows are four sequential streams.
TEST(Work, FewStreamsAreNoLines) {
  auto work =
      [](const std::string& rows, const std::string& grid) {
        return WorkOf(KernelOf(R"(
kernel streams {
  index 64
  argument x: f32[16777216] read align 64
  argument y: f32[16777216] write align 64
  grid g < )" + grid + R"( {
    v0: index = g * )" + rows + R"(
    serial t < 4096 {
      unrolled r < )" + rows + R"( {
        v1: index = v0 + r
        v2: index = v1 * 4096
        v3: index = v2 + t
        v4: f32 = load x[v3]
        store y[v3] = v4
      }
    }
  }
}
)"),
                      0, WideCpu());
      };
  EXPECT_EQ(work("4", "1024").lines, 0);
  EXPECT_EQ(work("64", "64").lines, 2 * 16777216);
}

TEST(Work, ReductionsWaitForOneAnother) {
  Work work = WorkOf(KernelOf(R"(
kernel sums {
  index 64
  argument x: f32[65536] read align 64
  argument y: f32[64] write align 64
  registers sum: f32[16]
  grid row < 64 {
    vector l < 16 {
      store sum[l] = f32(0)
    }
    v0: index = row * 1024
    serial k < 64 {
      v1: index = k * 16
      v2: index = v0 + v1
      vector m < 16 {
        v3: f32 = read sum[m]
        v4: index = v2 + m
        v5: f32 = load x[v4]
        v6: f32 = v5 + v3
        store sum[m] = v6
      }
    }
    v7: f32 = read sum[0]
    store y[row] = v7
  }
}
)"),
                     0, WideCpu());
  EXPECT_EQ(work.sums, 64 * 64);
  EXPECT_EQ(work.chain, 0);
  EXPECT_EQ(work.reads, 65536 * 4);
  EXPECT_EQ(work.writes, 64 * 4);
  EXPECT_EQ(work[Pipe::kSimple], 64 * 64);
}

// y[i, j] = x[j, i]: lanes are strided. Every row traverses all of z.
TEST(Work, KnowsHowElementsLie) {
  Work work = WorkOf(KernelOf(R"(
kernel transposed {
  index 64
  argument x: f32[1048576] read align 64
  argument z: f32[1048576] read align 64
  argument y: f32[1048576] write align 64
  grid i < 1024 {
    v0: index = i * 1024
    serial k < 64 {
      v1: index = k * 16
      vector l < 16 {
        v2: index = v1 + l
        v3: index = v2 * 1024
        v4: index = v3 + i
        v5: f32 = load x[v4]
        v6: index = v0 + v2
        serial j < 1024 {
          v7: index = j * 1024
          v8: index = v7 + v2
          v9: f32 = load z[v8]
          v10: f32 = v9 + v5
          store y[v6] = v10
        }
      }
    }
  }
}
)"),
                     0, WideCpu());
  EXPECT_EQ(work[Pipe::kGather], 1048576);
  EXPECT_EQ(work[Pipe::kScatter], 0);
  EXPECT_EQ(work.reads, 2 * 4 * 1048576);
  EXPECT_EQ(work.memory_rereads, 4.0 * 1048576 * 1023);
  EXPECT_EQ(work.lines, 1048576 + 1048576 / 16);  // x one element at a time, z one vector at a time
}

Work Streams(double bytes) {
  Work work;
  work.tasks = bytes / 128;
  work.reads = work.writes = bytes / 2;
  work[Pipe::kLoad] = work[Pipe::kStore] = bytes / 128;
  return work;
}

TEST(CostEstimate, GrowsWithBytesAndOps) {
  Machine machine = WideCpu();
  double last = 0;
  for (double bytes = 1024; bytes < 1e10; bytes *= 1.3) {
    CostEstimate estimate = EstimateCost(Streams(bytes), machine);
    // The thread count may step up at this size.
    EXPECT_GT(estimate.total(), last * 0.8) << bytes;
    last = std::max(last, estimate.total());
    EXPECT_GE(estimate.total(), estimate.launch + std::max(estimate.memory, estimate.compute));
    Work more = Streams(bytes);
    more[Pipe::kDivide] += bytes;
    EXPECT_GT(EstimateCost(more, machine).total(), estimate.total());
  }
}

TEST(CostEstimate, SaysWhatBinds) {
  Machine machine = WideCpu();
  EXPECT_EQ(EstimateCost(Work{}, machine).binding, "launch");
  EXPECT_EQ(EstimateCost(Streams(1e8), machine).binding, "memory");
  Work busy = Streams(1e6);
  busy[Pipe::kScalar] = 1e8;
  EXPECT_EQ(EstimateCost(busy, machine).binding, "compute");
}

TEST(CostEstimate, ChunksCostMoreThanTheWhole) {
  for (Machine machine : {WideCpu(), GpuMachine()}) {
    Work part = Streams(1 << 14);
    part.threads = 128;
    Work whole = Streams(1 << 15);
    whole.threads = 128;
    EXPECT_LT(EstimateCost(whole, machine).total(), 2 * EstimateCost(part, machine).total());
  }
}

TEST(CostEstimate, ThreadsAreWorthTheirWhile) {
  Machine machine = WideCpu();
  EXPECT_EQ(EstimateCost(Streams(4096), machine).threads, 1);
  Work work = Streams(1e8);
  EXPECT_EQ(EstimateCost(work, machine).threads, 4);
  EXPECT_LT(MinChunkOf(work, machine) * 4.0, work.tasks);
  machine.cores = 1;
  EXPECT_EQ(EstimateCost(work, machine).threads, 1);
}

// 16 tasks in chunks of three are six chunks, one for each of six threads.
TEST(CostEstimate, ThreadsAreThoseThatChunksGoTo) {
  Machine machine = WideCpu();
  machine.cores = 16;
  Work work;
  work.tasks = 16;
  work[Pipe::kSimple] = 1e6;
  work.min_chunk = 16;
  double alone = EstimateCost(work, machine).compute;
  work.min_chunk = 3;
  CostEstimate estimate = EstimateCost(work, machine);
  EXPECT_EQ(estimate.threads, 6);
  EXPECT_NEAR(estimate.compute, alone * 3 / 16, 1e-9 * alone);
}

// 97 tasks in chunks of twelve: four chunks for one thread, four and the remainder for the other.
TEST(CostEstimate, TheRestIsOneChunk) {
  Machine machine = WideCpu();
  machine.cores = 2;
  Work work;
  work.tasks = 97;
  work[Pipe::kSimple] = 1e6;
  work.min_chunk = 97;
  double alone = EstimateCost(work, machine).compute;
  work.min_chunk = 1;
  CostEstimate estimate = EstimateCost(work, machine);
  EXPECT_EQ(estimate.threads, 2);
  EXPECT_NEAR(estimate.compute, alone * 49 / 97, 1e-9 * alone);
}

// SMT siblings contend for the units of their core in matrix multiplication, but not in other work.
TEST(CostEstimate, ContendingThreadsAreSlower) {
  Machine machine = WideCpu();
  Rates rates = DefaultRates(MachineKind::kCpu), contended = rates;
  contended.thread_contention = {1, 1.5, 2};
  Work busy, others;
  busy.tasks = others.tasks = 4;
  busy.min_chunk = others.min_chunk = 1;
  busy[Pipe::kMultiply] = others[Pipe::kSimple] = 1e6;
  auto compute = [&](const Work& work, const Rates& own) {
    machine.rates = &own;
    return EstimateCost(work, machine).compute;
  };
  EXPECT_NEAR(compute(busy, contended), 2 * compute(busy, rates), 1e-6);
  EXPECT_EQ(compute(others, contended), compute(others, rates));
  busy.tasks = 2;
  EXPECT_NEAR(compute(busy, contended), 1.5 * compute(busy, rates), 1e-6);
}

// With few GPU threads, the latency of a thread's own operations is exposed.
TEST(CostEstimate, FewThreadsWaitForTheirOwn) {
  constexpr double kOps = 1e5;
  const Machine machine = GpuMachine();
  Work few;
  few.threads = 32;
  few[Pipe::kSimple] = kOps * few.threads;
  double waits = kOps * RatesOf(machine).latency_ns / 1000;
  EXPECT_GE(EstimateCost(few, machine).compute, waits);
  Work twice = few;
  twice.tasks = 2;
  twice[Pipe::kSimple] *= 2;
  EXPECT_NEAR(EstimateCost(twice, machine).compute, EstimateCost(few, machine).compute,
              0.01 * waits);
}

// Warpgroups that take turns use their results while another one multiplies.
TEST(CostEstimate, ResultsOverlapMultipliesInTurns) {
  const Machine machine = GpuMachine();
  Work work;
  work.tasks = static_cast<double>(machine.cores);
  work.threads = 384;
  work[Pipe::kTensor] = 1e9;
  double multiplies = EstimateCost(work, machine).compute;
  work[Pipe::kSimple] = 2e7;
  double together = EstimateCost(work, machine).compute;
  work.takes_turns = true;
  work.most_tiles = 100;
  EXPECT_GT(together, 1.05 * multiplies);
  EXPECT_NEAR(EstimateCost(work, machine).compute, multiplies, 0.01 * multiplies);
  // The results of a single tile come after its multiplies.
  work.most_tiles = 1;
  EXPECT_GE(EstimateCost(work, machine).compute, together);
}

// Blocks that have an SM each end with the one that has the most tiles.
TEST(CostEstimate, LastTilesTakeAsLongAsAll) {
  const Machine machine = GpuMachine();
  Work work;
  work.tasks = static_cast<double>(machine.cores);
  work.threads = 384;
  work[Pipe::kTensor] = 1e9;
  double even = EstimateCost(work, machine).compute;
  work.imbalance = 1.5;
  EXPECT_NEAR(EstimateCost(work, machine).compute, 1.5 * even, 0.01 * even);
}

// Writes also count as bytes in flight.
TEST(CostEstimate, WritingAloneReachesMemory) {
  const Machine machine = GpuMachine();
  Work fill;
  fill.tasks = 1 << 16;
  fill.threads = 256;
  fill.writes = fill.tasks * fill.threads * 32;
  double least = fill.writes / BandwidthAt(RatesOf(machine).all, fill.writes).write / 1000;
  EXPECT_NEAR(EstimateCost(fill, machine).memory, least, 0.01 * least);
}

TEST(Rates, AreBetweenTheirPoints) {
  std::vector<Bandwidth> curve = {{1e3, 100, 50, 80}, {1e6, 10, 5, 8}};
  EXPECT_EQ(BandwidthAt(curve, 10).read, 100);
  EXPECT_EQ(BandwidthAt(curve, 1e9).read, 10);
  EXPECT_NEAR(BandwidthAt(curve, 31622.7766).read, 31.6227766, 1e-3);
}

TEST(Rates, AreWrittenAndRead) {
  for (MachineKind kind : {MachineKind::kCpu, MachineKind::kGpu}) {
    const Rates& rates = DefaultRates(kind);
    Result<Rates> read = RatesFromJson(ToJson(rates), "test");
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(ToJson(read.value()), ToJson(rates));
  }
  Rates contended = DefaultRates(MachineKind::kCpu);
  contended.thread_contention = {1, 1.25};
  EXPECT_EQ(RatesFromJson(ToJson(contended), "test").value().thread_contention,
            contended.thread_contention);
  EXPECT_FALSE(RatesFromJson("{}", "test").ok());
  EXPECT_FALSE(RatesFromJson("[1, 2", "test").ok());
  for (const MachineFile& file : MachineFiles()) {
    Result<Rates> read = RatesFromJson(file.text, std::string(file.name));
    EXPECT_TRUE(read.ok()) << read.error().message;
  }
}

// A CPU that no shipped file was measured on uses the rates of a compatible one.
TEST(Rates, ComeFromACompatibleCpu) {
  EXPECT_TRUE(IsCompatibleCpu("GenuineIntel amx_bf16", "GenuineIntel", "sse avx512f amx_bf16"));
  EXPECT_FALSE(IsCompatibleCpu("GenuineIntel amx_bf16", "GenuineIntel", "sse avx512f amx_bf16_x"));
  EXPECT_FALSE(IsCompatibleCpu("GenuineIntel amx_bf16", "AuthenticAMD", "sse avx512f amx_bf16"));
  EXPECT_TRUE(IsCompatibleCpu("GenuineIntel avx512f !amx_bf16", "GenuineIntel", "sse avx512f"));
  EXPECT_FALSE(
      IsCompatibleCpu("GenuineIntel avx512f !amx_bf16", "GenuineIntel", "avx512f amx_bf16"));
  EXPECT_FALSE(IsCompatibleCpu("", "GenuineIntel", "avx512f"));
}

TEST(Work, IsWrittenAndRead) {
  Work work = WorkOf(KernelOf(kScale), 0, WideCpu());
  Result<Work> read = WorkFromJson(ToJson(work), "test");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(ToJson(read.value()), ToJson(work));
}

// Fitting to times that were generated from rates recovers these rates.
TEST(Rates, AreFitted) {
  Machine machine = WideCpu();
  Rates real = DefaultRates(MachineKind::kCpu);
  real.ns[static_cast<size_t>(Pipe::kSimple)] *= 2.5;
  real.ns[static_cast<size_t>(Pipe::kDivide)] *= 0.5;
  machine.rates = &real;
  std::vector<FitPoint> points;
  for (double size : {1e4, 1e5, 1e6}) {
    for (double simple : {1.0, 10.0, 100.0}) {
      for (double divide : {0.0, 1.0, 10.0}) {
        Work work = Streams(size);
        work[Pipe::kSimple] = simple * size / 64;
        work[Pipe::kDivide] = divide * size / 64;
        points.push_back({work, EstimateCost(work, machine).total(), 1});
      }
    }
  }
  Rates fitted = FitRates(DefaultRates(MachineKind::kCpu), WideCpu(), points);
  machine.rates = &fitted;
  double off = 0;
  for (const FitPoint& point : points)
    off += std::abs(EstimateCost(point.work, machine).total() / point.measured_us - 1);
  EXPECT_LT(off / static_cast<double>(points.size()), 0.05);
  EXPECT_EQ(ToJson(fitted), ToJson(FitRates(DefaultRates(MachineKind::kCpu), WideCpu(), points)));
}

// An if counts by the fraction of iterations in which its condition is true.
TEST(Work, CountsIfsByTheirFraction) {
  Work work = WorkOf(KernelOf(R"(
kernel some {
  index 64
  argument y: f32[100] write align 64
  grid g < 100 {
    v0: pred = g < 25
    if v0 {
      store y[g] = f32(1)
    }
  }
}
)"),
                     0, WideCpu());
  EXPECT_EQ(work[Pipe::kStore], 25);
}

// AddElementOp of a plan counts the same as WorkOf of its kernel.
TEST(Work, OpsOfAPlanAreThoseOfAKernel) {
  Module module("m");
  Computation* main = module.AddComputation("main");
  Shape shape = Shape::Array(ElementType::kF32, {65536});
  Instr* x = main->AppendParameter(0, shape);
  Instr* square = main->Append(Op::kMultiply, shape, {x, x});
  Instr* quotient = main->Append(Op::kDivide, shape, {square, x});
  Machine machine = WideCpu();
  Work work;
  AddElementOp(work, *square, 65536, machine);
  AddElementOp(work, *quotient, 65536, machine);
  AddLoads(work, 65536, ElementType::kF32, machine);
  AddStores(work, 65536, ElementType::kF32, machine);
  Work counted = WorkOf(KernelOf(kScale), 0, machine);
  counted[Pipe::kIndex] = 0;
  for (size_t i = 0; i < kPipes; ++i)
    EXPECT_EQ(work.ops[i], counted.ops[i]) << NameOf(static_cast<Pipe>(i));
}

}  // namespace
}  // namespace tokamak
