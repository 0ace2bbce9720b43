#include "lower/alternate.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

RunStep CopyOf(BufferSlice to, BufferSlice from) {
  return {.kind = StepKind::kCopy, .slices = {to, from}, .bytes = 64};
}

// Odd iterations use the swapped buffers: in the body, in the condition, and for the condition's
// value.
TEST(AlternateLoops, OddIterationsSwapBuffers) {
  BufferSlice carry{0, 0}, next{0, 64}, other{0, 128};
  RunStep loop{.kind = StepKind::kWhile, .slices = {carry}};
  loop.blocks = {
      {CopyOf(other, carry)}, {CopyOf(next, carry), CopyOf(other, next)}, {CopyOf(carry, next)}};
  std::vector<RunStep> steps = {loop};
  AlternateLoops(steps);
  const RunStep& made = steps[0];
  ASSERT_EQ(made.slices.size(), 2u);
  EXPECT_EQ(made.slices[0], carry);
  EXPECT_EQ(made.slices[1], next);
  ASSERT_EQ(made.blocks.size(), 5u);
  EXPECT_EQ(made.blocks[0][0].slices, (std::vector<BufferSlice>{other, carry}));
  EXPECT_EQ(made.blocks[3][0].slices, (std::vector<BufferSlice>{other, next}));
  EXPECT_EQ(made.blocks[4][0].slices, (std::vector<BufferSlice>{carry, next}));
  EXPECT_EQ(made.blocks[4][1].slices, (std::vector<BufferSlice>{other, carry}));
}

// Loops without closing copies are not changed.
TEST(AlternateLoops, OthersStay) {
  RunStep loop{.kind = StepKind::kWhile, .slices = {BufferSlice{0, 0}}};
  loop.blocks = {{}, {CopyOf({0, 0}, {0, 64})}, {}};
  std::vector<RunStep> steps = {loop};
  AlternateLoops(steps);
  EXPECT_EQ(steps[0].slices.size(), 1u);
  EXPECT_EQ(steps[0].blocks.size(), 3u);
}

}  // namespace
}  // namespace tokamak
