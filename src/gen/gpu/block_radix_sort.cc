// Radix sort of lines of words by some of their bits in shared memory; stable.
//
//   load all words of the line, coalesced
//   for each 4 bits, from the lowest (unrolled)
//     each thread takes adjacent words and counts its own words per digit value (16), two 16-bit
//       counts per word; the count before a word is its rank within the thread
//     exclusive prefix sum of all counts, by digit and then by thread: the start position of each
//       thread's words of a digit
//     each thread stores its words at their positions
//
// There are no atomics or warp votes: each thread has its own counters.

#include <algorithm>

#include "gen/gpu/radix_kernel.h"
#include "gen/sorting_network.h"

namespace tokamak::gpu {
namespace {

// Words per thread, and its minimum for short lines; bits per pass; 32-bit counters per thread.
// Block sizes. Shared memory banks (hardware). Bytes of shared memory per block. Chosen where not
// hardware.
constexpr int64_t kRadixItemsPerThread = 16, kMinOwn = 8, kBits = 4, kSlots = 8;
constexpr int64_t kRadixMinThreads = 32, kRadixMaxThreads = 512, kBanks = 32,
                  kRadixSharedBytes = 32 << 10;

class BlockRadixSortBuilder : RadixKernel {
 public:
  BlockRadixSortBuilder(const FusedRegion& region, const std::string& name)
      : RadixKernel(region, name) {}

  BuildOutcome Build() {
    threads_ = std::max(sort_.length / kRadixItemsPerThread, kRadixMinThreads);
    own_count_ = sort_.length / threads_;
    ScalarType type = ComputeType(sort_.instr->operand(0)->shape().type());
    words_ = b_.Local("words", type, Space::kShared, Spaced(sort_.length));
    counts_ = b_.Local("counts", kCount, Space::kShared, Spaced(kSlots * threads_));
    totals_ = b_.Local("totals", kCount, Space::kShared, threads_ / kWarpSize);
    own_ = b_.Local("own", type, Space::kRegisters, own_count_);
    before_ = b_.Local("before", kCount, Space::kRegisters, own_count_);
    b_.For("line", LoopRole::kGrid, b_.Index(sort_.lines), [&](Scalar line) {
      b_.For("t", LoopRole::kThread, b_.Index(threads_), [&](Scalar t) {
        line_ = line;
        thread_ = t;
        Line();
      });
    });
    return FinishBlockKernel(b_, emitter_, region_, sort_.lines);
  }

 private:
  // Inserts one word of padding per kBanks words, so that threads at power-of-two strides access
  // different banks.
  static int64_t Spaced(int64_t position) { return position + position / kBanks; }
  Scalar Spaced(Scalar position) { return position + position / b_.Index(kBanks); }

  void Line() {
    ForOwn(own_count_, [&](Scalar i) {
      Scalar position = i * b_.Index(threads_) + thread_;
      Element word =
          emitter_.At(*sort_.instr->operand(0), CoordinatesInLine(b_, sort_, line_, position));
      if (emitter_.failure().empty()) b_.Store(words_, Spaced(position), word[0]);
    });
    b_.Barrier(BarrierScope::kBlock);
    for (int64_t shift = 0; shift < digits_.bits; shift += kBits) SortDigit(shift);
    ForOwn(own_count_, [&](Scalar i) {
      Scalar position = i * b_.Index(threads_) + thread_;
      emitter_.Store(*sort_.instr, 0, CoordinatesInLine(b_, sort_, line_, position),
                     {b_.Read(words_, Spaced(position)), {}});
    });
  }

  void SortDigit(int64_t shift) {
    ForOwn(kSlots, [&](Scalar k) { b_.Store(counts_, CountAt(k), b_.Constant(kCount, 0)); });
    ForOwn(own_count_, [&](Scalar i) {
      Scalar word = b_.Read(words_, Spaced(thread_ * b_.Index(own_count_) + i));
      b_.Store(own_, i, word);
      Digit digit = DigitAt(word, shift);
      Scalar count = b_.Read(counts_, CountAt(digit.slot));
      b_.Store(before_, i, HalfOf(count, digit));
      b_.Store(counts_, CountAt(digit.slot), count + (b_.Constant(kCount, 1) << digit.half));
    });
    b_.Barrier(BarrierScope::kBlock);
    SumUp();
    b_.Barrier(BarrierScope::kBlock);
    ForOwn(own_count_, [&](Scalar i) {
      Scalar word = b_.Read(own_, i);
      Digit digit = DigitAt(word, shift);
      Scalar position = b_.Read(before_, i) + HalfOf(b_.Read(counts_, CountAt(digit.slot)), digit);
      // Masked so that range analysis proves it in bounds.
      Scalar inside = (position & b_.ConstantBits(kCount, static_cast<Bits>(sort_.length - 1)));
      b_.Store(words_, Spaced(inside.As(ScalarType::kIndex)), word);
    });
    b_.Barrier(BarrierScope::kBlock);
  }

  // The counter of a digit: which word, and which half of it.
  struct Digit {
    Scalar slot, half;
  };
  Digit DigitAt(Scalar word, int64_t shift) {
    Scalar digit = KeyOf(word);
    if (shift > 0) digit = digit >> b_.ConstantBits(digit.type(), static_cast<Bits>(shift));
    if (digit.type() != kCount) digit = digit.As(kCount);
    Scalar upper = (digit >> Number(kBits - 1)) & Number(1);
    return {(digit & Number(kSlots - 1)).As(ScalarType::kIndex), upper << Number(4)};
  }
  Scalar HalfOf(Scalar count, const Digit& digit) { return (count >> digit.half) & Number(0xFFFF); }
  // The thread's own counter in a slot.
  Scalar CountAt(Scalar slot) { return Spaced(slot * b_.Index(threads_) + thread_); }

  // Exclusive prefix sum over all counters; the upper halves follow the lower ones.
  void SumUp() {
    Scalar first = thread_ * b_.Index(kSlots);
    ArrayId sum = b_.Local("sum", kCount, Space::kRegisters, 1);
    Scalar zero = b_.Index(0);
    b_.Store(sum, zero, Number(0));
    ForOwn(kSlots, [&](Scalar k) {
      b_.Store(sum, zero, b_.Read(sum, zero) + b_.Read(counts_, Spaced(first + k)));
    });
    WarpSums sums = SumOverWarp(b_.Read(sum, zero));
    Scalar warp = thread_ / b_.Index(kWarpSize), lane = thread_ % b_.Index(kWarpSize);
    b_.If(lane == zero, [&] { b_.Store(totals_, warp, sums.all); });
    b_.Barrier(BarrierScope::kBlock);
    Scalar all = Number(0);
    for (int64_t w = 0; w < threads_ / kWarpSize; ++w) {
      Scalar other = b_.Read(totals_, b_.Index(w));
      sums.before = sums.before + Choose(b_.Index(w) < warp, other, Number(0));
      all = all + other;
    }
    b_.Store(sum, zero, sums.before + (all << Number(16)));
    ForOwn(kSlots, [&](Scalar k) {
      Scalar own = b_.Read(counts_, Spaced(first + k)), sum_before = b_.Read(sum, zero);
      b_.Store(counts_, Spaced(first + k), sum_before);
      b_.Store(sum, zero, sum_before + own);
    });
  }

  int64_t threads_ = 1;
  Scalar line_;
};

}  // namespace

bool IsBlockRadixSort(const Instr& sort) {
  if (!RadixKeyOf(sort) || sort.captures() > 0) return false;
  LineSort lines = LineSortOf(sort);
  int64_t bytes = BytesOf(ComputeType(sort.operand(0)->shape().type()));
  return lines.length == CeilPowerOfTwo(lines.length) &&
         lines.length >= kRadixMinThreads * kMinOwn && lines.length <= MaxRadixLineLength(bytes);
}

bool CanFuseProducers(const Instr& sort) {
  return IsBlockRadixSort(sort) || IsRadixScatter(sort) || IsNetworkSort(sort);
}

bool IsSortWithProducers(const FusedRegion& region) {
  if (region.roots.size() != 1 || !CanFuseProducers(*region.roots[0])) return false;
  return std::none_of(region.instrs.begin(), region.instrs.end(), [&](const Instr* instr) {
    return instr != region.roots[0] && WhyNoElementCode(*instr).has_value();
  });
}

int64_t PaddedRadixLineLength(int64_t length) {
  return std::max(CeilPowerOfTwo(length), kRadixMinThreads * kMinOwn);
}

int64_t MaxRadixLineLength(int64_t bytes) {
  return std::min(kRadixSharedBytes / bytes, kRadixMaxThreads * kRadixItemsPerThread);
}

BuildOutcome BuildBlockRadixSort(const FusedRegion& region, const std::string& name) {
  return BlockRadixSortBuilder(region, name).Build();
}

}  // namespace tokamak::gpu
