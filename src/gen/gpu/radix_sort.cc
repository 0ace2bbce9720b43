// Stable radix sorts of words by some of their bits, in shared memory. A block sorts
//
//   a whole line, by four bits per pass, from the lowest (serial loop); or
//   a segment of a line by one digit of up to eight bits: the radix scatter (gpu.h). The start
//   offset of each digit of each segment in the sorted line is already known (passes/target/
//   radix_sort.h), so blocks scatter their segments independently
//
// A pass ranks the words: the position of a word in the sorted tile is the number of words with a
// lesser digit, plus those with the same digit before it. There are no atomics.
//
//   counters, for lines   each thread takes adjacent words and counts its own words per digit value
//                         (16), two 16-bit counts per 32-bit counter; then an exclusive prefix sum
//                         of all counts, by digit and then by thread
//   match, for segments   each warp takes consecutive words, 32 at a time: match_any finds the
//                         lanes with the same digit, and the first of them updates the warp's count
//                         of the digit; then prefix sums of the counts, over warps per digit and
//                         over digits
//
// Words are stored in shared memory at their positions, so that stores to the line are coalesced.

#include <algorithm>
#include <bit>

#include "gen/gpu/gpu.h"
#include "gen/sort_schedule.h"

namespace tokamak::gpu {
namespace {

constexpr ScalarType kCount = ScalarType::kU32;
constexpr ScalarType kPositionType = ScalarType::kS32;
// Banks of shared memory, each a 32-bit word wide (CUDA programming guide).
constexpr int64_t kBanks = 32;
// Bits of a count in a counter: two counts per counter. Chosen: a tile has fewer than 2^16 words,
// and half the counters take half the shared memory.
constexpr int64_t kDigitCountBits = 16, kCountShift = std::bit_width(uint64_t{kDigitCountBits}) - 1;

class RadixSortBuilder {
 public:
  RadixSortBuilder(const FusedRegion& region, const SortSchedule& schedule, const std::string& name)
      : region_(region),
        schedule_(schedule),
        sort_(LineSortOf(*region.roots[0])),
        key_(*RadixKeyOf(*region.roots[0])),
        b_(name, Dialect::kGpu),
        emitter_(b_, region),
        is_scatter_(schedule.by_segments),
        segments_(sort_.length / schedule.tile),
        warps_(schedule.threads / kWarpSize),
        counters_(int64_t{1} << (schedule.digit_bits - 1)),
        columns_(std::max(int64_t{1} << schedule.digit_bits, kWarpSize)) {}

  BuildOutcome Build() {
    ScalarType type = ComputeType(sort_.instr->operand(0)->shape().type());
    int64_t counts = is_scatter_ ? warps_ * columns_ : Spaced(counters_ * schedule_.threads);
    words_ = b_.Local("words", type, Space::kShared,
                      is_scatter_ ? schedule_.tile : Spaced(schedule_.tile));
    counts_ = b_.Local("counts", kCount, Space::kShared, counts);
    totals_ = b_.Local("totals", kCount, Space::kShared, warps_);
    own_ = b_.Local("own", type, Space::kRegisters, schedule_.items);
    before_ = b_.Local("before", kCount, Space::kRegisters, schedule_.items);
    if (is_scatter_) {
      moves_ = b_.Local("moves", kPositionType, Space::kShared, columns_);
      start_ = b_.Local("start", kPositionType, Space::kRegisters, 1);
    } else {
      sum_ = b_.Local("sum", kCount, Space::kRegisters, 1);
    }
    int64_t blocks = sort_.lines * segments_;
    b_.For("block", LoopRole::kGrid, b_.Index(blocks), [&](Scalar block) {
      b_.For("t", LoopRole::kThread, b_.Index(schedule_.threads), [&](Scalar t) {
        line_ = segments_ == 1 ? block : block / b_.Index(segments_);
        segment_ = segments_ == 1 ? b_.Index(0) : block % b_.Index(segments_);
        thread_ = t;
        warp_ = t / b_.Index(kWarpSize);
        lane_ = t % b_.Index(kWarpSize);
        is_scatter_ ? ScatterSegment() : SortLine();
      });
    });
    return FinishBlockKernel(b_, emitter_, region_, blocks);
  }

 private:
  // ---- shared by both

  Scalar Number(int64_t value) { return b_.ConstantBits(kCount, static_cast<Bits>(value)); }
  void Barrier() { b_.Barrier(BarrierScope::kBlock); }
  // Calls body(i) for the `count` words or counts of a thread.
  template <typename Body>
  void ForOwn(int64_t count, Body&& body) {
    b_.For("i", LoopRole::kUnrolled, b_.Index(count), body);
  }
  // Calls body(position in the tile) for the words of a thread; neighbours have adjacent ones.
  template <typename Body>
  void ForAdjacentThreads(Body&& body) {
    ForOwn(schedule_.items, [&](Scalar i) { body(i * b_.Index(schedule_.threads) + thread_); });
  }

  // The word at a position of the tile.
  Scalar Load(Scalar position) {
    if (segments_ > 1) position = segment_ * b_.Index(schedule_.tile) + position;
    return emitter_.At(*sort_.instr->operand(0), CoordinatesInLine(b_, sort_, line_, position))[0];
  }
  // The bits of a word by which it is sorted.
  Scalar KeyOf(Scalar word) {
    std::optional<Scalar> key = DigitOf(b_, *sort_.instr, key_, {word, {}});
    if (!key) emitter_.Fail("sort: its computation has no scalar formula");
    return key ? *key : Number(0);
  }
  // A position in the tile, masked so that range analysis proves it in bounds.
  Scalar InTile(Scalar position) {
    return (position & Number(schedule_.tile - 1)).As(ScalarType::kIndex);
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
  // Also over the warps before this one; `all` is the sum over the first `warps` of them. Has a
  // barrier.
  WarpSums SumOverBlock(Scalar own, int64_t warps) {
    WarpSums sums = SumOverWarp(own);
    b_.If(lane_ == b_.Index(0), [&] { b_.Store(totals_, warp_, sums.all); });
    Barrier();
    sums.all = Number(0);
    for (int64_t w = 0; w < warps; ++w) {
      Scalar other = b_.Read(totals_, b_.Index(w));
      sums.before = sums.before + Choose(b_.Index(w) < warp_, other, Number(0));
      sums.all = sums.all + other;
    }
    return sums;
  }

  // ---- lines, ranked with counters

  // Inserts one word of padding per kBanks words, so that threads at power-of-two strides access
  // different banks.
  static int64_t Spaced(int64_t position) { return position + position / kBanks; }
  Scalar Spaced(Scalar position) { return position + position / b_.Index(kBanks); }

  void SortLine() {
    ForAdjacentThreads([&](Scalar position) {
      Scalar word = Load(position);
      if (emitter_.failure().empty()) b_.Store(words_, Spaced(position), word);
    });
    Barrier();
    int64_t passes = CeilDiv(key_.bits, int64_t{schedule_.digit_bits});
    b_.For("p", LoopRole::kSerial, b_.Index(passes),
           [&](Scalar pass) { SortDigit((pass * b_.Index(schedule_.digit_bits)).As(kCount)); });
    ForAdjacentThreads([&](Scalar position) {
      emitter_.Store(*sort_.instr, 0, CoordinatesInLine(b_, sort_, line_, position),
                     {b_.Read(words_, Spaced(position)), {}});
    });
  }

  void SortDigit(Scalar shift) {
    ForOwn(counters_, [&](Scalar k) { b_.Store(counts_, CounterAt(k), Number(0)); });
    ForOwn(schedule_.items, [&](Scalar i) {
      Scalar word = b_.Read(words_, Spaced(thread_ * b_.Index(schedule_.items) + i));
      b_.Store(own_, i, word);
      Counted digit = CountedDigit(word, shift);
      Scalar count = b_.Read(counts_, CounterAt(digit.counter));
      b_.Store(before_, i, CountOf(count, digit));
      b_.Store(counts_, CounterAt(digit.counter), count + (Number(1) << digit.shift));
    });
    Barrier();
    SumCounters();
    Barrier();
    ForOwn(schedule_.items, [&](Scalar i) {
      Scalar word = b_.Read(own_, i);
      Counted digit = CountedDigit(word, shift);
      Scalar first = CountOf(b_.Read(counts_, CounterAt(digit.counter)), digit);
      b_.Store(words_, Spaced(InTile(b_.Read(before_, i) + first)), word);
    });
    Barrier();
  }

  // The counter of a digit, and the bit in it at which the count of the digit begins.
  struct Counted {
    Scalar counter, shift;
  };
  Counted CountedDigit(Scalar word, Scalar shift) {
    Scalar digit = KeyOf(word);
    digit = digit >> (digit.type() == kCount ? shift : shift.As(digit.type()));
    if (digit.type() != kCount) digit = digit.As(kCount);
    Scalar is_upper = (digit >> Number(schedule_.digit_bits - 1)) & Number(1);
    return {(digit & Number(counters_ - 1)).As(ScalarType::kIndex),
            is_upper << Number(kCountShift)};
  }
  Scalar CountOf(Scalar counter, const Counted& digit) {
    return (counter >> digit.shift) & Number((int64_t{1} << kDigitCountBits) - 1);
  }
  // The thread's own counter.
  Scalar CounterAt(Scalar counter) {
    return Spaced(counter * b_.Index(schedule_.threads) + thread_);
  }

  // Exclusive prefix sum over all counters; the upper counts follow the lower ones.
  void SumCounters() {
    Scalar first = thread_ * b_.Index(counters_), zero = b_.Index(0);
    b_.Store(sum_, zero, Number(0));
    ForOwn(counters_, [&](Scalar k) {
      b_.Store(sum_, zero, b_.Read(sum_, zero) + b_.Read(counts_, Spaced(first + k)));
    });
    WarpSums sums = SumOverBlock(b_.Read(sum_, zero), warps_);
    b_.Store(sum_, zero, sums.before + (sums.all << Number(kDigitCountBits)));
    ForOwn(counters_, [&](Scalar k) {
      Scalar own = b_.Read(counts_, Spaced(first + k)), before = b_.Read(sum_, zero);
      b_.Store(counts_, Spaced(first + k), before);
      b_.Store(sum_, zero, before + own);
    });
  }

  // ---- segments, ranked by match

  void ScatterSegment() {
    ForOwn(warps_ * columns_ / schedule_.threads, [&](Scalar k) {
      b_.Store(counts_, k * b_.Index(schedule_.threads) + thread_, Number(0));
    });
    ForOwn(schedule_.items, [&](Scalar i) {
      Scalar position = (warp_ * b_.Index(schedule_.items) + i) * b_.Index(kWarpSize) + lane_;
      Scalar word = Load(position);
      if (emitter_.failure().empty()) b_.Store(own_, i, word);
    });
    Scalar digit = LesserOf(thread_, b_.Index((int64_t{1} << key_.bits) - 1));
    Element start = emitter_.At(*sort_.instr->operand(1), {line_, digit, segment_});
    if (!emitter_.failure().empty()) return;
    b_.Store(start_, b_.Index(0), start[0]);
    Barrier();
    CountByMatch();
    Barrier();
    SumColumns();
    Barrier();
    ForOwn(schedule_.items, [&](Scalar i) {
      Scalar word = b_.Read(own_, i);
      Scalar first = b_.Read(counts_, ColumnAt(MatchedDigit(word)));
      b_.Store(words_, InTile(first + b_.Read(before_, i)), word);
    });
    Barrier();
    ForAdjacentThreads([&](Scalar position) {
      Scalar word = b_.Read(words_, position);
      Scalar to =
          b_.Read(moves_, MatchedDigit(word).As(ScalarType::kIndex)) + position.As(kPositionType);
      emitter_.StoreLinear(*sort_.instr, 0, to.As(ScalarType::kIndex), {word, {}});
    });
  }

  Scalar MatchedDigit(Scalar word) {
    Scalar digit = KeyOf(word);
    if (digit.type() != kCount) digit = digit.As(kCount);
    return digit & Number((int64_t{1} << key_.bits) - 1);
  }
  // The warp's count of a digit.
  Scalar ColumnAt(Scalar digit) {
    return warp_ * b_.Index(columns_) + digit.As(ScalarType::kIndex);
  }

  // Computes each word's rank within its digit and warp, and the counts per warp and digit.
  void CountByMatch() {
    Scalar lanes_before = (Number(1) << lane_.As(kCount)) - Number(1);
    ForOwn(schedule_.items, [&](Scalar i) {
      Scalar digit = MatchedDigit(b_.Read(own_, i)), at = ColumnAt(digit);
      Scalar equal = b_.Match(digit, key_.bits), equal_before = equal & lanes_before;
      Scalar counted = b_.Read(counts_, at);
      b_.Store(before_, i, counted + b_.Make(Prim::kPopCount, {equal_before}));
      Scalar all = counted + b_.Make(Prim::kPopCount, {equal});
      b_.Barrier(BarrierScope::kWarp);
      b_.If(equal_before == Number(0), [&] { b_.Store(counts_, at, all); });
      b_.Barrier(BarrierScope::kWarp);
    });
  }

  // Exclusive prefix sum of the counts, by digit and then by warp. Each thread has one digit.
  void SumColumns() {
    Scalar digit = thread_ % b_.Index(columns_);
    std::vector<Scalar> of_warps = {Number(0)};
    for (int64_t w = 0; w < warps_; ++w)
      of_warps.push_back(of_warps.back() + b_.Read(counts_, b_.Index(w * columns_) + digit));
    WarpSums sums = SumOverBlock(of_warps.back(), columns_ / kWarpSize - 1);
    b_.If(thread_ < b_.Index(columns_), [&] {
      for (int64_t w = 0; w < warps_; ++w)
        b_.Store(counts_, b_.Index(w * columns_) + digit,
                 sums.before + of_warps[static_cast<size_t>(w)]);
      b_.Store(moves_, digit, b_.Read(start_, b_.Index(0)) - sums.before.As(kPositionType));
    });
  }

  const FusedRegion& region_;
  SortSchedule schedule_;
  LineSort sort_;
  RadixKey key_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  bool is_scatter_;
  int64_t segments_;  // per line
  int64_t warps_;
  int64_t counters_;  // per thread, for the counts of all digit values
  int64_t columns_;   // of the table of counts per warp
  // Words in shared memory; counts of digits, and their totals; the thread's words, and for each
  // the count of equal digits before it.
  ArrayId words_{}, counts_{}, totals_{}, own_{}, before_{};
  ArrayId sum_{};  // of counters
  // `moves`: destination of a digit's words minus their position in the sorted segment; start_: the
  // destination of the first word of the thread's digit.
  ArrayId moves_{}, start_{};
  Scalar line_, segment_, thread_, warp_, lane_;
};

}  // namespace
}  // namespace tokamak::gpu

namespace tokamak {

BuildOutcome BuildRadixSort(const FusedRegion& region, const SortSchedule& schedule,
                            const std::string& name) {
  return gpu::RadixSortBuilder(region, schedule, name).Build();
}

}  // namespace tokamak
