#include "lower/alternate.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

RunStep CopyOf(Place to, Place from) {
  return {.kind = StepKind::kCopy, .places = {to, from}, .bytes = 64};
}

// Odd rounds read and write what even ones have exchanged: in the body, in the condition, and where
// the condition's value is looked for.
TEST(AlternateLoops, OddRoundsHaveTheOtherPlaces) {
  Place carry{0, 0}, next{0, 64}, other{0, 128};
  RunStep loop{.kind = StepKind::kWhile, .places = {carry}};
  loop.blocks = {
      {CopyOf(other, carry)}, {CopyOf(next, carry), CopyOf(other, next)}, {CopyOf(carry, next)}};
  std::vector<RunStep> steps = {loop};
  AlternateLoops(steps);
  const RunStep& made = steps[0];
  ASSERT_EQ(made.places.size(), 2u);
  EXPECT_EQ(made.places[0], carry);
  EXPECT_EQ(made.places[1], next);
  ASSERT_EQ(made.blocks.size(), 5u);
  EXPECT_EQ(made.blocks[0][0].places, (std::vector<Place>{other, carry}));
  EXPECT_EQ(made.blocks[3][0].places, (std::vector<Place>{other, next}));
  EXPECT_EQ(made.blocks[4][0].places, (std::vector<Place>{carry, next}));
  EXPECT_EQ(made.blocks[4][1].places, (std::vector<Place>{other, carry}));
}

// What needs no copies at the end of its rounds stays as it is.
TEST(AlternateLoops, OthersStay) {
  RunStep loop{.kind = StepKind::kWhile, .places = {Place{0, 0}}};
  loop.blocks = {{}, {CopyOf({0, 0}, {0, 64})}, {}};
  std::vector<RunStep> steps = {loop};
  AlternateLoops(steps);
  EXPECT_EQ(steps[0].places.size(), 1u);
  EXPECT_EQ(steps[0].blocks.size(), 3u);
}

}  // namespace
}  // namespace tokamak
