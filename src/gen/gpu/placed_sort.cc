// Long lines of words sorted by one digit: what is equal keeps its order. Where the words of each
// digit of each stretch of a line begin in the sorted line is known (passes/target/sort_words.h),
// so that a team takes a stretch to its places by itself:
//
//   each warp takes neighbouring words, 32 at a time; for each 32 (unrolled)
//     the threads find out who has the same digit
//     how many of its digit a word has before it: those that the warp counted so far, in team
//       memory, and the lanes before it; the first lane of a digit counts all of them
//   counts are summed up, of warps for each digit and of digits: where a word belongs in the
//     stretch
//   words are put in order in team memory, and neighbours go to neighbouring places of the line
//
// Nothing is atomic: the counts of a warp are its own.

#include <algorithm>

#include "gen/gpu/gpu.h"
#include "gen/line_sort.h"

namespace tokamak::gpu {
namespace {

constexpr int64_t kPlacedThreads = 256, kPlacedWarps = kPlacedThreads / kWarp;
// Words of a thread, of 32 bits; half as many of 64.
constexpr int64_t kMostOwn = 16, kFewestOwn = 4;
constexpr int kMostBits = 8;

class PlacedSortBuilder {
 public:
  PlacedSortBuilder(const Region& region, const std::string& name)
      : region_(region),
        sort_(LineSortOf(*region.roots[0])),
        digits_(*DigitSortOf(*region.roots[0])),
        b_(name, Dialect::kGpu),
        emitter_(b_, region) {}

  BuildOutcome Build() {
    stretches_ = sort_.instr->operand(1)->shape().dim(2);
    stretch_ = sort_.length / stretches_;
    own_count_ = stretch_ / kPlacedThreads;
    digit_count_ = int64_t{1} << digits_.bits;
    columns_ = std::max(digit_count_, kWarp);
    ScalarType type = ComputeType(sort_.instr->operand(0)->shape().type());
    words_ = b_.Local("words", type, Space::kTeam, stretch_);
    counts_ = b_.Local("counts", kCount, Space::kTeam, kPlacedWarps * columns_);
    totals_ = b_.Local("totals", kCount, Space::kTeam, kPlacedWarps);
    moves_ = b_.Local("moves", kPlace, Space::kTeam, columns_);
    own_ = b_.Local("own", type, Space::kRegisters, own_count_);
    before_ = b_.Local("before", kCount, Space::kRegisters, own_count_);
    start_ = b_.Local("start", kPlace, Space::kRegisters, 1);
    int64_t teams = sort_.lines * stretches_;
    b_.For("stretch", LoopRole::kGrid, b_.Index(teams), [&](Scalar team) {
      b_.For("t", LoopRole::kThread, b_.Index(kPlacedThreads), [&](Scalar t) {
        team_ = team;
        thread_ = t;
        warp_ = t / b_.Index(kWarp);
        lane_ = t % b_.Index(kWarp);
        Stretch();
      });
    });
    return FinishTeams(b_, emitter_, region_, teams);
  }

 private:
  static constexpr ScalarType kCount = ScalarType::kU32, kPlace = ScalarType::kS32;

  template <typename Body>
  void ForOwn(int64_t count, Body&& body) {
    b_.For("i", LoopRole::kUnrolled, b_.Index(count), body);
  }
  Scalar Number(int64_t value) { return b_.ConstantBits(kCount, static_cast<Bits>(value)); }

  void Stretch() {
    Scalar line = team_ / b_.Index(stretches_), stretch = team_ % b_.Index(stretches_);
    ForOwn(kPlacedWarps * columns_ / kPlacedThreads,
           [&](Scalar k) { b_.Store(counts_, k * b_.Index(kPlacedThreads) + thread_, Number(0)); });
    ForOwn(own_count_, [&](Scalar i) {
      Scalar place = (warp_ * b_.Index(own_count_) + i) * b_.Index(kWarp) + lane_;
      Element word =
          emitter_.At(*sort_.instr->operand(0),
                      PlaceInLine(b_, sort_, line, stretch * b_.Index(stretch_) + place));
      if (emitter_.fault().empty()) b_.Store(own_, i, word[0]);
    });
    Scalar digit = LesserOf(thread_, b_.Index(digit_count_ - 1));
    Element start = emitter_.At(*sort_.instr->operand(1), {line, digit, stretch});
    if (!emitter_.fault().empty()) return;
    b_.Store(start_, b_.Index(0), start[0]);
    b_.Barrier(Scope::kBlock);
    Count();
    b_.Barrier(Scope::kBlock);
    SumUp();
    b_.Barrier(Scope::kBlock);
    ForOwn(own_count_, [&](Scalar i) {
      Scalar word = b_.Read(own_, i);
      Scalar place = b_.Read(counts_, CountAt(DigitAt(word))) + b_.Read(before_, i);
      // So that it is known that it lies inside.
      b_.Store(words_, (place & Number(stretch_ - 1)).As(ScalarType::kIndex), word);
    });
    b_.Barrier(Scope::kBlock);
    ForOwn(own_count_, [&](Scalar i) {
      Scalar place = i * b_.Index(kPlacedThreads) + thread_;
      Scalar word = b_.Read(words_, place);
      Scalar to = b_.Read(moves_, DigitAt(word).As(ScalarType::kIndex)) + place.As(kPlace);
      emitter_.StoreLinear(*sort_.instr, 0, to.As(ScalarType::kIndex), {word, {}});
    });
  }

  Scalar DigitAt(Scalar word) {
    std::optional<Scalar> digit = DigitOf(b_, *sort_.instr, digits_, {word, {}});
    if (!digit) {
      emitter_.Fail("sort: its computation has no formula");
      return Number(0);
    }
    if (digit->type() != kCount) digit = digit->As(kCount);
    return *digit & Number(digit_count_ - 1);
  }
  Scalar CountAt(Scalar digit) { return warp_ * b_.Index(columns_) + digit.As(ScalarType::kIndex); }

  // What each word has of its digit before it in its warp, and how many each warp has of each.
  void Count() {
    Scalar lanes_before = (Number(1) << lane_.As(kCount)) - Number(1);
    ForOwn(own_count_, [&](Scalar i) {
      Scalar digit = DigitAt(b_.Read(own_, i)), at = CountAt(digit);
      Scalar alike = b_.Match(digit, digits_.bits), alike_before = alike & lanes_before;
      Scalar counted = b_.Read(counts_, at);
      b_.Store(before_, i, counted + b_.Make(Prim::kPopCount, {alike_before}));
      Scalar all = counted + b_.Make(Prim::kPopCount, {alike});
      b_.Barrier(Scope::kWarp);
      b_.If(alike_before == Number(0), [&] { b_.Store(counts_, at, all); });
      b_.Barrier(Scope::kWarp);
    });
  }

  // Each count becomes the sum of those before it, in the order of digits, and of warps for each. A
  // thread has a digit.
  void SumUp() {
    Scalar digit = thread_ % b_.Index(columns_);
    std::vector<Scalar> of_warps = {Number(0)};
    for (int64_t w = 0; w < kPlacedWarps; ++w)
      of_warps.push_back(of_warps.back() + b_.Read(counts_, b_.Index(w * columns_) + digit));
    Scalar total = of_warps.back(), before = Number(0);
    for (int64_t apart = 1; apart < kWarp; apart *= 2) {
      Scalar other = b_.Shuffle(total, b_.Index(apart));
      Scalar is_later = thread_ / b_.Index(apart) % b_.Index(2) == b_.Index(1);
      before = Choose(is_later, before + other, before);
      total = total + other;
    }
    b_.If(lane_ == b_.Index(0), [&] { b_.Store(totals_, warp_, total); });
    b_.Barrier(Scope::kBlock);
    for (int64_t w = 0; w + 1 < columns_ / kWarp; ++w)
      before = before + Choose(b_.Index(w) < warp_, b_.Read(totals_, b_.Index(w)), Number(0));
    b_.If(thread_ < b_.Index(columns_), [&] {
      for (int64_t w = 0; w < kPlacedWarps; ++w)
        b_.Store(counts_, b_.Index(w * columns_) + digit,
                 before + of_warps[static_cast<size_t>(w)]);
      b_.Store(moves_, digit, b_.Read(start_, b_.Index(0)) - before.As(kPlace));
    });
  }

  const Region& region_;
  LineSort sort_;
  DigitSort digits_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  int64_t stretches_ = 1, stretch_ = 1, own_count_ = 1, digit_count_ = 1;
  int64_t columns_ = 1;  // of the table of counts
  // `moves`: where a word of a digit goes, less its place in the sorted stretch.
  ArrayId words_{}, counts_{}, totals_{}, moves_{}, own_{}, before_{}, start_{};
  Scalar team_, thread_, warp_, lane_;
};

}  // namespace

bool IsPlacedSort(const Instr& sort) {
  std::optional<DigitSort> digits = DigitSortOf(sort);
  if (!digits || sort.captures() != 1 || digits->bits > kMostBits) return false;
  const Shape &words = sort.operand(0)->shape(), &starts = sort.operand(1)->shape();
  if (words.rank() != 2 || LineSortOf(sort).along != 1 || !IsPlainArray(starts) ||
      starts.type() != ElementType::kS32 || starts.rank() != 3 || starts.dim(0) != words.dim(0) ||
      starts.dim(1) != int64_t{1} << digits->bits)
    return false;
  int64_t stretches = starts.dim(2), stretch = words.dim(1) / std::max<int64_t>(stretches, 1);
  int64_t own = stretch / kPlacedThreads;
  return stretches * stretch == words.dim(1) && own * kPlacedThreads == stretch &&
         own >= kFewestOwn && own <= kMostOwn && own == PowerAbove(own);
}

int64_t PlacedStretch(int64_t bytes, int64_t words, const Machine& machine) {
  int64_t own = kMostOwn * 4 / bytes;
  while (own > kFewestOwn && words < own * kPlacedThreads * machine.cores) own /= 2;
  return own * kPlacedThreads;
}

BuildOutcome BuildPlacedSort(const Region& region, const std::string& name) {
  return PlacedSortBuilder(region, name).Build();
}

}  // namespace tokamak::gpu
