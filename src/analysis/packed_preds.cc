#include "analysis/packed_preds.h"

#include <algorithm>
#include <cmath>

namespace tokamak {
namespace {

// The number of all elements; nullopt if there is none.
std::optional<double> NumberOf(const Instr& instr) {
  const Instr* value = &instr;
  while (value->op() == Op::kBroadcast) value = value->operand(0);
  if (value->op() != Op::kConstant || !value->shape().IsArray() ||
      value->shape().ElementCount() != 1)
    return std::nullopt;
  return value->attrs<ConstantAttrs>().literal.DoubleAt(0);
}
bool IsOne(const Instr& instr) {
  return NumberOf(instr) == 1;
}

bool IsIotaOf(const Instr& instr, int64_t dimension) {
  return instr.op() == Op::kIota && instr.attrs<IotaAttrs>().dimension == dimension;
}

bool IsCompare(const Instr& instr, CompareDirection direction) {
  return instr.op() == Op::kCompare && instr.attrs<CompareAttrs>().direction == direction;
}

// Adds a limit of the form: line + number >= and(iota, -32), or line + number <= or(iota, 31).
bool AddLimit(const Instr& compare, LiveWords& live) {
  bool is_last = IsCompare(compare, CompareDirection::kGe);
  if (!is_last && !IsCompare(compare, CompareDirection::kLe)) return false;
  const Instr &line = *compare.operand(0), &word = *compare.operand(1);
  bool is_word = word.op() == (is_last ? Op::kAnd : Op::kOr) &&
                 IsIotaOf(*word.operand(0), word.shape().rank() - 1) &&
                 NumberOf(*word.operand(1)) == (is_last ? -kPredsPerWord : kPredsPerWord - 1);
  if (!is_word || line.op() != Op::kAdd || line.operand(0)->op() != Op::kIota) return false;
  std::optional<double> number = NumberOf(*line.operand(1));
  if (!number) return false;
  int64_t dimension = line.operand(0)->attrs<IotaAttrs>().dimension;
  bool is_other = (live.first || live.last) && live.line != dimension;
  live.line = dimension;
  (is_last ? live.last : live.first) = static_cast<int64_t>(*number);
  return !is_other;
}

// The operand beside the number 1; null if there is none.
const Instr* BesideOne(const Instr& instr) {
  for (size_t i : {0, 1})
    if (IsOne(*instr.operand(i))) return instr.operand(1 - i);
  return nullptr;
}

// Whether it is a slice of the first elements of each dimension.
bool IsOfFirst(const Instr& slice) {
  const auto& attrs = slice.attrs<SliceAttrs>();
  return std::ranges::all_of(attrs.starts, [](int64_t start) { return start == 0; }) &&
         std::ranges::all_of(attrs.strides, [](int64_t stride) { return stride == 1; });
}

// Whether it repeats words along a last dimension of its own, and perhaps along leading ones.
bool RepeatsWords(const Instr& instr) {
  if (instr.op() != Op::kBroadcast) return false;
  const Dims& dimensions = instr.attrs<DimensionsAttrs>().dimensions;
  return !dimensions.empty() && std::ranges::is_sorted(dimensions) &&
         dimensions.back() == instr.shape().rank() - 2;
}

// Whether they differ in the last dimension at most.
bool DiffersInLast(const Dims& dims, const Dims& words) {
  return dims.size() == words.size() && !dims.empty() &&
         std::equal(dims.begin(), dims.end() - 1, words.begin());
}

// Goes back over reshapes that only insert or remove dimensions of size 1.
PackedWords WithoutUnitReshapes(PackedWords words) {
  while (words.array->op() == Op::kReshape) {
    const Instr& from = *words.array->operand(0);
    const Dims &to_sizes = words.array->shape().dims(), &from_sizes = from.shape().dims();
    Dims dims(from_sizes.size(), kNoDim);
    size_t next = 0;
    for (size_t d = 0; d < to_sizes.size(); ++d) {
      if (to_sizes[d] == 1) continue;
      while (next < from_sizes.size() && from_sizes[next] == 1) ++next;
      if (next == from_sizes.size() || from_sizes[next] != to_sizes[d]) return words;
      dims[next++] = words.dims[d];
    }
    if (from_sizes.empty() || from_sizes.back() != to_sizes.back()) return words;
    dims.back() = words.dims.back();
    words.array = &from;
    words.dims = std::move(dims);
  }
  return words;
}

}  // namespace

std::optional<LiveWords> LiveWordsOf(const Instr& pred) {
  LiveWords live;
  const Instr* limits = &pred;
  if (pred.op() == Op::kOr) {
    const Instr& shown = *pred.operand(1);
    if (!IsCompare(shown, CompareDirection::kNe) || shown.operand(0)->op() != Op::kBroadcast ||
        NumberOf(*shown.operand(1)) != -HUGE_VAL)
      return std::nullopt;
    live.masked = const_cast<Instr*>(shown.operand(0)->operand(0));
    limits = pred.operand(0);
  }
  bool are_both = limits->op() == Op::kAnd;
  bool fits = are_both ? AddLimit(*limits->operand(0), live) && AddLimit(*limits->operand(1), live)
                       : AddLimit(*limits, live);
  return fits ? std::optional(live) : std::nullopt;
}

PackedWords PackedWordsOf(const Instr& preds) {
  if (!preds.shape().IsArray() || preds.shape().type() != ElementType::kPred) return {};
  if (preds.op() == Op::kSelect) {
    PackedWords words = PackedWordsOf(*preds.operand(1));
    std::optional<LiveWords> live = LiveWordsOf(*preds.operand(0));
    if (words.array == nullptr || words.live || !live) return {};
    words.live = live;
    return words;
  }
  const Instr* reshape = &preds;
  if (reshape->op() == Op::kSlice) {
    const Dims &dims = reshape->shape().dims(), &all = reshape->operand(0)->shape().dims();
    if (!IsOfFirst(*reshape) || !DiffersInLast(dims, all)) return {};
    reshape = reshape->operand(0);
  }
  if (reshape->op() != Op::kReshape) return {};
  const Instr& compare = *reshape->operand(0);
  if (!IsCompare(compare, CompareDirection::kEq)) return {};
  const Instr* bit = BesideOne(compare);
  if (bit == nullptr || bit->op() != Op::kAnd || bit->shape().type() != ElementType::kU32)
    return {};
  const Instr* shift = BesideOne(*bit);
  if (shift == nullptr || shift->op() != Op::kShiftRightLogical) return {};
  const Instr &repeat = *shift->operand(0), &number = *shift->operand(1);
  const Dims& dims = shift->shape().dims();
  bool is_bit = dims.back() == kPredsPerWord && IsIotaOf(number, shift->shape().rank() - 1);
  if (!is_bit || !RepeatsWords(repeat)) return {};
  Dims words(dims.begin(), dims.end() - 1);
  bool is_flat = DiffersInLast(reshape->shape().dims(), words) &&
                 reshape->shape().dims().back() == words.back() * kPredsPerWord;
  if (!is_flat) return {};
  return WithoutUnitReshapes({repeat.operand(0), repeat.attrs<DimensionsAttrs>().dimensions});
}

}  // namespace tokamak
