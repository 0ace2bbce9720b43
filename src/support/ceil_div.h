#pragma once

#include <cstdint>

namespace tokamak {

// x / y rounded up, for x >= 0 and y > 0.
constexpr int64_t CeilDiv(int64_t x, int64_t y) {
  return (x + y - 1) / y;
}
// The smallest multiple of `to` that is at least x.
constexpr int64_t RoundUp(int64_t x, int64_t to) {
  return CeilDiv(x, to) * to;
}

}  // namespace tokamak
