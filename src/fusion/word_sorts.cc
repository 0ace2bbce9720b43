#include "fusion/word_sorts.h"

#include <bit>
#include <limits>

#include "fusion/sort_words.h"
#include "fusion/sorts.h"
#include "fusion/window_places.h"
#include "gen/gpu/gpu.h"
#include "gen/line_sort.h"
#include "gen/region.h"

namespace tokamak {
namespace {

ElementType UnsignedOf(int bits) {
  switch (bits) {
    case 8:
      return ElementType::kU8;
    case 16:
      return ElementType::kU16;
    case 32:
      return ElementType::kU32;
    default:
      return ElementType::kU64;
  }
}

// Bits of an element in memory.
int BitsOf(ElementType type) {
  return type == ElementType::kPred ? 8 : InfoOf(type).bits;
}

// Whether an element is its bits and nothing else.
bool IsBits(ElementType type) {
  return !IsComplex(type) && (type == ElementType::kPred || IsInteger(type) || IsReal(type)) &&
         BitsOf(type) >= 8 && std::has_single_bit(static_cast<unsigned>(BitsOf(type)));
}

class WordSorter {
 public:
  WordSorter(Instr& sort, const KeyOfSort& key)
      : sort_(sort), key_(key), make_(sort), line_(LineSortOf(sort)) {
    dims_ = {line_.lines, line_.length};
  }

  // Whether key and what goes with it are a word.
  bool Fits() {
    key_bits_ = BitsOf(KeyType());
    if (line_.along + 1 != line_.dims.size() || !IsBits(KeyType())) return false;
    if (line_.lines * line_.length > std::numeric_limits<int32_t>::max() / 2) return false;
    std::vector<size_t> others;
    for (size_t i = 0; i < sort_.operand_count(); ++i)
      if (i != key_.operand) others.push_back(i);
    int number_bits = std::bit_width(static_cast<uint64_t>(line_.length - 1));
    below_ = Below::kNothing;
    if (others.size() == 1 && IsBits(OperandType(others[0])) &&
        !CountsAlong(*sort_.operand(others[0]), static_cast<int64_t>(line_.along)) &&
        key_bits_ + BitsOf(OperandType(others[0])) <= 64) {
      below_ = Below::kOther;
      below_bits_ = BitsOf(OperandType(others[0]));
    } else if (!others.empty()) {
      below_ = Below::kNumber;
      below_bits_ = number_bits;
    }
    if (key_bits_ + below_bits_ > 64) return false;
    word_ =
        Shape::Array(key_bits_ + below_bits_ <= 32 ? ElementType::kU32 : ElementType::kU64, dims_);
    return true;
  }

  WordOrder Order() const {
    return {.from = below_bits_,
            .bits = key_bits_,
            .is_descending = key_.is_descending,
            .equal_zeros = key_.order == KeyOrder::kNumbers};
  }

  ElementType WordType() const { return word_.type(); }

  void Run(const Machine& machine) {
    Instr* sorted = SortedWords(make_, Words(), Order(), machine);
    std::vector<Instr*> results;
    for (size_t i = 0; i < sort_.operand_count(); ++i)
      results.push_back(Reshaped(make_, ResultOf(i, sorted), line_.dims));
    Instr* all = results[0];
    if (sort_.shape().IsTuple()) all = make_.Make(Op::kTuple, sort_.shape(), results);
    make_.Replace(all);
  }

 private:
  enum class Below { kNothing, kOther, kNumber };

  ElementType OperandType(size_t i) const { return sort_.operand(i)->shape().type(); }
  ElementType KeyType() const { return OperandType(key_.operand); }
  Instr* Word(uint64_t value) {
    Literal literal = Literal::ScalarInt(word_.type(), static_cast<int64_t>(value));
    return make_.Spread(make_.Constant(literal), word_);
  }
  Instr* Both(Op op, Instr* x, Instr* y) { return make_.Make(op, word_, {x, y}); }
  Instr* Converted(Instr* x, ElementType type) {
    if (x->shape().type() == type) return x;
    return make_.Make(Op::kConvert, Shape::Array(type, dims_), {x});
  }

  // The bits of an operand's elements, and elements of bits.
  Instr* BitsAsWord(size_t i) {
    Instr* x = Reshaped(make_, sort_.operand(i), dims_);
    ElementType type = OperandType(i), bits = UnsignedOf(BitsOf(type));
    if (type == ElementType::kPred) {
      x = Converted(x, bits);
    } else if (type != bits) {
      x = make_.Make(Op::kBitcastConvert, Shape::Array(bits, dims_), {x});
    }
    return Converted(x, word_.type());
  }
  Instr* FromBits(Instr* word, size_t i) {
    ElementType type = OperandType(i), bits = UnsignedOf(BitsOf(type));
    word = Converted(word, bits);
    if (type == ElementType::kPred) return Converted(word, type);
    if (type == bits) return word;
    return make_.Make(Op::kBitcastConvert, Shape::Array(type, dims_), {word});
  }

  // Bits of the key's type as integers of the same order, and back: of reals negative ones are
  // turned as a whole.
  Instr* Turned(Instr* bits, bool back) {
    if (key_.order == KeyOrder::kUnsigned) return bits;
    uint64_t sign = uint64_t{1} << (key_bits_ - 1), ones = sign | (sign - 1);
    if (key_.order == KeyOrder::kSigned) return Both(Op::kXor, bits, Word(sign));
    Instr* is_high =
        make_.Make(Op::kCompare, Shape::Array(ElementType::kPred, dims_), {bits, Word(sign)},
                   CompareAttrs{CompareDirection::kGe, CompareType::kNone});
    Instr *high = Word(back ? sign : ones), *low = Word(back ? ones : sign);
    return Both(Op::kXor, bits, make_.Make(Op::kSelect, word_, {is_high, high, low}));
  }

  // NaNs are all alike, and come after all other numbers.
  Instr* WithoutNan(Instr* word) {
    if (key_.order != KeyOrder::kNumbers) return word;
    Instr* key = Reshaped(make_, sort_.operand(key_.operand), dims_);
    Instr* is_nan = make_.Make(Op::kCompare, Shape::Array(ElementType::kPred, dims_), {key, key},
                               CompareAttrs{CompareDirection::kNe, CompareType::kNone});
    uint64_t sign = uint64_t{1} << (key_bits_ - 1);
    return make_.Make(Op::kSelect, word_, {is_nan, Word(sign | (sign - 1)), word});
  }

  Instr* Words() {
    Instr* word = WithoutNan(Turned(BitsAsWord(key_.operand), false));
    if (below_ == Below::kNothing) return word;
    word = Both(Op::kShiftLeft, word, Word(static_cast<uint64_t>(below_bits_)));
    Instr* below = below_ == Below::kOther ? BitsAsWord(1 - key_.operand)
                                           : make_.Make(Op::kIota, word_, {}, IotaAttrs{1});
    return Both(Op::kOr, word, below);
  }

  Instr* ResultOf(size_t i, Instr* sorted) {
    if (i == key_.operand) {
      if (below_bits_ > 0)
        sorted = Both(Op::kShiftRightLogical, sorted, Word(static_cast<uint64_t>(below_bits_)));
      return FromBits(Turned(sorted, true), i);
    }
    Instr* below = Both(Op::kAnd, sorted, Word((uint64_t{1} << below_bits_) - 1));
    if (below_ == Below::kOther) return FromBits(below, i);
    if (CountsAlong(*sort_.operand(i), static_cast<int64_t>(line_.along)))
      return Converted(below, OperandType(i));
    return Fetched(sort_.operand(i), Converted(below, ElementType::kS32));
  }

  // The elements of these numbers, of each line.
  Instr* Fetched(Instr* x, Instr* numbers) {
    x = Reshaped(make_, x, dims_);
    GatherAttrs fetch;
    fetch.collapsed_slice_dims = fetch.start_index_map = {1};
    fetch.operand_batching_dims = fetch.start_indices_batching_dims = {0};
    fetch.index_vector_dim = 2;
    fetch.slice_sizes = {1, 1};
    return make_.Make(Op::kGather, Shape::Array(x->shape().type(), dims_), {x, numbers},
                      std::move(fetch));
  }

  Instr& sort_;
  KeyOfSort key_;
  Expansion make_;
  LineSort line_;
  Dims dims_;
  Shape word_;
  int key_bits_ = 0, below_bits_ = 0;
  Below below_ = Below::kNothing;
};

}  // namespace

bool TryWordSort(Instr& sort, DecisionLog& log, const Machine& machine) {
  if (!IsSortable(sort) || IsTied(sort) || gpu::IsDigitSort(sort)) return false;
  int64_t longest = gpu::LongestStretch(sort), length = LineSortOf(sort).length;
  if (length <= longest) return false;
  std::optional<std::vector<KeyOfSort>> keys = KeysOf(sort);
  // Of what is neither before nor after a NaN, the order of comparisons decides.
  if (!keys || keys->size() != 1 || (*keys)[0].order == KeyOrder::kPlain) return false;
  WordSorter sorter(sort, (*keys)[0]);
  if (!sorter.Fits()) return false;
  int digits = DigitsOf(sorter.Order());
  if (!IsSortedAsOne(sorter.WordType(), length) && !IsSortedByDigits(length, machine)) return false;
  log.Add({.pass = "fuse",
           .rule = "sort.digits",
           .subject = LabelOf(sort),
           .origins = sort.origins(),
           .because = std::to_string(digits) + " digits"});
  sorter.Run(machine);
  return true;
}

}  // namespace tokamak
