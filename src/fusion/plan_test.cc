#include "fusion/plan.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "cost/rates.h"
#include "ir/builder.h"

namespace tokamak {
namespace {

Computation* SumIn(Module& module) {
  Builder b(module, "sum");
  Instr* x = b.Parameter(Shape::Array(ElementType::kF32, {}));
  Instr* y = b.Parameter(Shape::Array(ElementType::kF32, {}));
  return b.Finish(b.Add(x, y)).value();
}

// A matrix product whose rows are divided by their sums: one kernel, or several cheaper ones.
Computation* DividedRows(Module& module, int64_t rows, int64_t inner) {
  Computation* sum = SumIn(module);
  constexpr int64_t kColumns = 768;
  Builder b(module, "main");
  Instr* x = b.Parameter(Shape::Array(ElementType::kF32, {rows, inner}));
  Instr* w = b.Parameter(Shape::Array(ElementType::kF32, {inner, kColumns}));
  DotAttrs attrs;
  attrs.lhs_contracting = {1};
  attrs.rhs_contracting = {0};
  Instr* dot = b.Exp(b.Dot(x, w, attrs));
  Instr* zero = b.Scalar(ElementType::kF32, 0);
  Instr* sums = b.Reduce({dot}, {zero}, {1}, sum);
  return b.Finish(b.Divide(dot, b.Broadcast(sums, {rows, kColumns}, {0}))).value();
}

// Draws programs of values of one size, whose rows and columns are reduced and broadcast, and which
// are transposed and multiplied.
class ProgramDrawer {
 public:
  explicit ProgramDrawer(uint64_t seed) : random_(seed) {}

  Computation* Draw(Module& module) {
    sum_ = SumIn(module);
    Builder b(module, "main");
    rows_ = columns_ = Size();
    if (Below(2) == 0) columns_ = Size();
    std::vector<Instr*> values;
    for (int i = 0; i < 2; ++i)
      values.push_back(b.Parameter(Shape::Array(ElementType::kF32, {rows_, columns_})));
    for (uint64_t count = 2 + Below(10); count > 0; --count) values.push_back(Next(b, values));
    std::vector<Instr*> results = {values.back()};
    for (Instr* value : values)
      if (value->users().empty() && value != values.back() && value->op() != Op::kParameter)
        results.push_back(value);
    return b.Finish(b.Tuple(results)).value();
  }

 private:
  uint64_t Below(uint64_t n) { return random_() % n; }
  // From a few elements to more than a cache holds.
  int64_t Size() { return 1 + static_cast<int64_t>(Below(uint64_t{4} << Below(11))); }

  // Values read recently are read more often.
  Instr* Read(const std::vector<Instr*>& values) {
    return values[values.size() - 1 - std::min(Below(values.size()), Below(values.size()))];
  }

  Instr* Next(Builder& b, const std::vector<Instr*>& values) {
    Instr* x = Read(values);
    Instr* zero = b.Scalar(ElementType::kF32, 0);
    switch (Below(8)) {
      case 0:
        return b.Exp(x);
      case 1:
        return b.Multiply(x, b.Broadcast(b.Reduce({x}, {zero}, {1}, sum_), {rows_, columns_}, {0}));
      case 2:
        return b.Add(x, b.Broadcast(b.Reduce({x}, {zero}, {0}, sum_), {rows_, columns_}, {1}));
      case 3:
        if (rows_ == columns_) return b.Transpose(x, {1, 0});
        return b.Reverse(x, {0});
      case 4: {
        if (rows_ != columns_) return b.Tanh(x);
        DotAttrs attrs;
        attrs.lhs_contracting = {1};
        attrs.rhs_contracting = {0};
        return b.Dot(x, Read(values), attrs);
      }
      case 5:
        return b.Divide(x, Read(values));
      default:
        return b.Add(x, Read(values));
    }
  }

  std::mt19937_64 random_;
  Computation* sum_ = nullptr;
  int64_t rows_ = 0, columns_ = 0;
};

// A machine with measured rates, as far as the planner can tell.
struct MeasuredMachine {
  Machine machine;
  Rates rates;

  explicit MeasuredMachine(const Machine& of) : machine(of), rates(DefaultRates(of.kind)) {
    rates.is_default = false;
    machine.rates = &rates;
  }
};

void ExpectNoCostlierThanStarts(const PlanningStats& stats) {
  constexpr double kRounding = 1e-9;
  EXPECT_LE(stats.chosen_us, stats.baseline_us * (1 + kRounding));
  EXPECT_LE(stats.chosen_us, stats.greedy_us * (1 + kRounding));
  EXPECT_LE(stats.chosen_us, stats.unfused_us * (1 + kRounding));
}

TEST(Plan, SearchNeverCostsMoreThanItsStart) {
  MeasuredMachine cpu{Machine{}};
  for (int64_t rows : {64, 512, 4096})
    for (int64_t inner : {32, 64, 256, 1024}) {
      Module module("m");
      DecisionLog log;
      ExpectNoCostlierThanStarts(
          PlanComputation(*DividedRows(module, rows, inner), cpu.machine, {}, log).stats);
    }
}

TEST(Plan, SearchNeverCostsMoreThanItsStartInRandomPrograms) {
  constexpr uint64_t kPrograms = 300;
  for (const Machine& kind : {Machine{.vector_bits = 256, .cores = 16}, GpuMachine()}) {
    MeasuredMachine measured(kind);
    for (uint64_t seed = 0; seed < kPrograms; ++seed) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " GPU " << kind.is_gpu());
      Module module("m");
      DecisionLog log;
      PlanOptions options;
      if (kind.is_gpu()) options.horizontal = HorizontalMode::kAuto;
      ExpectNoCostlierThanStarts(
          PlanComputation(*ProgramDrawer(seed).Draw(module), measured.machine, options, log).stats);
    }
  }
}

}  // namespace
}  // namespace tokamak
