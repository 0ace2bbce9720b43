// LSD radix sort of words by some of their bits, built from plain ops. One pass per digit, least
// significant first; each pass is stable, so the order of earlier passes survives. A pass over a
// line of S segments:
//
//   counts [lines, S, digits]   histogram of the digit in each segment     (scatter-add of ones)
//   starts [lines, digits, S]   exclusive prefix sums, digit-major          (two scans)
//   sort by the digit           each segment writes its words from starts   (sort, starts captured)
//
// The last op is an ordinary sort of the line by one digit; its comparator captures `starts` and
// ignores it. The generator recognizes this form and scatters each segment instead of sorting. Any
// backend that does not recognize it still computes the right result. O(length * digits).

#include "passes/target/radix_sort.h"

#include <algorithm>
#include <optional>

#include "ir/builder.h"
#include "passes/target/packed_words.h"
#include "passes/target/window_starts.h"
#include "support/ceil_div.h"

namespace tokamak {
namespace {

constexpr ElementType kRadixIndexType = ElementType::kS32;

// The bits of a key that one pass sorts by.
struct Digit {
  int shift = 0, bits = 0;
  int64_t count() const { return int64_t{1} << bits; }
};

// The key of a word.
Instr* KeyOf(WordCode& code, const RadixOrder& order, Instr* word) {
  word = code.Above(word, order.from);
  KeyWord key{order.bits};
  // In the order of the bits, -0 is just below 0.
  if (order.equal_zeros)
    word = code.Select(code.Equal(word, code.Constant(key.magnitude())), code.Constant(key.sign()),
                       word);
  return order.is_descending ? code.Make(Op::kXor, word, key.ones()) : word;
}

Instr* DigitOf(WordCode& code, const RadixOrder& order, Instr* word, const Digit& digit) {
  return code.Below(code.Above(KeyOf(code, order, word), digit.shift), digit.bits);
}

class RadixSorter {
 public:
  RadixSorter(Editor& make, Instr* words, const RadixOrder& order, const SortSchedule& schedule)
      : make_(make),
        of_(*words),
        order_(order),
        type_(words->shape().type()),
        lines_(words->shape().dim(0)),
        length_(words->shape().dim(1)),
        digit_bits_(schedule.digit_bits),
        segment_(schedule.tile),
        segments_(CeilDiv(length_, segment_)) {}

  Instr* ByComparing(Instr* words) { return Sorted(words, Less(std::nullopt)); }

  // In one kernel, by all bits.
  Instr* WholeLines(Instr* words) {
    return Unpadded(Sorted(Padded(words, segment_), Less(Digit{0, order_.bits})));
  }

  Instr* BySegments(Instr* words) {
    words = Padded(words, segments_ * segment_);
    for (int shift = 0; shift < order_.bits; shift += digit_bits_)
      words = Pass(words, {shift, std::min(digit_bits_, order_.bits - shift)});
    return Unpadded(words);
  }

 private:
  Shape Numbers(Dims dims) const { return Shape::Array(kRadixIndexType, std::move(dims)); }
  Instr* Filled(const Shape& shape, int64_t value) {
    return make_.Filled(shape, Literal::ScalarInt(shape.type(), value));
  }
  Instr* Iota(const Dims& dims, int64_t dimension) {
    return make_.Make(Op::kIota, Numbers(dims), {}, IotaAttrs{dimension});
  }
  Instr* Both(Op op, Instr* x, Instr* y) {
    return make_.Make(op, Shape::Array(x->shape().type(), x->shape().dims()), {x, y});
  }
  Instr* Times(Instr* x, int64_t factor) {
    return Both(Op::kMultiply, x, Filled(x->shape(), factor));
  }
  Instr* BroadcastTo(Instr* x, const Dims& dims, const Dims& at) {
    return make_.Make(Op::kBroadcast, Shape::Array(x->shape().type(), dims), {x},
                      DimensionsAttrs{at});
  }

  // `starts`: captured by the comparator, which does not use them.
  Instr* Sorted(Instr* words, Computation* less, Instr* starts = nullptr) {
    std::vector<Instr*> operands = {words};
    if (starts != nullptr) operands.push_back(starts);
    Instr* sorted = make_.Make(Op::kSort, Shape::Array(type_, words->shape().dims()), operands,
                               SortAttrs{.dimension = 1, .is_stable = true});
    sorted->set_called({less});
    sorted->set_captures(operands.size() - 1);
    return sorted;
  }

  // Pads lines up to `length` with words that sort last; they are sliced off again.
  Instr* Padded(Instr* words, int64_t length) {
    int64_t padding = length - length_;
    if (padding == 0) return words;
    uint64_t last = order_.is_descending ? 0 : KeyWord{order_.bits}.ones();
    Instr* with =
        make_.Constant(Literal::ScalarInt(type_, static_cast<int64_t>(last << order_.from)));
    return make_.Make(Op::kPad, Shape::Array(type_, {lines_, length_ + padding}), {words, with},
                      PadAttrs{{0, 0}, {0, padding}, {0, 0}});
  }

  Instr* Unpadded(Instr* words) {
    if (words->shape().dim(1) == length_) return words;
    return make_.Make(Op::kSlice, Shape::Array(type_, {lines_, length_}), {words},
                      SliceAttrs{{0, 0}, {lines_, length_}, {1, 1}});
  }

  // Compares words by a digit, or by the whole key if `digit` is empty.
  Computation* Less(const std::optional<Digit>& digit, const Instr* captured = nullptr) {
    Builder b(of_, "less_bits");
    Editor make(of_, *b.computation());
    WordCode code(make, Shape::Scalar(type_));
    Instr* words[2] = {b.Parameter(Shape::Scalar(type_)), b.Parameter(Shape::Scalar(type_))};
    if (captured != nullptr) b.Parameter(captured->shape());
    for (Instr*& word : words)
      word = digit ? DigitOf(code, order_, word, *digit) : KeyOf(code, order_, word);
    return b.FinishValid(b.Compare(words[0], words[1], CompareDirection::kLt));
  }

  // Sorts all lines by one digit.
  Instr* Pass(Instr* words, const Digit& digit) {
    Dims dims = {lines_, segments_, segment_};
    Instr* splits = make_.Reshaped(words, dims);
    WordCode arrays(make_, Shape::Array(type_, dims));
    Instr* digits =
        make_.Make(Op::kConvert, Numbers(dims), {DigitOf(arrays, order_, splits, digit)});
    Instr* starts = Starts(Counts(digits, digit.count()));
    return Sorted(words, Less(digit, starts), starts);
  }

  // [lines, segments, digits]: the histogram of digits.
  Instr* Counts(Instr* digits, int64_t count) {
    ScatterAttrs attrs;
    attrs.input_batching_dims = attrs.scatter_indices_batching_dims = {0, 1};
    attrs.inserted_window_dims = attrs.scatter_dims_to_operand_dims = {2};
    attrs.index_vector_dim = digits->shape().rank();  // each digit is an index
    Shape shape = Numbers({lines_, segments_, count});
    Instr* counts =
        make_.Make(Op::kScatter, shape, {Filled(shape, 0), digits, Filled(digits->shape(), 1)},
                   std::move(attrs));
    Builder b(of_, "count");
    Instr* old = b.Parameter(Shape::Scalar(kRadixIndexType));
    counts->set_called({b.FinishValid(b.Add(old, b.Parameter(Shape::Scalar(kRadixIndexType))))});
    return counts;
  }

  // [lines, digits, segments]: the start offset of each digit of each segment, over all lines.
  Instr* Starts(Instr* counts) {
    const Dims dims = {lines_, counts->shape().dim(2), segments_};
    counts = make_.Make(Op::kTranspose, Numbers(dims), {counts}, DimensionsAttrs{{0, 2, 1}});
    auto [up_to, of_digit] = Summed(counts);
    Instr* before = Both(Op::kSubtract, Summed(of_digit).first, of_digit);
    Instr* starts = Both(Op::kSubtract, up_to, counts);
    starts = Both(Op::kAdd, starts, BroadcastTo(before, dims, {0, 1}));
    if (lines_ > 1) starts = Both(Op::kAdd, starts, Times(Iota(dims, 0), segments_ * segment_));
    return starts;
  }

  // The inclusive prefix sums of the last dimension, and the total.
  std::pair<Instr*, Instr*> Summed(Instr* x) {
    const Dims dims = x->shape().dims();
    Dims rest(dims.begin(), dims.end() - 1);
    Builder b(of_, "sum");
    Instr* part = b.Parameter(Numbers(rest));
    Instr* sum = b.Add(part, b.Parameter(Numbers(rest)));
    Computation* step = b.FinishValid(b.Tuple({sum, sum}));
    ScanAttrs attrs;
    attrs.dimension = static_cast<int64_t>(rest.size());
    attrs.num_carries = 1;
    attrs.is_associative = true;
    Instr* scan = make_.Make(Op::kScan, Shape::Tuple({Numbers(dims), Numbers(rest)}),
                             {x, Filled(Numbers(rest), 0)}, std::move(attrs));
    scan->set_called({step});
    return {make_.Make(Op::kGetTupleElement, Numbers(dims), {scan}, TupleIndexAttrs{0}),
            make_.Make(Op::kGetTupleElement, Numbers(rest), {scan}, TupleIndexAttrs{1})};
  }

  Editor& make_;
  const Instr& of_;
  const RadixOrder& order_;
  ElementType type_;
  int64_t lines_, length_;
  int digit_bits_;
  int64_t segment_, segments_;
};

}  // namespace

Instr* RadixSort(Editor& make, Instr* words, const RadixOrder& order,
                 const SortSchedule& schedule) {
  RadixSorter sort(make, words, order, schedule);
  if (schedule.method != SortMethod::kRadix) return sort.ByComparing(words);
  return schedule.by_segments ? sort.BySegments(words) : sort.WholeLines(words);
}

Instr* RadixSort(Editor& make, Instr* words, const RadixOrder& order, const Machine& machine) {
  const Shape& shape = words->shape();
  SortSize size{.lines = shape.dim(0),
                .length = shape.dim(1),
                .bytes = BytesOf(shape.type()),
                .compared_bytes = BytesOf(shape.type()),
                .word_bits = InfoOf(shape.type()).bits,
                .key_bits = order.bits};
  return RadixSort(make, words, order, CheapestOf(WordSortSchedules(size, machine), size, machine));
}

}  // namespace tokamak
