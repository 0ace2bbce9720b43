// The scatter pass of a radix sort of long lines by one digit; stable. The start offset of each
// digit of each segment in the sorted line is already known (passes/target/radix_sort.h), so blocks
// scatter their segments independently:
//
//   each warp takes consecutive words, 32 at a time; for each 32 (unrolled)
//     match_any finds the lanes with the same digit
//     rank of a word within its digit: the warp's count so far, in shared memory, plus the equal
//       lanes before it; the first lane of a digit updates the count
//   prefix sums of the counts, over warps per digit and over digits: the word's position in the
//     sorted segment
//   words are sorted in shared memory, so that stores to the line are mostly coalesced
//
// There are no atomics: each warp has its own counts.

#include <algorithm>

#include "gen/gpu/radix_kernel.h"

namespace tokamak::gpu {
namespace {

// Block size (chosen), and its warps.
constexpr int64_t kRadixScatterThreads = 256, kRadixScatterWarps = kRadixScatterThreads / kWarpSize;
// 32-bit words per thread, maximum and minimum (half as many 64-bit words); maximum digit bits: a
// thread per digit value. Chosen.
constexpr int64_t kMaxWordsPerThread = 16, kMinWordsPerThread = 4;
constexpr int kMaxBits = 8;

class RadixScatterBuilder : RadixKernel {
 public:
  RadixScatterBuilder(const FusedRegion& region, const std::string& name)
      : RadixKernel(region, name) {}

  BuildOutcome Build() {
    segments_ = sort_.instr->operand(1)->shape().dim(2);
    segment_ = sort_.length / segments_;
    own_count_ = segment_ / kRadixScatterThreads;
    digit_count_ = int64_t{1} << digits_.bits;
    columns_ = std::max(digit_count_, kWarpSize);
    ScalarType type = ComputeType(sort_.instr->operand(0)->shape().type());
    words_ = b_.Local("words", type, Space::kShared, segment_);
    counts_ = b_.Local("counts", kCount, Space::kShared, kRadixScatterWarps * columns_);
    totals_ = b_.Local("totals", kCount, Space::kShared, kRadixScatterWarps);
    moves_ = b_.Local("moves", kPositionType, Space::kShared, columns_);
    own_ = b_.Local("own", type, Space::kRegisters, own_count_);
    before_ = b_.Local("before", kCount, Space::kRegisters, own_count_);
    start_ = b_.Local("start", kPositionType, Space::kRegisters, 1);
    int64_t blocks = sort_.lines * segments_;
    b_.For("segment", LoopRole::kGrid, b_.Index(blocks), [&](Scalar block) {
      b_.For("t", LoopRole::kThread, b_.Index(kRadixScatterThreads), [&](Scalar t) {
        block_ = block;
        thread_ = t;
        warp_ = t / b_.Index(kWarpSize);
        lane_ = t % b_.Index(kWarpSize);
        Segment();
      });
    });
    return FinishBlockKernel(b_, emitter_, region_, blocks);
  }

 private:
  static constexpr ScalarType kPositionType = ScalarType::kS32;

  void Segment() {
    Scalar line = block_ / b_.Index(segments_), segment = block_ % b_.Index(segments_);
    ForOwn(kRadixScatterWarps * columns_ / kRadixScatterThreads, [&](Scalar k) {
      b_.Store(counts_, k * b_.Index(kRadixScatterThreads) + thread_, Number(0));
    });
    ForOwn(own_count_, [&](Scalar i) {
      Scalar position = (warp_ * b_.Index(own_count_) + i) * b_.Index(kWarpSize) + lane_;
      Element word =
          emitter_.At(*sort_.instr->operand(0),
                      CoordinatesInLine(b_, sort_, line, segment * b_.Index(segment_) + position));
      if (emitter_.failure().empty()) b_.Store(own_, i, word[0]);
    });
    Scalar digit = LesserOf(thread_, b_.Index(digit_count_ - 1));
    Element start = emitter_.At(*sort_.instr->operand(1), {line, digit, segment});
    if (!emitter_.failure().empty()) return;
    b_.Store(start_, b_.Index(0), start[0]);
    b_.Barrier(BarrierScope::kBlock);
    Count();
    b_.Barrier(BarrierScope::kBlock);
    SumUp();
    b_.Barrier(BarrierScope::kBlock);
    ForOwn(own_count_, [&](Scalar i) {
      Scalar word = b_.Read(own_, i);
      Scalar position = b_.Read(counts_, CountAt(DigitAt(word))) + b_.Read(before_, i);
      // Masked so that range analysis proves it in bounds.
      b_.Store(words_, (position & Number(segment_ - 1)).As(ScalarType::kIndex), word);
    });
    b_.Barrier(BarrierScope::kBlock);
    ForOwn(own_count_, [&](Scalar i) {
      Scalar position = i * b_.Index(kRadixScatterThreads) + thread_;
      Scalar word = b_.Read(words_, position);
      Scalar to =
          b_.Read(moves_, DigitAt(word).As(ScalarType::kIndex)) + position.As(kPositionType);
      emitter_.StoreLinear(*sort_.instr, 0, to.As(ScalarType::kIndex), {word, {}});
    });
  }

  Scalar DigitAt(Scalar word) {
    Scalar digit = KeyOf(word);
    if (digit.type() != kCount) digit = digit.As(kCount);
    return digit & Number(digit_count_ - 1);
  }
  Scalar CountAt(Scalar digit) { return warp_ * b_.Index(columns_) + digit.As(ScalarType::kIndex); }

  // Computes each word's rank within its digit and warp, and the counts per warp and digit.
  void Count() {
    Scalar lanes_before = (Number(1) << lane_.As(kCount)) - Number(1);
    ForOwn(own_count_, [&](Scalar i) {
      Scalar digit = DigitAt(b_.Read(own_, i)), at = CountAt(digit);
      Scalar equal = b_.Match(digit, digits_.bits), equal_before = equal & lanes_before;
      Scalar counted = b_.Read(counts_, at);
      b_.Store(before_, i, counted + b_.Make(Prim::kPopCount, {equal_before}));
      Scalar all = counted + b_.Make(Prim::kPopCount, {equal});
      b_.Barrier(BarrierScope::kWarp);
      b_.If(equal_before == Number(0), [&] { b_.Store(counts_, at, all); });
      b_.Barrier(BarrierScope::kWarp);
    });
  }

  // Exclusive prefix sum of the counts, by digit and then by warp. Each thread has one digit.
  void SumUp() {
    Scalar digit = thread_ % b_.Index(columns_);
    std::vector<Scalar> of_warps = {Number(0)};
    for (int64_t w = 0; w < kRadixScatterWarps; ++w)
      of_warps.push_back(of_warps.back() + b_.Read(counts_, b_.Index(w * columns_) + digit));
    WarpSums sums = SumOverWarp(of_warps.back());
    b_.If(lane_ == b_.Index(0), [&] { b_.Store(totals_, warp_, sums.all); });
    b_.Barrier(BarrierScope::kBlock);
    for (int64_t w = 0; w + 1 < columns_ / kWarpSize; ++w)
      sums.before =
          sums.before + Choose(b_.Index(w) < warp_, b_.Read(totals_, b_.Index(w)), Number(0));
    b_.If(thread_ < b_.Index(columns_), [&] {
      for (int64_t w = 0; w < kRadixScatterWarps; ++w)
        b_.Store(counts_, b_.Index(w * columns_) + digit,
                 sums.before + of_warps[static_cast<size_t>(w)]);
      b_.Store(moves_, digit, b_.Read(start_, b_.Index(0)) - sums.before.As(kPositionType));
    });
  }

  int64_t segments_ = 1, segment_ = 1, digit_count_ = 1;
  int64_t columns_ = 1;  // of the table of counts
  // `moves`: destination of a digit's words minus their position in the sorted segment.
  ArrayId moves_{}, start_{};
  Scalar block_, warp_, lane_;
};

}  // namespace

bool IsRadixScatter(const Instr& sort) {
  std::optional<RadixKey> digits = RadixKeyOf(sort);
  if (!digits || sort.captures() != 1 || digits->bits > kMaxBits) return false;
  const Shape &words = sort.operand(0)->shape(), &starts = sort.operand(1)->shape();
  if (words.rank() != 2 || LineSortOf(sort).along != 1 || !IsPlainArray(starts) ||
      starts.type() != ElementType::kS32 || starts.rank() != 3 || starts.dim(0) != words.dim(0) ||
      starts.dim(1) != int64_t{1} << digits->bits)
    return false;
  int64_t segments = starts.dim(2), segment = words.dim(1) / std::max<int64_t>(segments, 1);
  int64_t own = segment / kRadixScatterThreads;
  return segments * segment == words.dim(1) && own * kRadixScatterThreads == segment &&
         own >= kMinWordsPerThread && own <= kMaxWordsPerThread && own == CeilPowerOfTwo(own);
}

int64_t RadixSegmentLength(int64_t bytes, int64_t words, const Machine& machine) {
  int64_t own = kMaxWordsPerThread * 4 / bytes;
  while (own > kMinWordsPerThread && words < own * kRadixScatterThreads * machine.cores) own /= 2;
  return own * kRadixScatterThreads;
}

BuildOutcome BuildRadixScatter(const FusedRegion& region, const std::string& name) {
  return RadixScatterBuilder(region, name).Build();
}

}  // namespace tokamak::gpu
