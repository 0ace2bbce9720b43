// The counter-based random number generators of Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3" (SC 2011).

#include "kernel/formulas.h"

namespace tokamak {
namespace {

Scalar Word(Scalar like, uint32_t bits) {
  return like.builder().ConstantBits(ScalarType::kU32, bits);
}
Scalar Rotated(Scalar x, uint32_t by) {
  return (x << Word(x, by)) | (x >> Word(x, 32 - by));
}

}  // namespace

std::array<Scalar, 2> ThreefryWords(std::array<Scalar, 2> counter, std::array<Scalar, 2> key) {
  static constexpr uint32_t kTurns[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const Scalar keys[3] = {key[0], key[1], key[0] ^ key[1] ^ Word(key[0], 0x1BD11BDA)};
  Scalar x = counter[0] + keys[0], y = counter[1] + keys[1];
  for (uint32_t group = 0; group < 5; ++group) {
    for (uint32_t turn : kTurns[group % 2]) {
      x = x + y;
      y = Rotated(y, turn) ^ x;
    }
    x = x + keys[(group + 1) % 3];
    y = y + (keys[(group + 2) % 3] + Word(y, group + 1));
  }
  return {x, y};
}

std::array<Scalar, 4> PhiloxWords(std::array<Scalar, 4> counter, std::array<Scalar, 2> key) {
  for (int round = 0; round < 10; ++round) {
    KernelBuilder& b = counter[0].builder();
    Scalar a = Word(counter[0], 0xD2511F53), c = Word(counter[0], 0xCD9E8D57);
    Scalar a_high = b.Make(Prim::kMulHigh, {a, counter[0]});
    Scalar c_high = b.Make(Prim::kMulHigh, {c, counter[2]});
    counter = {c_high ^ counter[1] ^ key[0], c * counter[2], a_high ^ counter[3] ^ key[1],
               a * counter[0]};
    key = {key[0] + Word(key[0], 0x9E3779B9), key[1] + Word(key[1], 0xBB67AE85)};
  }
  return counter;
}

}  // namespace tokamak
