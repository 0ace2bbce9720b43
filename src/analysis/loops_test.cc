#include "analysis/loops.h"

#include <gtest/gtest.h>

#include "ir/builder.h"
#include "ir/compare_direction.h"

namespace tokamak {
namespace {

int64_t Wrapped(ElementType type, int64_t x) {
  return type == ElementType::kS8 ? static_cast<int8_t>(x) : static_cast<uint8_t>(x);
}

// Trip count by execution; nullopt after 256 iterations, when every 8-bit value has occurred.

std::optional<uint64_t> RunIt(ElementType type, int64_t x, int64_t step, int64_t limit,
                              CompareDirection direction) {
  for (uint64_t count = 0; count <= 256; ++count, x = Wrapped(type, x + step))
    if (!Holds(x, direction, limit)) return count;
  return std::nullopt;
}

// CountTrips agrees with execution. It always decides equality comparisons, and order comparisons
// if nothing overflows.
TEST(CountTrips, MatchesExecution) {
  size_t known = 0, all = 0;
  for (ElementType type : {ElementType::kS8, ElementType::kU8}) {
    int64_t least = type == ElementType::kS8 ? -128 : 0;
    for (int64_t start = least; start < least + 256; start += 3)
      for (int64_t limit = least; limit < least + 256; ++limit)
        for (int64_t step : {0, 1, 2, 3, 4, 7, 64, 100, 127, -1, -2, -5, -128})
          for (int d = 0; d < 6; ++d) {
            auto direction = static_cast<CompareDirection>(d);
            auto real = RunIt(type, start, step, limit, direction);
            auto output = CountTrips(type, start, Wrapped(type, step), limit, direction);
            ++all;
            if (output) {
              ++known;
              ASSERT_EQ(output, real) << start << " " << step << " " << limit << " " << d;
            } else if (d < 2) {
              ASSERT_FALSE(real) << start << " " << step << " " << limit << " " << d;
            }
          }
  }
  EXPECT_GT(known, all / 2);
}

TEST(CountTrips, OfSixtyFourBits) {
  EXPECT_EQ(CountTrips(ElementType::kS64, INT64_MIN, 1, INT64_MAX, CompareDirection::kLt),
            UINT64_MAX);
  EXPECT_EQ(CountTrips(ElementType::kS64, INT64_MIN, 1, INT64_MAX, CompareDirection::kLe),
            std::nullopt);
  EXPECT_EQ(CountTrips(ElementType::kU64, 0, 1, -1, CompareDirection::kLt), UINT64_MAX);
  EXPECT_EQ(CountTrips(ElementType::kU64, 5, -1, 0, CompareDirection::kGt), 5u);
  EXPECT_EQ(CountTrips(ElementType::kU64, 0, 2, 7, CompareDirection::kNe), std::nullopt);
}

TEST(Loop, FactsOfAScan) {
  Module module("m");
  Shape scalar = Shape::Scalar(ElementType::kS32), array = Shape::Array(ElementType::kF32, {8, 4});
  Builder cond(module, "cond");
  Instr* i = cond.Parameter(scalar);
  cond.Parameter(array);
  cond.Parameter(array);
  Computation* until =
      cond.Finish(cond.Compare(cond.Scalar(ElementType::kS32, 8), i, CompareDirection::kGt))
          .value();
  Builder b(module, "body");
  i = b.Parameter(scalar);
  Instr *xs = b.Parameter(array), *ys = b.Parameter(array);
  Instr* zero = b.Scalar(ElementType::kS32, 0);
  Instr* x = b.DynamicSlice(xs, {i, zero}, {1, 4});
  Instr* next = b.DynamicUpdateSlice(ys, b.Tanh(x), {i, zero});
  Computation* body =
      b.Finish(b.Tuple({b.Add(b.Scalar(ElementType::kS32, 2), i), xs, next})).value();
  Builder m(module, "main");
  Instr* in = m.Parameter(array);
  Instr* loop = m.While(until, body, {m.Scalar(ElementType::kS32, 0), in, in});
  module.set_entry(m.Finish(loop).value());

  std::optional<WhileLoop> found = LoopOf(loop);
  ASSERT_TRUE(found);
  EXPECT_EQ(TripCount(*found), 4u);
  EXPECT_TRUE(found->IsInvariant(1));
  ASSERT_TRUE(InductionOf(*found, 0));
  EXPECT_EQ(ValueAfter(*InductionOf(*found, 0), 4), 8);
  std::vector<ScanAccess> accesses = ScanAccesses(*found);
  ASSERT_EQ(accesses.size(), 2u);
  EXPECT_FALSE(accesses[0].is_write);
  EXPECT_TRUE(accesses[1].is_write);
  EXPECT_EQ(accesses[1].dimension, 0);
  EXPECT_FALSE(LoopOf(in));
}

}  // namespace
}  // namespace tokamak
