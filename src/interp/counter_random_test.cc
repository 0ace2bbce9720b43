#include "interp/counter_random.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

// Known-answer vectors of the Random123 library.
TEST(CounterRandom, ThreeFry) {
  EXPECT_EQ(ThreeFry2x32({0, 0}, {0, 0}), (std::array<uint32_t, 2>{0x6b200159, 0x99ba4efe}));
  EXPECT_EQ(ThreeFry2x32({~0u, ~0u}, {~0u, ~0u}),
            (std::array<uint32_t, 2>{0x1cb996fc, 0xbb002be7}));
}

TEST(CounterRandom, Philox) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

}  // namespace
}  // namespace tokamak
