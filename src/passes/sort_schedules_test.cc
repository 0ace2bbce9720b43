// Sorts and top-k with every schedule that fits them, compared with the interpreter: the kernels of
// the schedules in the kernel simulator, the instructions that others are rewritten to in the
// interpreter.

#include <random>

#include <gtest/gtest.h>

#include "gen/sort_schedule.h"
#include "gen/top_k_schedule.h"
#include "interp/interp.h"
#include "ir/builder.h"
#include "ir/clone.h"
#include "ir/infer.h"
#include "kernel/simulate.h"
#include "kernel/verify.h"
#include "passes/passes.h"
#include "passes/target/merge_sorts.h"
#include "passes/target/packed_key_sorts.h"
#include "passes/target/top_k.h"

namespace tokamak {
namespace {

constexpr Machine kOneSm{.kind = MachineKind::kGpu, .vector_bits = 128, .cores = 1, .tf32 = true};

class Draws {
 public:
  explicit Draws(uint32_t seed) : random_(seed) {}
  int64_t Below(int64_t end) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(end));
  }
  template <typename T>
  T Pick(std::initializer_list<T> from) {
    return from.begin()[Below(static_cast<int64_t>(from.size()))];
  }
  // Few distinct numbers, so that many are equal, and for floats some NaN, infinities and zeros.
  Literal Array(const Shape& shape) {
    std::vector<std::byte> bytes;
    for (int64_t i = 0; i < shape.ElementCount(); ++i) {
      double number = static_cast<double>(Below(40)) - (IsUnsigned(shape.type()) ? 0 : 20);
      if (IsReal(shape.type()) && Below(8) == 0)
        number = Pick({-0.0, std::numeric_limits<double>::quiet_NaN(),
                       std::numeric_limits<double>::infinity()});
      Literal one = shape.type() == ElementType::kPred ? Literal::ScalarInt(shape.type(), Below(2))
                                                       : Literal::Scalar(shape.type(), number);
      bytes.insert(bytes.end(), one.data().data(), one.data().data() + one.data().size());
    }
    return Literal::Array(shape, Bytes::FromVector(std::move(bytes)));
  }

 private:
  std::mt19937 random_;
};

ElementType DrawType(Draws& draws) {
  using enum ElementType;
  return draws.Pick({kF32, kF32, kBF16, kF64, kS8, kS32, kU16, kU32, kS64, kPred, kF16});
}

// The order that JAX asks for: zeros are equal, and so are NaNs, which come last.
Instr* Canonical(Builder& b, Instr* x) {
  Instr* zero = b.Scalar(x->shape().type(), 0);
  Instr* nan = b.Scalar(x->shape().type(), std::numeric_limits<double>::quiet_NaN());
  Instr* number = b.Select(b.Compare(x, zero, CompareDirection::kEq), zero, x);
  return b.Select(b.Compare(x, x, CompareDirection::kNe), nan, number);
}

Computation* DrawComparator(Module& module, Draws& draws, const std::vector<ElementType>& types) {
  Builder b(module, "less");
  std::vector<Instr*> parameters;
  for (ElementType type : types)
    for (int side = 0; side < 2; ++side) parameters.push_back(b.Parameter(Shape::Scalar(type)));
  CompareDirection direction = draws.Pick({CompareDirection::kLt, CompareDirection::kGt});
  bool canonical = draws.Below(3) == 0, computed = draws.Below(6) == 0;
  auto compare = [&](size_t k, CompareDirection how) {
    Instr *x = parameters[2 * k], *y = parameters[2 * k + 1];
    bool real = IsReal(types[k]);
    if (real && canonical) {
      x = Canonical(b, x);
      y = Canonical(b, y);
    }
    // Not of floats: the sign of NaN is not preserved.
    if (computed && IsSigned(types[k])) {
      x = b.Negate(x);
      y = b.Negate(y);
    }
    return b.Append(Op::kCompare, {x, y},
                    CompareAttrs{how, real ? CompareType::kTotalOrder : CompareType::kNone});
  };
  Instr* less = compare(0, direction);
  if (types.size() > 1 && draws.Below(3) == 0)
    less = b.Or(less, b.And(compare(0, CompareDirection::kEq), compare(1, direction)));
  Computation* done = b.FinishValid(less);
  done->is_public = false;
  return done;
}

struct Drawn {
  std::unique_ptr<Module> module = std::make_unique<Module>("drawn");
  std::vector<Literal> arguments;
  std::vector<Literal> expected;
};

std::vector<Literal> Interpreted(const Module& module, const std::vector<Literal>& arguments) {
  std::vector<Value> values;
  for (const Literal& argument : arguments) values.push_back(ValueFromLiteral(argument).value());
  Result<RunOutcome> outcome = Interpret(module, values);
  EXPECT_TRUE(outcome.ok()) << (outcome.ok() ? "" : outcome.error().message);
  std::vector<Literal> results;
  if (outcome.ok())
    for (const Value& result : outcome.value().results) results.push_back(LiteralFromValue(result));
  return results;
}

Drawn DrawSort(Draws& draws) {
  Drawn drawn;
  Dims dims;
  for (int64_t rank = 1 + draws.Below(3); rank > 0; --rank)
    dims.push_back(draws.Pick<int64_t>({1, 2, 3, 5}));
  auto along = static_cast<size_t>(draws.Below(static_cast<int64_t>(dims.size())));
  dims[along] = draws.Pick<int64_t>({2, 3, 7, 8, 16, 31, 100, 256, 600, 2100});
  std::vector<ElementType> types;
  for (int64_t count = draws.Pick<int64_t>({1, 1, 2, 2, 3}); count > 0; --count)
    types.push_back(DrawType(draws));
  Computation* less = DrawComparator(*drawn.module, draws, types);
  Builder b(*drawn.module, "main");
  std::vector<Instr*> operands;
  for (ElementType type : types) {
    Shape shape = Shape::Array(type, dims);
    bool counts = !operands.empty() && type == ElementType::kS32;
    operands.push_back(counts ? b.Iota(shape, static_cast<int64_t>(along)) : b.Parameter(shape));
    if (!counts) drawn.arguments.push_back(draws.Array(shape));
  }
  Instr* sort = b.Sort(operands, static_cast<int64_t>(along), true, less);
  drawn.module->set_entry(b.FinishValid(sort));
  drawn.expected = Interpreted(*drawn.module, drawn.arguments);
  return drawn;
}

// The first difference; empty if there is none. All NaNs are equal.
std::string DifferenceOf(const std::vector<Literal>& x, const std::vector<Literal>& y) {
  if (x.size() != y.size()) return "number of results";
  for (size_t k = 0; k < x.size(); ++k) {
    if (!(x[k].shape() == y[k].shape())) return "shape of result " + std::to_string(k);
    for (int64_t i = 0; i < x[k].shape().ElementCount(); ++i) {
      bool both_nan =
          IsReal(x[k].type()) && std::isnan(x[k].DoubleAt(i)) && std::isnan(y[k].DoubleAt(i));
      if (both_nan || x[k].BitsAt(i) == y[k].BitsAt(i)) continue;
      return std::string(HloName(x[k].type())) + " result " + std::to_string(k) + " at " +
             std::to_string(i) + ": " + std::to_string(x[k].DoubleAt(i)) + ", expected " +
             std::to_string(y[k].DoubleAt(i));
    }
  }
  return "";
}

// The results of the kernel of a region in the simulator.
std::vector<Literal> Simulated(const BuiltKernel& built, const Drawn& drawn) {
  std::vector<std::vector<std::byte>> arrays;
  std::vector<SimArgument> arguments;
  const std::vector<Instr*>& parameters = drawn.module->entry()->parameters();
  for (const KernelArgument& argument : built.arguments) {
    const Shape shape = ResultShapesOf(argument.instr->shape())[argument.result_index];
    std::vector<std::byte>& array = arrays.emplace_back(static_cast<size_t>(shape.ByteSize()));
    std::optional<Literal> value;
    for (size_t i = 0; i < parameters.size(); ++i)
      if (parameters[i] == argument.instr) value = drawn.arguments[i];
    if (argument.instr->op() == Op::kIota)
      value = LiteralFromValue(EvaluateInstr(*argument.instr, {}).value());
    if (value) std::copy_n(value->data().data(), array.size(), array.begin());
    arguments.push_back({array.data(), shape.ElementCount()});
  }
  Result<SimReport> report = SimulateKernel(built.kernel, arguments);
  EXPECT_TRUE(report.ok()) << (report.ok() ? "" : report.error().message);
  std::vector<Literal> results;
  for (size_t i = 0; i < arrays.size(); ++i)
    if (built.arguments[i].is_output)
      results.push_back(Literal::Array(
          ResultShapesOf(built.arguments[i].instr->shape())[built.arguments[i].result_index],
          Bytes::FromVector(std::move(arrays[i]))));
  return results;
}

void CheckKernels(const Drawn& drawn, const Machine& machine, int& checked) {
  const Instr& sort = *drawn.module->entry()->root();
  FusedRegion region{.computation = sort.parent(),
                     .instrs = {&sort},
                     .inputs = InputsOf({&sort}),
                     .roots = {&sort}};
  for (const SortSchedule& schedule : SortKernelSchedules(region, machine)) {
    SCOPED_TRACE(ToString(schedule));
    BuildOutcome outcome = BuildSort(region, schedule, machine, "k");
    ASSERT_TRUE(outcome.built) << outcome.why_not;
    ASSERT_TRUE(VerifyKernel(outcome.built->kernel).ok());
    EXPECT_EQ(DifferenceOf(Simulated(*outcome.built, drawn), drawn.expected), "");
    ++checked;
  }
}

TEST(SortSchedules, AllKernelsSortAlike) {
  int checked = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Draws draws(seed);
    Drawn drawn = DrawSort(draws);
    CheckKernels(drawn, Machine{}, checked);
    CheckKernels(drawn, kOneSm, checked);
  }
  EXPECT_GE(checked, 60);
}

TEST(SortSchedules, AllRewritesSortAlike) {
  int checked = 0;
  for (uint32_t seed = 0; seed < 12; ++seed) {
    Draws draws(seed);
    Drawn drawn = DrawSort(draws);
    for (const SortSchedule& schedule : SortSchedules(*drawn.module->entry()->root(), kOneSm)) {
      SCOPED_TRACE(std::to_string(seed) + ": " + ToString(schedule));
      std::unique_ptr<Module> module = CloneModule(*drawn.module);
      Instr& sort = *module->entry()->root();
      bool merges = schedule.method == SortMethod::kMerge && schedule.tile < SizeOf(sort).length;
      if (!schedule.packs_keys && !merges) continue;
      DecisionLog log;
      PassContext context(log, {}, {}, TargetOf(kOneSm));
      if (schedule.packs_keys) PackedKeySort(sort, schedule, context);
      if (merges) MergeSort(sort, schedule, context);
      ASSERT_TRUE(VerifyModule(*module).ok());
      EXPECT_EQ(DifferenceOf(Interpreted(*module, drawn.arguments), drawn.expected), "");
      ++checked;
    }
  }
  EXPECT_GE(checked, 10);
}

TEST(SortSchedules, AllTopKAreAlike) {
  int checked = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    Draws draws(seed);
    Drawn drawn;
    Builder b(*drawn.module, "main");
    // Wider elements do not fit into words with their indices.
    ElementType type = DrawType(draws);
    if (InfoOf(type).bits > 32) continue;
    Shape shape = Shape::Array(type, {1 + draws.Below(4), 20 + draws.Below(700)});
    TopKAttrs attrs{.k = 1 + draws.Below(9), .largest = draws.Below(2) == 0};
    Instr* top = b.Append(Op::kTopK, {b.Parameter(shape)}, attrs);
    drawn.module->set_entry(b.FinishValid(top));
    drawn.arguments.push_back(draws.Array(shape));
    drawn.expected = Interpreted(*drawn.module, drawn.arguments);
    TopKSize size{.words = {.length = shape.dim(1)}, .k = attrs.k};
    for (const TopKSchedule& schedule : TopKSchedules(size)) {
      SCOPED_TRACE(std::to_string(seed) + ": " + ToString(schedule));
      std::unique_ptr<Module> module = CloneModule(*drawn.module);
      DecisionLog log;
      PassContext context(log, {}, {}, TargetOf(kOneSm));
      LowerTopK(*module->entry()->root(), schedule, context);
      ASSERT_TRUE(VerifyModule(*module).ok());
      EXPECT_EQ(DifferenceOf(Interpreted(*module, drawn.arguments), drawn.expected), "");
      ++checked;
    }
  }
  EXPECT_GE(checked, 60);
}

// A second run finds the cheapest schedules in place.
TEST(SortSchedules, LegalizingTwiceChangesNothing) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Draws draws(seed);
    Drawn drawn = DrawSort(draws);
    for (const Machine& machine : {Machine{}, kOneSm, GpuMachine()}) {
      std::unique_ptr<Module> module = CloneModule(*drawn.module);
      DecisionLog log;
      PassContext context(log, {}, {}, TargetOf(machine));
      ASSERT_TRUE(LegalizeSorts(*module, context).ok());
      ASSERT_EQ(LegalizeSorts(*module, context).value(), Changed::kNo);
      EXPECT_EQ(DifferenceOf(Interpreted(*module, drawn.arguments), drawn.expected), "");
    }
  }
}

}  // namespace
}  // namespace tokamak
