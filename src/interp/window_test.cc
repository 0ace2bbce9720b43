#include "interp/window.h"

#include <vector>

#include <gtest/gtest.h>

namespace tokamak {
namespace {

// Finds every pair (output, input) that a tap connects by exhaustive search.
void Compare(const WindowDim& window, int64_t input) {
  const int64_t output = WindowedSize(window, input);
  for (int64_t tap = 0; tap < window.size; ++tap) {
    std::vector<std::pair<int64_t, int64_t>> expected, got;
    for (int64_t o = 0; o < output; ++o) {
      int64_t position = o * window.stride + tap * window.window_dilation - window.pad_low;
      if (position < 0 || position % window.base_dilation != 0) continue;
      int64_t i = position / window.base_dilation;
      if (i < input) expected.emplace_back(o, i);
    }
    TapOverlap overlap = OverlapOf(window, tap, input, output);
    for (int64_t k = 0; k < overlap.count; ++k)
      got.emplace_back(overlap.first_out + k * overlap.step_out,
                       overlap.first_in + k * overlap.step_in);
    auto [first, limit] = TapsInside(window, input, output);
    EXPECT_TRUE(expected.empty() || (tap >= first && tap < limit));
    EXPECT_EQ(got, expected) << "tap " << tap << " stride " << window.stride << " base "
                             << window.base_dilation << " low " << window.pad_low;
  }
}

TEST(Window, OverlapAgreesWithTrying) {
  for (int64_t input : {0, 1, 5})
    for (int64_t stride : {1, 2, 3})
      for (int64_t base : {1, 2, 3, 4})
        for (int64_t dilation : {1, 2})
          for (int64_t low : {-3, -1, 0, 2, 7})
            for (int64_t high : {-1, 0, 4})
              Compare(WindowDim{3, stride, low, high, base, dilation, false}, input);
}

}  // namespace
}  // namespace tokamak
