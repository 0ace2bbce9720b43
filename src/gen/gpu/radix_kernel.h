#pragma once

#include <string>

#include "gen/gpu/gpu.h"
#include "gen/line_sort.h"

namespace tokamak::gpu {

// The common part of the radix-sort kernels (block_radix_sort.cc, radix_scatter.cc): the sort of
// the region's root, and the emission of counts.
class RadixKernel {
 protected:
  RadixKernel(const FusedRegion& region, const std::string& name)
      : region_(region),
        sort_(LineSortOf(*region.roots[0])),
        digits_(*RadixKeyOf(*region.roots[0])),
        b_(name, Dialect::kGpu),
        emitter_(b_, region) {}

  static constexpr ScalarType kCount = ScalarType::kU32;

  Scalar Number(int64_t value) { return b_.ConstantBits(kCount, static_cast<Bits>(value)); }
  // Calls body(i) for the `count` words or counts of a thread.
  template <typename Body>
  void ForOwn(int64_t count, Body&& body) {
    b_.For("i", LoopRole::kUnrolled, b_.Index(count), body);
  }
  // The bits of a word by which it is sorted.
  Scalar KeyOf(Scalar word) {
    std::optional<Scalar> key = DigitOf(b_, *sort_.instr, digits_, {word, {}});
    if (!key) emitter_.Fail("sort: its computation has no scalar formula");
    return key ? *key : Number(0);
  }
  // The sum of `own` over the lanes before this one, and over all lanes of the warp.
  struct WarpSums {
    Scalar before, all;
  };
  WarpSums SumOverWarp(Scalar own) {
    WarpSums sums{Number(0), own};
    for (int64_t offset = 1; offset < kWarpSize; offset *= 2) {
      Scalar other = b_.Shuffle(sums.all, b_.Index(offset));
      Scalar is_later = thread_ / b_.Index(offset) % b_.Index(2) == b_.Index(1);
      sums.before = Choose(is_later, sums.before + other, sums.before);
      sums.all = sums.all + other;
    }
    return sums;
  }

  const FusedRegion& region_;
  LineSort sort_;
  RadixKey digits_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  int64_t own_count_ = 1;  // words per thread
  // Words in shared memory; counts of digits, and their totals; the thread's words, and for each
  // the count of equal digits before it.
  ArrayId words_{}, counts_{}, totals_{}, own_{}, before_{};
  Scalar thread_;
};

}  // namespace tokamak::gpu
