#include "analysis/product_factors.h"

#include <algorithm>

#include "analysis/dot_chains.h"

namespace tokamak {
namespace {

// Factors at most; further ones are not split. Chosen: several times what attention has.
constexpr size_t kMaxFactors = 32;

bool IsFloat(const Instr& instr) {
  return instr.shape().IsArray() && IsReal(instr.shape().type());
}

class FactorFinder {
 public:
  explicit FactorFinder(const Dims& inside) : inside_(inside) {}

  Factors Run(const Instr& value) {
    factors_.mantissa_bits = FormatOf(value.shape().type()).mantissa_bits;
    open_.push_back({AlongItself(value), Factor::How::kTimes});
    while (!open_.empty()) {
      Factor next = std::move(open_.back());
      open_.pop_back();
      Expand(std::move(next));
    }
    return std::move(factors_);
  }

 private:
  void Expand(Factor factor) {
    while (std::optional<ValueAlong> from = BeforeMove(factor.value))
      factor.value = std::move(*from);
    bool is_inside = std::ranges::any_of(
        factor.value.along, [&](int64_t dim) { return std::ranges::count(inside_, dim) > 0; });
    if (is_inside && factors_.all.size() + open_.size() < kMaxFactors && Split(factor)) {
      int bits = FormatOf(factor.value.instr->shape().type()).mantissa_bits;
      factors_.mantissa_bits = std::min(factors_.mantissa_bits, bits);
    } else {
      factors_.all.push_back(std::move(factor));
    }
  }

  void Open(const Factor& of, size_t operand, Factor::How how) {
    open_.push_back({{of.value.instr->operand(operand), of.value.along}, how});
  }

  bool Split(const Factor& factor) {
    using How = Factor::How;
    const Instr& instr = *factor.value.instr;
    bool is_divisor = factor.how == How::kDividedBy;
    if (!IsFloat(instr) || (factor.how != How::kTimes && !is_divisor)) return false;
    switch (instr.op()) {
      case Op::kConvert:
        if (!IsFloat(*instr.operand(0))) return false;
        Open(factor, 0, factor.how);
        return true;
      case Op::kNegate:
        factors_.is_negative = !factors_.is_negative;
        Open(factor, 0, factor.how);
        return true;
      case Op::kMultiply:
        Open(factor, 1, factor.how);
        Open(factor, 0, factor.how);
        return true;
      case Op::kDivide:
        Open(factor, 1, is_divisor ? How::kTimes : How::kDividedBy);
        Open(factor, 0, factor.how);
        return true;
      case Op::kSelect:
        return !is_divisor && SplitSelect(factor);
      default:
        return false;
    }
  }

  bool SplitSelect(const Factor& factor) {
    const Instr& select = *factor.value.instr;
    if (select.operand(0)->shape().dims() != select.shape().dims()) return false;
    for (size_t live : {1, 2}) {
      if (!IsConstantZero(*select.operand(3 - live))) continue;
      Open(factor, live, factor.how);
      Open(factor, 0, live == 1 ? Factor::How::kWhere : Factor::How::kWhereNot);
      return true;
    }
    return false;
  }

  const Dims& inside_;
  Factors factors_;
  std::vector<Factor> open_;
};

}  // namespace

ValueAlong AlongItself(const Instr& array) {
  return {&array, *DimsAlong(array).Of(array)};
}

std::optional<ValueAlong> BeforeMove(const ValueAlong& value) {
  const Instr& instr = *value.instr;
  if (instr.op() == Op::kCopy) return ValueAlong{instr.operand(0), value.along};
  if (instr.op() != Op::kBroadcast && instr.op() != Op::kTranspose && instr.op() != Op::kReshape)
    return std::nullopt;
  ValueAlong from{instr.operand(0), {}};
  const Dims& sizes = from.instr->shape().dims();
  if (instr.op() == Op::kBroadcast) {
    for (int64_t d : instr.attrs<DimensionsAttrs>().dimensions)
      from.along.push_back(value.along[static_cast<size_t>(d)]);
    for (size_t d = 0; d < sizes.size(); ++d)
      if (sizes[d] == 1) from.along[d] = DimsAlong::kUnit;
    return from;
  }
  if (instr.op() == Op::kTranspose) {
    from.along.resize(value.along.size());
    const Dims& dimensions = instr.attrs<DimensionsAttrs>().dimensions;
    for (size_t d = 0; d < dimensions.size(); ++d)
      from.along[static_cast<size_t>(dimensions[d])] = value.along[d];
    return from;
  }
  Dims rest, rest_sizes, from_sizes = sizes;
  for (size_t d = 0; d < value.along.size(); ++d) {
    if (instr.shape().dim(d) == 1) continue;
    rest.push_back(value.along[d]);
    rest_sizes.push_back(instr.shape().dim(d));
  }
  std::erase(from_sizes, 1);
  if (from_sizes != rest_sizes) return std::nullopt;
  size_t next = 0;
  for (int64_t size : sizes) from.along.push_back(size == 1 ? DimsAlong::kUnit : rest[next++]);
  return from;
}

Factors FactorsOf(const Instr& value, const Dims& inside) {
  return FactorFinder(inside).Run(value);
}

}  // namespace tokamak
