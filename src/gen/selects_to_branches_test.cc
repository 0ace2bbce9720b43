#include "gen/selects_to_branches.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "kernel/builder.h"
#include "kernel/simulate.h"
#include "kernel/verify.h"

namespace tokamak {
namespace {

constexpr ScalarType kF32 = ScalarType::kF32;
constexpr int64_t kCount = 64;
// The GPU is fully occupied by the test kernel.
Machine MachineOf(MachineKind kind) {
  return {.kind = kind, .vector_bits = 512, .cores = kind == MachineKind::kGpu ? 0 : 1};
}

Scalar Expensive(Scalar x, int steps, double by) {
  for (int i = 0; i < steps; ++i) x = Fma(x, x.Like(0.5), x.Like(by));
  return x;
}

// y and z as functions of x, from the code for one element: 16 lanes on a CPU, one thread per
// element on a GPU.
template <typename Body>
Kernel Elements(const Machine& machine, Body body) {
  KernelBuilder b("k", machine.is_gpu() ? Dialect::kGpu : Dialect::kCpu);
  ArrayId x = b.Argument({.name = "x", .type = kF32, .access = Access::kRead, .size = kCount});
  ArrayId y = b.Argument({.name = "y", .type = kF32, .access = Access::kWrite, .size = kCount});
  ArrayId z = b.Argument({.name = "z", .type = kF32, .access = Access::kWrite, .size = kCount});
  LoopRole inner = machine.is_gpu() ? LoopRole::kThread : LoopRole::kVector;
  b.For("g", LoopRole::kGrid, b.Index(kCount / 16), [&](Scalar g) {
    b.For("l", inner, b.Index(16), [&](Scalar l) {
      Scalar at = g * b.Index(16) + l;
      auto [first, second] = body(b, b.Load(x, at), l);
      b.Store(y, at, first);
      b.Store(z, at, second);
    });
  });
  return b.Finish();
}

std::vector<float> ResultsOf(const Kernel& kernel) {
  EXPECT_TRUE(VerifyKernel(kernel).ok());
  std::vector<float> x(kCount), out(2 * kCount);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) - 3;
  SimArgument arguments[] = {{x.data(), kCount}, {out.data(), kCount}, {&out[kCount], kCount}};
  Result<SimReport> report = SimulateKernel(kernel, arguments);
  EXPECT_TRUE(report.ok()) << report.error().message;
  return out;
}

int BranchesOf(const StmtList& block) {
  int count = 0;
  for (const Stmt& stmt : block) {
    count += stmt.kind == StmtKind::kIf ? 1 : 0;
    for (const StmtList* inner : {&stmt.condition_stmts, &stmt.body, &stmt.else_body})
      count += BranchesOf(*inner);
  }
  return count;
}

// Checks values, and returns the number of branches.
template <typename Body>
int Branched(Body body) {
  int branches = -1;
  for (MachineKind kind : {MachineKind::kCpu, MachineKind::kGpu}) {
    Machine machine = MachineOf(kind);
    Kernel kernel = Elements(machine, body);
    std::vector<float> before = ResultsOf(kernel);
    ConvertSelectsToBranches(kernel, machine);
    EXPECT_EQ(ResultsOf(kernel), before);
    if (branches >= 0) {
      EXPECT_EQ(BranchesOf(kernel.body), branches);
    }
    branches = BranchesOf(kernel.body);
  }
  return branches;
}

using Pair = std::pair<Scalar, Scalar>;

TEST(SelectsToBranches, OneBranchForAllSelectsOfACondition) {
  EXPECT_EQ(Branched([](KernelBuilder&, Scalar x, Scalar) {
              Scalar holds = x < 0.0;
              return Pair{Choose(holds, Expensive(x, 120, 1), x),
                          Choose(holds, Expensive(x, 120, 2), x * x)};
            }),
            1);
}

TEST(SelectsToBranches, TheSecondOperand) {
  EXPECT_EQ(Branched([](KernelBuilder&, Scalar x, Scalar) {
              return Pair{Choose(x < 0.0, x, Expensive(x, 400, 1)), x};
            }),
            1);
}

TEST(SelectsToBranches, CheapOperandsStay) {
  EXPECT_EQ(Branched([](KernelBuilder&, Scalar x, Scalar) {
              return Pair{Choose(x < 0.0, Expensive(x, 40, 1), x), x};
            }),
            0);
}

// Values with other users are computed unconditionally.
TEST(SelectsToBranches, ValuesOfSeveralUsersStay) {
  EXPECT_EQ(Branched([](KernelBuilder&, Scalar x, Scalar) {
              Scalar expensive = Expensive(x, 400, 1);
              return Pair{Choose(x < 0.0, expensive, x), expensive + 1.0};
            }),
            0);
}

// One select uses the result of another with the same condition.
TEST(SelectsToBranches, OneAfterTheOther) {
  EXPECT_EQ(Branched([](KernelBuilder&, Scalar x, Scalar) {
              Scalar holds = x < 0.0;
              Scalar first = Choose(holds, Expensive(x, 400, 1), x);
              return Pair{Choose(holds, Expensive(first, 400, 2), x), first};
            }),
            2);
}

TEST(SelectsToBranches, OneWithinTheOther) {
  EXPECT_EQ(Branched([](KernelBuilder&, Scalar x, Scalar) {
              Scalar inner = Choose(x < -1.0, Expensive(x, 400, 1), x);
              return Pair{Choose(x < 0.0, Expensive(inner, 400, 2), x), x};
            }),
            2);
}

// Uniform values do not wait for the branch: the chain of keys continues before it, and its results
// for the branch are computed there.
TEST(SelectsToBranches, UniformValuesComeFirst) {
  auto build = [](const Machine& machine) {
    KernelBuilder b("k", machine.is_gpu() ? Dialect::kGpu : Dialect::kCpu);
    ArrayId x = b.Argument({.name = "x", .type = kF32, .access = Access::kRead, .size = kCount});
    ArrayId y = b.Argument({.name = "y", .type = kF32, .access = Access::kWrite, .size = kCount});
    ArrayId z = b.Argument({.name = "z", .type = kF32, .access = Access::kWrite, .size = kCount});
    LoopRole inner = machine.is_gpu() ? LoopRole::kThread : LoopRole::kVector;
    b.For("g", LoopRole::kGrid, b.Index(kCount / 16), [&](Scalar g) {
      b.For("l", inner, b.Index(16), [&](Scalar l) {
        Scalar at = g * b.Index(16) + l;
        ArrayId state = b.Local("state", kF32, Space::kRegisters, 1),
                key = b.Local("key", kF32, Space::kRegisters, 1);
        b.Store(state, b.Index(0), b.Load(x, at));
        b.Store(key, b.Index(0), b.Load(x, b.Index(5)));
        b.For("t", LoopRole::kSerial, b.Index(3), [&](Scalar) {
          Scalar old = b.Read(state, b.Index(0)), k = b.Read(key, b.Index(0));
          Scalar drawn = Expensive(k, 60, 1);
          b.Store(state, b.Index(0), Choose(old < 0.0, Expensive(old + drawn, 400, 2), old - 1.0));
          b.Store(key, b.Index(0), Expensive(k, 60, 3));
        });
        b.Store(y, at, b.Read(state, b.Index(0)));
        b.Store(z, at, b.Read(key, b.Index(0)));
      });
    });
    return b.Finish();
  };
  for (MachineKind kind : {MachineKind::kCpu, MachineKind::kGpu}) {
    Machine machine = MachineOf(kind);
    Kernel kernel = build(machine);
    std::vector<float> before = ResultsOf(kernel);
    ConvertSelectsToBranches(kernel, machine);
    EXPECT_EQ(ResultsOf(kernel), before);
    EXPECT_EQ(BranchesOf(kernel.body), 1);
    if (!machine.is_gpu()) continue;
    const StmtList* iteration = &kernel.body;
    auto at = [](const StmtList& block, StmtKind of) {
      return std::ranges::find(block, of, &Stmt::kind);
    };
    while (at(*iteration, StmtKind::kIf) == iteration->end())
      iteration = &at(*iteration, StmtKind::kFor)->body;
    auto branch = at(*iteration, StmtKind::kIf);
    std::vector<std::string> stored;
    for (auto it = iteration->begin(); it != branch; ++it)
      if (it->kind == StmtKind::kStore) stored.push_back(kernel.array(it->array).name);
    std::ranges::sort(stored);
    ASSERT_EQ(stored.size(), 3u);
    EXPECT_TRUE(stored[0].starts_with("chosen"));
    EXPECT_TRUE(stored[1].starts_with("hoisted"));
    EXPECT_TRUE(stored[2].starts_with("key"));
    EXPECT_EQ(branch->body.front().kind, StmtKind::kRead);
  }
}

// With few threads, issue slots are free and latency is not.
TEST(SelectsToBranches, NoBranchForFewThreads) {
  Machine machine{.kind = MachineKind::kGpu, .vector_bits = 128, .cores = 132};
  for (int steps : {400, 6000}) {
    Kernel kernel = Elements(machine, [&](KernelBuilder&, Scalar x, Scalar) {
      return std::pair{Choose(x < 0.0, Expensive(x, steps, 1), x), x};
    });
    ConvertSelectsToBranches(kernel, machine);
    EXPECT_EQ(BranchesOf(kernel.body), steps == 400 ? 0 : 1);
  }
}

// Lanes that certainly diverge would serialize.
TEST(SelectsToBranches, ConditionsOfLanesStay) {
  EXPECT_EQ(Branched([](KernelBuilder&, Scalar x, Scalar lane) {
              return Pair{Choose(lane < 2.0, Expensive(x, 400, 1), x), x};
            }),
            0);
}

}  // namespace
}  // namespace tokamak
