#include "interp/counter_random.h"

#include <bit>

namespace tokamak {

// Twenty rounds; the key schedule is added after every fourth.
std::array<uint32_t, 2> ThreeFry2x32(std::array<uint32_t, 2> counter, std::array<uint32_t, 2> key) {
  constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  constexpr uint32_t kParity = 0x1BD11BDA;
  const uint32_t schedule[3] = {key[0], key[1], key[0] ^ key[1] ^ kParity};
  auto [x, y] = counter;
  x += schedule[0];
  y += schedule[1];
  for (uint32_t block = 0; block < 5; ++block) {
    for (int rotation : kRotations[block % 2]) {
      x += y;
      y = std::rotl(y, rotation) ^ x;
    }
    x += schedule[(block + 1) % 3];
    y += schedule[(block + 2) % 3] + block + 1;
  }
  return {x, y};
}

// Ten rounds.
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  constexpr uint64_t kMultiplyA = 0xD2511F53, kMultiplyB = 0xCD9E8D57;
  constexpr uint32_t kWeylA = 0x9E3779B9, kWeylB = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    uint64_t a = kMultiplyA * counter[0], b = kMultiplyB * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += kWeylA;
    key[1] += kWeylB;
  }
  return counter;
}

}  // namespace tokamak
