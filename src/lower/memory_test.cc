#include "lower/memory.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

// A step that reads some values and writes others.
void Step(MemoryPlan& plan, std::vector<MemoryValue> reads, std::vector<MemoryValue> writes) {
  plan.Tick();
  for (MemoryValue value : reads) plan.Use(value);
  for (MemoryValue value : writes) plan.Define(value);
}

void Copy(MemoryPlan& plan, MemoryValue to, MemoryValue from) {
  Step(plan, {from}, {to});
  plan.AddCopy(to, from);
}

TEST(MemoryPlan, FreedBytesAreReused) {
  MemoryPlan plan;
  MemoryValue a = plan.New(100), b = plan.New(100), c = plan.New(100);
  Step(plan, {}, {a});
  Step(plan, {a}, {b});
  Step(plan, {b}, {c});
  Step(plan, {c}, {});
  plan.Assign();
  EXPECT_EQ(plan.Check(), "");
  EXPECT_FALSE(plan.SameMemory(a, b));
  EXPECT_TRUE(plan.SameMemory(a, c));
  EXPECT_EQ(plan.arena_bytes(), 256);
}

// The remainder of a free range follows the allocated bytes.
TEST(MemoryPlan, TheRestOfAFreeRangeIsUsedToo) {
  MemoryPlan plan;
  MemoryValue large = plan.New(256), small = plan.New(64), rest = plan.New(192);
  Step(plan, {}, {large});
  Step(plan, {large}, {});
  Step(plan, {}, {small});
  Step(plan, {small}, {rest});
  Step(plan, {small, rest}, {});
  plan.Assign();
  EXPECT_EQ(plan.Check(), "");
  EXPECT_EQ(plan.SliceOf(small).offset, 0);
  EXPECT_EQ(plan.SliceOf(rest).offset, 64);
  EXPECT_EQ(plan.arena_bytes(), 256);
}

TEST(MemoryPlan, ADonatedInputSharesTheResultsMemory) {
  MemoryPlan plan;
  MemoryValue a = plan.New(64), b = plan.New(64), c = plan.New(64), d = plan.New(64);
  Step(plan, {}, {a, d});
  Step(plan, {a, d}, {b});
  plan.MayAlias(b, a);
  Step(plan, {b, d}, {c});
  plan.MayAlias(c, b);
  plan.MayAlias(c, d);  // one of them only
  EXPECT_TRUE(plan.AssignToResult(c, 5, kNoMemory));
  plan.Assign();
  EXPECT_EQ(plan.Check(), "");
  EXPECT_NE(plan.SameMemory(c, b), plan.SameMemory(c, d));
  EXPECT_EQ(plan.SameMemory(c, b), plan.SameMemory(c, a));
}

TEST(MemoryPlan, InPlaceOnlyWhereTheInputIsDead) {
  MemoryPlan plan;
  MemoryValue a = plan.New(64), b = plan.New(64), c = plan.New(64);
  Step(plan, {}, {a});
  Step(plan, {a}, {b});
  plan.MayAlias(b, a);
  Step(plan, {b}, {c});
  plan.MayAlias(c, b);
  Step(plan, {b, c}, {});
  plan.Assign();
  EXPECT_EQ(plan.Check(), "");
  EXPECT_TRUE(plan.SameMemory(a, b));
  EXPECT_FALSE(plan.SameMemory(b, c));
}

// Horizontally fused kernels: an input of several kernels is live beyond the definition of the
// results.
TEST(MemoryPlan, NotInPlaceWhereAnotherKernelReads) {
  MemoryPlan plan;
  MemoryValue a = plan.New(64), b = plan.New(64), c = plan.New(64), d = plan.New(64);
  MemoryValue carry = plan.New(64), next = plan.New(64);
  Step(plan, {}, {a, b, carry});
  Step(plan, {a, b, carry}, {c, d, next});
  plan.MayAlias(c, a);
  plan.MayAlias(d, b);
  plan.MayAlias(next, carry);
  Step(plan, {a, carry}, {});
  EXPECT_FALSE(plan.JoinCarry(carry, next));
  Step(plan, {c, d, next}, {});
  plan.Assign();
  EXPECT_EQ(plan.Check(), "");
  EXPECT_FALSE(plan.SameMemory(c, a));
  EXPECT_TRUE(plan.SameMemory(d, b));
  EXPECT_FALSE(plan.SameMemory(next, carry));
}

TEST(MemoryPlan, CopyOfWhatIsReadNoMoreIsNone) {
  MemoryPlan plan;
  MemoryValue a = plan.New(64), b = plan.New(64), c = plan.New(64);
  Step(plan, {}, {a});
  Copy(plan, b, a);
  Copy(plan, c, b);
  Step(plan, {b, c}, {});
  plan.Assign();
  EXPECT_EQ(plan.Check(), "");
  EXPECT_TRUE(plan.SameMemory(a, b));
  EXPECT_FALSE(plan.SameMemory(b, c));
}

TEST(MemoryPlan, LoopInputsLiveThroughTheLoop) {
  MemoryPlan plan;
  MemoryValue outside = plan.New(64), first = plan.New(64), second = plan.New(64);
  Step(plan, {}, {outside});
  int64_t begin = plan.Tick();
  size_t mark = plan.BeginLoop();
  Step(plan, {outside}, {first});
  Step(plan, {first}, {second});
  Step(plan, {second}, {});
  plan.Tick();
  plan.EndLoop(mark, begin);
  plan.Assign();
  EXPECT_EQ(plan.Check(), "");
  EXPECT_FALSE(plan.SameMemory(outside, second));
}

TEST(MemoryPlan, ACarryIsOverwrittenOnceItIsDead) {
  MemoryPlan plan;
  MemoryValue carry = plan.New(64), other = plan.New(64), next = plan.New(64);
  Step(plan, {}, {carry, other});
  Step(plan, {carry}, {next});
  EXPECT_FALSE(plan.JoinCarry(carry, next));  // read and written by one step
  plan.MayAlias(next, carry);
  EXPECT_TRUE(plan.JoinCarry(carry, next));
  EXPECT_FALSE(plan.JoinCarry(other, carry));
}

TEST(MemoryPlan, AResultIsNotWrittenIntoADonorThatIsStillRead) {
  MemoryPlan plan;
  MemoryValue donor = plan.NewFixed(64, 1), early = plan.New(64), late = plan.New(64);
  Step(plan, {}, {early});
  Step(plan, {donor, early}, {});
  Step(plan, {}, {late});
  EXPECT_FALSE(plan.AssignToResult(early, 2, donor));
  EXPECT_TRUE(plan.AssignToResult(late, 2, donor));
  EXPECT_EQ(plan.SliceOf(late).memory, 2);
}

TEST(MemoryPlan, ACopyIntoAResultDoesNotReachBackOverItsDonor) {
  MemoryPlan plan;
  MemoryValue donor = plan.NewFixed(64, 1), source = plan.New(64), result = plan.New(64);
  Step(plan, {}, {source});
  Step(plan, {donor}, {});
  Copy(plan, result, source);
  EXPECT_TRUE(plan.AssignToResult(result, 2, donor));
  plan.Assign();
  EXPECT_FALSE(plan.SameMemory(source, result));
}

}  // namespace
}  // namespace tokamak
