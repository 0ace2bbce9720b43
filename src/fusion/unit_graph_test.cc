#include "fusion/unit_graph.h"

#include <gtest/gtest.h>

#include "ir/builder.h"

namespace tokamak {
namespace {

// Sums of values computed from x in several steps, one kernel each.
struct Steps {
  Module module{"m"};
  Computation* sum = MakeSum();
  Builder b{module, "main"};
  Instr* x = b.Parameter(Shape::Array(ElementType::kF32, {1024}));
  Instr* zero = b.Parameter(Shape::Array(ElementType::kF32, {}));

  Computation* MakeSum() {
    Builder of_two(module, "sum");
    Instr* one = of_two.Parameter(Shape::Array(ElementType::kF32, {}));
    Instr* other = of_two.Parameter(Shape::Array(ElementType::kF32, {}));
    return of_two.Finish(of_two.Add(one, other)).value();
  }

  Instr* Sum(Instr* of) { return b.Reduce({of}, {zero}, {0}, sum); }

  int64_t PeakOf(Instr* root) {
    EXPECT_TRUE(b.Finish(root).ok());
    DecisionLog log;
    PlanOptions options;
    options.mode = FusionMode::kNone;
    ComputationPlan plan = PlanComputation(*x->parent(), Machine(), options, log);
    UnitGraph graph(plan);
    return graph.MemoryOf(graph.ScheduleOf(std::vector<int>(plan.kernels.size(), -1))).peak_bytes;
  }
};

// An output that reuses the buffer of a dead input takes no extra bytes.
TEST(UnitGraph, InPlaceOutputsCountOnce) {
  Steps s;
  EXPECT_EQ(s.PeakOf(s.Sum(s.b.Exp(s.b.Tanh(s.b.Negate(s.x))))), 4096);
}

TEST(UnitGraph, BytesOfWhatIsStillReadCount) {
  Steps s;
  Instr* first = s.b.Negate(s.x);
  Instr* last = s.b.Exp(s.b.Tanh(first));
  EXPECT_EQ(s.PeakOf(s.Sum(s.b.Multiply(first, last))), 8192);
}

}  // namespace
}  // namespace tokamak
