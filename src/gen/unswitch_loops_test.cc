#include "gen/unswitch_loops.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include <gtest/gtest.h>

#include "kernel/builder.h"
#include "kernel/simulate.h"
#include "kernel/uniform_values.h"
#include "kernel/verify.h"

namespace tokamak {
namespace {

constexpr ScalarType kUnswitchType = ScalarType::kF32;
constexpr int64_t kUnswitchCount = 64, kUnswitchLanes = 16, kFlags = 3;
const Machine kUnswitchMachine{.kind = MachineKind::kCpu, .vector_bits = 512, .cores = 1};

Scalar LongChain(Scalar x, int steps) {
  for (int i = 0; i < steps; ++i) x = Fma(x, x.Like(0.5), x.Like(1));
  return x;
}

// What a loop body may use: an element, the flags (numbers, 0 or 1), the indices.
struct Inputs {
  Scalar x, g, l;
  std::array<Scalar, kFlags> flags;
  Scalar On(size_t i) const { return flags[i] < 0.5; }
};

// y as a function of one element of x: a grid of vector loops.
template <typename Body>
Kernel VectorLoops(Body body) {
  KernelBuilder b("k", Dialect::kCpu);
  ArrayId x = b.Argument(
      {.name = "x", .type = kUnswitchType, .access = Access::kRead, .size = kUnswitchCount});
  ArrayId flags =
      b.Argument({.name = "flags", .type = kUnswitchType, .access = Access::kRead, .size = kFlags});
  ArrayId y = b.Argument(
      {.name = "y", .type = kUnswitchType, .access = Access::kWrite, .size = kUnswitchCount});
  b.For("g", LoopRole::kGrid, b.Index(kUnswitchCount / kUnswitchLanes), [&](Scalar g) {
    b.For("l", LoopRole::kVector, b.Index(kUnswitchLanes), [&](Scalar l) {
      Scalar at = g * b.Index(kUnswitchLanes) + l;
      Inputs in{b.Load(x, at),
                g,
                l,
                {b.Load(flags, b.Index(0)), b.Load(flags, b.Index(1)), b.Load(flags, b.Index(2))}};
      b.Store(y, at, body(b, in));
    });
  });
  return b.Finish();
}

// The results for all settings of the flags.
std::vector<float> ResultsForAllFlags(const Kernel& kernel) {
  Status verified = VerifyKernel(kernel);
  EXPECT_TRUE(verified.ok()) << verified.error().message;
  std::vector<float> x(kUnswitchCount), all;
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) - 3;
  for (unsigned setting = 0; setting < 1u << kFlags; ++setting) {
    std::vector<float> flags, y(kUnswitchCount);
    for (unsigned i = 0; i < kFlags; ++i) flags.push_back((setting >> i & 1) != 0 ? 0.0f : 1.0f);
    SimArgument arguments[] = {
        {x.data(), kUnswitchCount}, {flags.data(), kFlags}, {y.data(), kUnswitchCount}};
    Result<SimReport> report = SimulateKernel(kernel, arguments);
    EXPECT_TRUE(report.ok()) << report.error().message;
    all.insert(all.end(), y.begin(), y.end());
  }
  return all;
}

void FindBranches(const StmtList& block, std::vector<const Stmt*>& found) {
  for (const Stmt& stmt : block) {
    if (stmt.kind == StmtKind::kIf) found.push_back(&stmt);
    for (const StmtList* inner : {&stmt.condition_stmts, &stmt.body, &stmt.else_body})
      FindBranches(*inner, found);
  }
}

// The multiply-adds that the stores of a block use.
int64_t MultiplyAdds(const Kernel& kernel, const StmtList& block) {
  std::vector<ValueId> open;
  auto collect = [&](const StmtList& stmts, auto& self) -> void {
    for (const Stmt& stmt : stmts) {
      if (stmt.kind == StmtKind::kStore) open.push_back(stmt.value);
      for (const StmtList* inner : {&stmt.body, &stmt.else_body}) self(*inner, self);
    }
  };
  collect(block, collect);
  std::unordered_set<ValueId> seen;
  int64_t count = 0;
  while (!open.empty()) {
    ValueId id = open.back();
    open.pop_back();
    if (!seen.insert(id).second) continue;
    if (kernel.node(id).prim == Prim::kFma) ++count;
    for (ValueId operand : kernel.operands(id)) open.push_back(operand);
  }
  return count;
}

// Unswitches the loops, and compares the values for all settings of the flags.
template <typename Body>
Kernel Unswitched(Body body) {
  Kernel kernel = VectorLoops(body);
  std::vector<float> before = ResultsForAllFlags(kernel);
  UnswitchLoops(kernel, kUnswitchMachine);
  EXPECT_EQ(ResultsForAllFlags(kernel), before);
  return kernel;
}

std::vector<const Stmt*> BranchesIn(const Kernel& kernel) {
  std::vector<const Stmt*> branches;
  FindBranches(kernel.body, branches);
  UniformValues uniform(kernel);
  for (const Stmt* branch : branches) {
    EXPECT_TRUE(uniform(branch->condition));
  }
  return branches;
}

// The loop of each setting has only the work of that setting.
TEST(UnswitchLoops, SelectOfAUniformFlag) {
  Kernel kernel = Unswitched([](KernelBuilder&, const Inputs& in) {
    return Choose(in.On(0), LongChain(in.x, 100), in.x * in.x);
  });
  std::vector<const Stmt*> branches = BranchesIn(kernel);
  ASSERT_EQ(branches.size(), 1u);
  EXPECT_EQ(MultiplyAdds(kernel, branches[0]->body), 100);
  EXPECT_EQ(MultiplyAdds(kernel, branches[0]->else_body), 0);
}

// A flag that decides `and` with false, and `or` with true.
TEST(UnswitchLoops, FlagThatDecidesAComparison) {
  Kernel both = Unswitched([](KernelBuilder&, const Inputs& in) {
    return Choose(in.On(0) & (LongChain(in.x, 100) < 2.5), in.x + 1.0, in.x);
  });
  ASSERT_EQ(BranchesIn(both).size(), 1u);
  EXPECT_EQ(MultiplyAdds(both, BranchesIn(both)[0]->body), 100);
  EXPECT_EQ(MultiplyAdds(both, BranchesIn(both)[0]->else_body), 0);
  Kernel either = Unswitched([](KernelBuilder&, const Inputs& in) {
    return Choose(in.On(0) | (LongChain(in.x, 100) < 2.5), in.x + 1.0, in.x);
  });
  ASSERT_EQ(BranchesIn(either).size(), 1u);
  EXPECT_EQ(MultiplyAdds(either, BranchesIn(either)[0]->body), 0);
  EXPECT_EQ(MultiplyAdds(either, BranchesIn(either)[0]->else_body), 100);
}

// The loop's lanes, or the grid's blocks, take different sides.
TEST(UnswitchLoops, DivergentConditionsStay) {
  Kernel by_value = Unswitched([](KernelBuilder&, const Inputs& in) {
    return Choose(in.x < 0.0, LongChain(in.x, 400), in.x);
  });
  EXPECT_EQ(BranchesIn(by_value).size(), 0u);
  Kernel by_lane = Unswitched([](KernelBuilder& b, const Inputs& in) {
    return Choose(in.l < b.Index(5), LongChain(in.x, 400), in.x);
  });
  EXPECT_EQ(BranchesIn(by_lane).size(), 0u);
  Kernel by_block = Unswitched([](KernelBuilder& b, const Inputs& in) {
    return Choose(in.g < b.Index(2), LongChain(in.x, 400), in.x);
  });
  EXPECT_EQ(BranchesIn(by_block).size(), 0u);
}

// A uniform flag joined with a divergent condition: only the flag is a branch.
TEST(UnswitchLoops, OnlyTheUniformPartOfACondition) {
  Kernel kernel = Unswitched([](KernelBuilder&, const Inputs& in) {
    return Choose(in.On(1) & (in.x < 0.0), LongChain(in.x, 400), in.x);
  });
  ASSERT_EQ(BranchesIn(kernel).size(), 1u);
  EXPECT_EQ(MultiplyAdds(kernel, BranchesIn(kernel)[0]->else_body), 0);
}

TEST(UnswitchLoops, CheapWorkStays) {
  Kernel kernel = Unswitched(
      [](KernelBuilder&, const Inputs& in) { return Choose(in.On(0), LongChain(in.x, 2), in.x); });
  EXPECT_EQ(BranchesIn(kernel).size(), 0u);
}

// The saving is a small fraction of the loop.
TEST(UnswitchLoops, ASmallFractionStays) {
  Kernel kernel = Unswitched([](KernelBuilder&, const Inputs& in) {
    return LongChain(in.x, 1000) + Choose(in.On(0), LongChain(in.x * in.x, 100), in.x);
  });
  EXPECT_EQ(BranchesIn(kernel).size(), 0u);
}

// Both settings need the expensive value.
TEST(UnswitchLoops, WorkOfBothSettingsStays) {
  Kernel kernel = Unswitched([](KernelBuilder&, const Inputs& in) {
    Scalar expensive = LongChain(in.x, 400);
    return Choose(in.On(0), expensive, expensive * 2.0);
  });
  EXPECT_EQ(BranchesIn(kernel).size(), 0u);
}

// Two numbers are rarely equal, so a saving in that case does not count.
TEST(UnswitchLoops, EqualNumbersAreUnlikely) {
  Kernel saves_if_equal = Unswitched([](KernelBuilder&, const Inputs& in) {
    return Choose(in.flags[0] == 0.0, in.x, LongChain(in.x, 400));
  });
  EXPECT_EQ(BranchesIn(saves_if_equal).size(), 0u);
  Kernel saves_otherwise = Unswitched([](KernelBuilder&, const Inputs& in) {
    return Choose(in.flags[0] == 0.0, LongChain(in.x, 400), in.x);
  });
  EXPECT_EQ(BranchesIn(saves_otherwise).size(), 1u);
}

// Each setting of the first flag gets loops for both settings of the second.
TEST(UnswitchLoops, FlagsNest) {
  Kernel kernel = Unswitched([](KernelBuilder&, const Inputs& in) {
    return Choose(in.On(0), LongChain(in.x, 200), in.x) +
           Choose(in.On(1), LongChain(in.x * in.x, 200), in.x);
  });
  std::vector<const Stmt*> branches = BranchesIn(kernel);
  ASSERT_EQ(branches.size(), 3u);
  std::vector<int64_t> work;
  for (const Stmt* branch : branches)
    for (const StmtList* side : {&branch->body, &branch->else_body})
      if (side->front().kind != StmtKind::kIf) work.push_back(MultiplyAdds(kernel, *side));
  std::ranges::sort(work);
  EXPECT_EQ(work, (std::vector<int64_t>{0, 200, 200, 400}));
}

// Three flags would take eight loops; the number of branches is limited.
TEST(UnswitchLoops, FewLoops) {
  Kernel kernel = Unswitched([](KernelBuilder&, const Inputs& in) {
    return Choose(in.On(0), LongChain(in.x, 200), in.x) +
           Choose(in.On(1), LongChain(in.x * in.x, 200), in.x) +
           Choose(in.On(2), LongChain(in.x + 1.0, 200), in.x);
  });
  EXPECT_EQ(BranchesIn(kernel).size(), 4u);
}

}  // namespace
}  // namespace tokamak
