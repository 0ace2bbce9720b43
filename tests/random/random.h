#pragma once

// A small deterministic random number generator with the same sequence on every platform.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "support/splitmix.h"

namespace tokamak::fuzz {

class Random : public SplitMix64 {
 public:
  using SplitMix64::SplitMix64;

  // 0 .. n-1; n > 0. Slightly non-uniform, which is acceptable here.
  int64_t Below(int64_t n) {
    return static_cast<int64_t>((Next() >> 32) * static_cast<uint64_t>(n) >> 32);
  }
  int64_t Between(int64_t least, int64_t most) { return least + Below(most - least + 1); }
  bool Percent(int percent) { return Below(100) < percent; }
  // [0, 1).
  double Real() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

  template <typename T>
  const T& Pick(const std::vector<T>& from) {
    return from[static_cast<size_t>(Below(static_cast<int64_t>(from.size())))];
  }
  template <typename T>
  const T& Pick(std::span<const T> from) {
    return from[static_cast<size_t>(Below(static_cast<int64_t>(from.size())))];
  }
  template <typename T>
  T Pick(std::initializer_list<T> from) {
    return from.begin()[Below(static_cast<int64_t>(from.size()))];
  }
  template <typename T>
  void Shuffle(std::vector<T>& list) {
    for (size_t i = list.size(); i > 1; --i)
      std::swap(list[i - 1], list[static_cast<size_t>(Below(static_cast<int64_t>(i)))]);
  }
};

}  // namespace tokamak::fuzz
