#include "analysis/packed_preds.h"

#include <algorithm>

namespace tokamak {
namespace {

bool IsOne(const Instr& instr) {
  const Instr* value = &instr;
  while (value->op() == Op::kBroadcast) value = value->operand(0);
  return value->op() == Op::kConstant && value->shape().IsArray() &&
         value->shape().ElementCount() == 1 &&
         value->attrs<ConstantAttrs>().literal.DoubleAt(0) == 1;
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
    words = {&from, std::move(dims)};
  }
  return words;
}

}  // namespace

PackedWords PackedWordsOf(const Instr& preds) {
  if (!preds.shape().IsArray() || preds.shape().type() != ElementType::kPred) return {};
  const Instr* reshape = &preds;
  if (reshape->op() == Op::kSlice) {
    const Dims &dims = reshape->shape().dims(), &all = reshape->operand(0)->shape().dims();
    if (!IsOfFirst(*reshape) || !DiffersInLast(dims, all)) return {};
    reshape = reshape->operand(0);
  }
  if (reshape->op() != Op::kReshape) return {};
  const Instr& compare = *reshape->operand(0);
  if (compare.op() != Op::kCompare ||
      compare.attrs<CompareAttrs>().direction != CompareDirection::kEq)
    return {};
  const Instr* bit = BesideOne(compare);
  if (bit == nullptr || bit->op() != Op::kAnd || bit->shape().type() != ElementType::kU32)
    return {};
  const Instr* shifted = BesideOne(*bit);
  if (shifted == nullptr || shifted->op() != Op::kShiftRightLogical) return {};
  const Instr& shift = *shifted;
  const Instr &repeat = *shift.operand(0), &number = *shift.operand(1);
  const Dims& dims = shift.shape().dims();
  bool is_bit = number.op() == Op::kIota && dims.back() == kPredsPerWord &&
                number.attrs<IotaAttrs>().dimension == shift.shape().rank() - 1;
  if (!is_bit || !RepeatsWords(repeat)) return {};
  Dims words(dims.begin(), dims.end() - 1);
  bool is_flat = DiffersInLast(reshape->shape().dims(), words) &&
                 reshape->shape().dims().back() == words.back() * kPredsPerWord;
  if (!is_flat) return {};
  return WithoutUnitReshapes({repeat.operand(0), repeat.attrs<DimensionsAttrs>().dimensions});
}

}  // namespace tokamak
