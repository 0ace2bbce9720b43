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

// Whether it is a slice of the first elements of each dimension.
bool IsOfFirst(const Instr& slice) {
  const auto& attrs = slice.attrs<SliceAttrs>();
  return std::ranges::all_of(attrs.starts, [](int64_t start) { return start == 0; }) &&
         std::ranges::all_of(attrs.strides, [](int64_t stride) { return stride == 1; });
}

// Whether it repeats an array along a last dimension of its own.
bool RepeatsAlongLast(const Instr& instr) {
  if (instr.op() != Op::kBroadcast || instr.shape().rank() != instr.operand(0)->shape().rank() + 1)
    return false;
  const Dims& dimensions = instr.attrs<DimensionsAttrs>().dimensions;
  for (size_t d = 0; d < dimensions.size(); ++d)
    if (dimensions[d] != static_cast<int64_t>(d)) return false;
  return true;
}

// Whether they differ in the last dimension at most.
bool DiffersInLast(const Dims& dims, const Dims& words) {
  return dims.size() == words.size() && !dims.empty() &&
         std::equal(dims.begin(), dims.end() - 1, words.begin());
}

}  // namespace

const Instr* PackedWordsOf(const Instr& preds) {
  if (!preds.shape().IsArray() || preds.shape().type() != ElementType::kPred) return nullptr;
  const Instr* reshape = &preds;
  if (reshape->op() == Op::kSlice) {
    const Dims &dims = reshape->shape().dims(), &all = reshape->operand(0)->shape().dims();
    if (!IsOfFirst(*reshape) || !DiffersInLast(dims, all)) return nullptr;
    reshape = reshape->operand(0);
  }
  if (reshape->op() != Op::kReshape) return nullptr;
  const Instr& compare = *reshape->operand(0);
  if (compare.op() != Op::kCompare ||
      compare.attrs<CompareAttrs>().direction != CompareDirection::kEq ||
      !IsOne(*compare.operand(1)))
    return nullptr;
  const Instr& bit = *compare.operand(0);
  if (bit.op() != Op::kAnd || bit.shape().type() != ElementType::kU32 || !IsOne(*bit.operand(1)))
    return nullptr;
  const Instr& shift = *bit.operand(0);
  if (shift.op() != Op::kShiftRightLogical) return nullptr;
  const Instr &repeat = *shift.operand(0), &number = *shift.operand(1);
  const Dims& dims = shift.shape().dims();
  bool is_bit = number.op() == Op::kIota && dims.back() == kPredsPerWord &&
                number.attrs<IotaAttrs>().dimension == shift.shape().rank() - 1;
  if (!is_bit || !RepeatsAlongLast(repeat)) return nullptr;
  const Instr& words = *repeat.operand(0);
  const Dims& of_words = words.shape().dims();
  bool is_flat = DiffersInLast(reshape->shape().dims(), of_words) &&
                 reshape->shape().dims().back() == of_words.back() * kPredsPerWord;
  return is_flat ? &words : nullptr;
}

}  // namespace tokamak
