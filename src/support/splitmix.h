#pragma once

#include <cstdint>

namespace tokamak {

// splitmix64: a generator whose state is one number. It yields the same sequence on every machine,
// unlike the distributions of <random>.
inline uint64_t MixBits(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}
  uint64_t Next() { return MixBits(state_ += 0x9e3779b97f4a7c15u); }

 private:
  uint64_t state_;
};

}  // namespace tokamak
