// Kernels of `tokamak calibrate`. Each one is dominated by one resource, so that its time divided
// by its count of operations is the rate of that resource:
//
//   pipe throughput   8 independent vectors per thread and a long serial loop   hides latency
//   latency           the same loop with one vector                             each step waits
//   load ... scatter  an array in the L1 cache, contiguous or by an index table
//   multiply          a matrix product in the L2 cache
//   traffic           arrays of a given size, read, written or copied once
//
// A kernel that needs operations of other pipes declares them in `others`; the caller subtracts
// their time, which must be measured first. Values are loaded before the loop and stored after it,
// so that no compiler can remove the work.

#include "cost/calibrate_kernels.h"

#include <algorithm>
#include <string>

#include "kernel/builder.h"

namespace tokamak {
namespace {

constexpr int64_t kCalibrationTrips = 2000;  // trip count of a measured loop
constexpr int64_t kAtOnce = 8;  // independent vectors: hides the latency of the operations
constexpr int64_t kCalibratedNumbers = 2048;  // elements of an array that fits the L1 cache

ArrayId AddArray(KernelBuilder& b, const std::string& name, ScalarType type, Access access,
                 int64_t size) {
  return b.Argument({.name = name,
                     .type = type,
                     .space = Space::kArgument,
                     .access = access,
                     .size = size,
                     .distinct = true,
                     .alignment = 64});
}

int64_t LanesOf(ScalarType type, const Machine& machine) {
  return machine.Lanes(InfoOf(type).bits);
}

Scalar TwoSimple(Scalar x) {
  return x * 1.0001 + 0.5;
}

// Tasks that apply `step` in a serial loop to each of `at_once` independent vectors, loaded from an
// array before the loop and stored after it.
template <typename Step>
Kernel SerialLoopKernel(const std::string& name, ScalarType type, int64_t at_once,
                        const Machine& machine, Step&& step, int64_t tasks = 1,
                        int64_t iterations = kCalibrationTrips) {
  KernelBuilder b(name);
  int64_t lanes = LanesOf(type, machine);
  ArrayId x = AddArray(b, "x", type, Access::kRead, at_once * lanes);
  ArrayId y = AddArray(b, "y", type, Access::kWrite, tasks * at_once * lanes);
  ArrayId kept = b.Local("kept", type, Space::kRegisters, at_once * lanes);
  b.For("g", LoopRole::kGrid, b.Index(tasks), [&](Scalar g) {
    for (int64_t i = 0; i < at_once; ++i)
      b.For("l", LoopRole::kVector, b.Index(lanes), [&](Scalar l) {
        Scalar at = l + b.Index(i * lanes);
        b.Store(kept, at, b.Load(x, at));
      });
    b.For("r", LoopRole::kSerial, b.Index(iterations), [&](Scalar) {
      for (int64_t i = 0; i < at_once; ++i)
        b.For("l", LoopRole::kVector, b.Index(lanes), [&](Scalar l) {
          Scalar at = l + b.Index(i * lanes);
          b.Store(kept, at, step(b.Read(kept, at)));
        });
    });
    for (int64_t i = 0; i < at_once; ++i)
      b.For("l", LoopRole::kVector, b.Index(lanes), [&](Scalar l) {
        Scalar at = l + b.Index(i * lanes);
        b.Store(y, g * b.Index(at_once * lanes) + at, b.Read(kept, at));
      });
  });
  return b.Finish();
}

// A SerialLoopKernel that measures a pipe: each step has `ops` operations of it and `simple` simple
// ones.
template <typename Step>
PipeKernel OpKernel(Pipe pipe, ScalarType type, double ops, double simple, const Machine& machine,
                    Step&& step) {
  PipeKernel made{.kernel = SerialLoopKernel(std::string("pipe"), type, kAtOnce, machine, step),
                  .pipe = pipe,
                  .count = ops * kCalibrationTrips * kAtOnce,
                  .others = {},
                  .latency = nullptr};
  if (simple > 0) made.others = {{Pipe::kSimple, simple * kCalibrationTrips * kAtOnce}};
  return made;
}

// Loads and stores of an array in the L1 cache, contiguous or indirect through an index table.
PipeKernel MemoryKernel(Pipe pipe, const Machine& machine) {
  KernelBuilder b("memory");
  int64_t lanes = LanesOf(ScalarType::kF32, machine);
  bool table = pipe == Pipe::kGather || pipe == Pipe::kScatter;
  bool stores = pipe == Pipe::kStore || pipe == Pipe::kScatter;
  ArrayId x = AddArray(b, "x", ScalarType::kF32, Access::kRead, kCalibratedNumbers);
  ArrayId indices = AddArray(b, "indices", ScalarType::kS32, Access::kRead, kCalibratedNumbers);
  ArrayId y = AddArray(b, "y", ScalarType::kF32, stores ? Access::kReadWrite : Access::kWrite,
                       kCalibratedNumbers);
  ArrayId sum = b.Local("sum", ScalarType::kF32, Space::kRegisters, kAtOnce * lanes);
  int64_t vectors = kCalibratedNumbers / lanes / kAtOnce;
  // Traversals of the array. Chosen: long against the launch.
  constexpr int64_t kTimes = 50;
  auto each = [&](auto&& body) {
    for (int64_t i = 0; i < kAtOnce; ++i)
      b.For("l", LoopRole::kVector, b.Index(lanes), [&](Scalar l) { body(i, l); });
  };
  b.For("g", LoopRole::kGrid, b.Index(kTimes), [&](Scalar g) {
    each([&](int64_t i, Scalar l) {
      b.Store(sum, l + b.Index(i * lanes), b.Constant(ScalarType::kF32, 0));
    });
    b.For("k", LoopRole::kSerial, b.Index(vectors), [&](Scalar k) {
      each([&](int64_t i, Scalar l) {
        Scalar at = k * b.Index(kAtOnce * lanes) + b.Index(i * lanes) + l, to = at;
        if (table) {
          Scalar index = b.Load(indices, at) & b.Constant(ScalarType::kS32, kCalibratedNumbers - 1);
          to = index.As(ScalarType::kIndex);
        }
        if (stores) {
          b.Store(y, to, g.As(ScalarType::kF32));
        } else {
          Scalar where = l + b.Index(i * lanes);
          b.Store(sum, where, b.Read(sum, where) + b.Load(x, to));
        }
      });
    });
    if (!stores)
      each([&](int64_t i, Scalar l) {
        b.Store(y, l + b.Index(i * lanes), b.Read(sum, l + b.Index(i * lanes)));
      });
  });
  double count = static_cast<double>(kTimes * vectors * kAtOnce);
  PipeKernel made{
      .kernel = b.Finish(), .pipe = pipe, .count = count, .others = {}, .latency = nullptr};
  if (table) {
    made.count *= static_cast<double>(lanes);
    made.others.emplace_back(Pipe::kLoad, count);
  }
  return made;
}

PipeKernel ProductKernel(Pipe pipe, ScalarType type, const Machine& machine) {
  static_cast<void>(machine);
  // Matrices that fit the L2 cache, and repetitions. Chosen.
  constexpr int64_t kRows = 64, kColumns = 64, kDepth = 256, kTimes = 4;
  KernelBuilder b("product");
  ArrayId x = AddArray(b, "x", type, Access::kRead, kRows * kDepth);
  ArrayId y = AddArray(b, "y", type, Access::kRead, kDepth * kColumns);
  ScalarType sums = *AccumulatorScalarType(type);
  ArrayId to = AddArray(b, "to", sums, Access::kReadWrite, kRows * kColumns);
  b.For("g", LoopRole::kGrid, b.Index(kTimes), [&](Scalar) {
    MatrixMultiply product{.lhs = x,
                           .rhs = y,
                           .lhs_index = b.Index(0).id(),
                           .rhs_index = b.Index(0).id(),
                           .depth = b.Index(kDepth).id(),
                           .overwrite = true,
                           .rows = kRows,
                           .columns = kColumns,
                           .lhs_row_stride = kDepth,
                           .lhs_column_stride = 1,
                           .rhs_row_stride = kColumns * VnniGroupSize(type),
                           .result_row_stride = kColumns};
    b.Multiply(to, b.Index(0), product);
  });
  return {.kernel = b.Finish(),
          .pipe = pipe,
          .count = static_cast<double>(kRows * kColumns * kDepth * kTimes),
          .others = {}};
}

// A short loop over scalar (lane-uniform) operations.
PipeKernel BranchKernel() {
  KernelBuilder b("turns");
  ArrayId x = AddArray(b, "x", ScalarType::kF32, Access::kReadWrite, kCalibratedNumbers);
  // Trip counts. Chosen: the inner loop is short, so that branches matter.
  constexpr int64_t kOuter = 400, kInner = 16;
  b.For("g", LoopRole::kGrid, b.Index(kOuter), [&](Scalar) {
    b.For("k", LoopRole::kSerial, b.Index(kInner),
          [&](Scalar k) { b.Store(x, k * b.Index(16), b.Read(x, k * b.Index(16)) + 1.0); });
  });
  return {.kernel = b.Finish(),
          .pipe = Pipe::kBranch,
          .count = static_cast<double>(kOuter * kInner),
          .others = {{Pipe::kSimple, kOuter * kInner},
                     {Pipe::kLoad, kOuter * kInner},
                     {Pipe::kStore, kOuter * kInner}}};
}

}  // namespace

Kernel TrafficKernel(Traffic traffic, int64_t bytes, int64_t threads, const Machine& machine) {
  KernelBuilder b("traffic");
  int64_t lanes = LanesOf(ScalarType::kF32, machine);
  int64_t numbers = bytes / 4 / (traffic == Traffic::kCopy ? 2 : 1);
  int64_t tasks = std::max<int64_t>(1, std::min<int64_t>(numbers / (kAtOnce * lanes), 8 * threads));
  int64_t iterations = std::max<int64_t>(1, numbers / tasks / (kAtOnce * lanes));
  bool reads = traffic != Traffic::kWrite;
  ArrayId x = AddArray(b, "x", ScalarType::kF32, Access::kRead, reads ? numbers : 1);
  ArrayId y = AddArray(b, "y", ScalarType::kF32, Access::kWrite,
                       traffic == Traffic::kRead ? tasks * kAtOnce * lanes : numbers);
  ArrayId sum = b.Local("sum", ScalarType::kF32, Space::kRegisters, kAtOnce * lanes);
  b.For("g", LoopRole::kGrid, b.Index(tasks), [&](Scalar g) {
    auto each = [&](auto&& body) {
      for (int64_t i = 0; i < kAtOnce; ++i)
        b.For("l", LoopRole::kVector, b.Index(lanes),
              [&](Scalar l) { body(l + b.Index(i * lanes)); });
    };
    if (traffic == Traffic::kRead)
      each([&](Scalar at) { b.Store(sum, at, b.Constant(ScalarType::kF32, 0)); });
    b.For("k", LoopRole::kSerial, b.Index(iterations), [&](Scalar k) {
      Scalar base = (g * b.Index(iterations) + k) * b.Index(kAtOnce * lanes);
      each([&](Scalar at) {
        if (traffic == Traffic::kRead) {
          b.Store(sum, at, b.Read(sum, at) + b.Load(x, base + at));
        } else {
          b.Store(y, base + at, reads ? b.Load(x, base + at) : b.Constant(ScalarType::kF32, 1));
        }
      });
    });
    if (traffic == Traffic::kRead)
      each([&](Scalar at) { b.Store(y, g * b.Index(kAtOnce * lanes) + at, b.Read(sum, at)); });
  });
  return b.Finish();
}

std::vector<PipeKernel> PipeKernels(const Machine& machine) {
  ScalarType f32 = ScalarType::kF32, f64 = ScalarType::kF64, u32 = ScalarType::kU32;
  std::vector<PipeKernel> all;
  all.push_back(OpKernel(Pipe::kSimple, f32, 2, 0, machine, TwoSimple));
  auto waits = [&](double Rates::*latency, double ops, auto&& step) {
    all.push_back({.kernel = SerialLoopKernel("chain", f32, 1, machine, step),
                   .pipe = Pipe::kSimple,
                   .count = ops * kCalibrationTrips,
                   .others = {},
                   .latency = latency});
  };
  waits(&Rates::latency_ns, 2, TwoSimple);
  waits(&Rates::sum_latency_ns, 1, [](Scalar x) { return x + 0.5; });
  all.push_back(OpKernel(Pipe::kInteger, u32, 1, 1, machine,
                         [](Scalar x) { return x * 2654435761.0 + 12345.0; }));
  all.push_back(
      OpKernel(Pipe::kDivide, f32, 1, 1, machine, [](Scalar x) { return 3.0 / (x + 1.5); }));
  all.push_back(
      OpKernel(Pipe::kDivide64, f64, 1, 1, machine, [](Scalar x) { return 3.0 / (x + 1.5); }));
  all.push_back(
      OpKernel(Pipe::kRoot, f32, 1, 2, machine, [](Scalar x) { return SqrtOf(AbsOf(x) + 1.5); }));
  all.push_back(
      OpKernel(Pipe::kRoot64, f64, 1, 2, machine, [](Scalar x) { return SqrtOf(AbsOf(x) + 1.5); }));
  all.push_back(OpKernel(Pipe::kConvert, f32, 2, 1, machine, [](Scalar x) {
    return (x * 0.75).As(ScalarType::kS32).As(ScalarType::kF32);
  }));
  int64_t lanes = LanesOf(u32, machine);
  all.push_back(OpKernel(Pipe::kScalar, u32, static_cast<double>(lanes), 2, machine,
                         [](Scalar x) { return x.Like(4000000000.0) / (x | x.Like(1)) + 7.0; }));
  for (Pipe pipe : {Pipe::kLoad, Pipe::kStore, Pipe::kGather, Pipe::kScatter})
    all.push_back(MemoryKernel(pipe, machine));
  all.push_back(BranchKernel());
  all.push_back(ProductKernel(Pipe::kMultiply, f32, machine));
  all.push_back(ProductKernel(Pipe::kMultiply64, f64, machine));
  all.push_back(ProductKernel(Pipe::kMultiply16, ScalarType::kBF16, machine));
  return all;
}

Kernel EmptyKernel(int64_t tasks, const Machine& machine) {
  static_cast<void>(machine);
  KernelBuilder b("empty");
  ArrayId y = AddArray(b, "y", ScalarType::kF32, Access::kWrite, tasks);
  b.For("g", LoopRole::kGrid, b.Index(tasks),
        [&](Scalar g) { b.Store(y, g, b.Constant(ScalarType::kF32, 1)); });
  return b.Finish();
}

Kernel BusyKernel(int64_t tasks, int64_t iterations, const Machine& machine) {
  return SerialLoopKernel("busy", ScalarType::kF32, kAtOnce, machine, TwoSimple, tasks, iterations);
}

}  // namespace tokamak
