#include "driver/report/counterfactuals.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

// Two kernels of 10 us with a launch of 1 us each, against one of 21 us: saving one launch pays
// once the rest of the time is about 20 times smaller.
TEST(CounterFacts, NameTheSizeAtWhichALaunchIsWorthIt) {
  EXPECT_EQ(WouldPayIf(20, 21, 1), "would fuse if its arrays were 2.5 times smaller");
  EXPECT_EQ(WouldPayIf(200, 300, 1), "would fuse if that took 104 us less");
}

TEST(CounterFacts, SayNothingOfWhatPays) {
  EXPECT_EQ(WouldPayIf(20, 10, 1), "");
}

TEST(CounterFacts, AreInMicrosecondsWhereNoSizeHelps) {
  EXPECT_EQ(WouldPayIf(20, 20, 0), "would fuse if that took 0.4 us less");
}

}  // namespace
}  // namespace tokamak
