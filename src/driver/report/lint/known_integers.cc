#include "driver/report/lint/known_integers.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "ir/compare_direction.h"

namespace tokamak {
namespace {

using Integers = std::vector<int64_t>;

// Elements of one array, and instructions behind one value (chosen: bounds the time).
constexpr int64_t kMostKnownElements = int64_t{1} << 16;
constexpr size_t kMostKnownInstrs = 64;

class KnownIntegers {
 public:
  // Null if it is not known. The pointer is valid while this object lives.
  const Integers* Of(const Instr& value) {
    if (auto at = known_.find(&value); at != known_.end())
      return at->second ? &*at->second : nullptr;
    if (known_.size() >= kMostKnownInstrs) return nullptr;
    known_.emplace(&value, std::nullopt);
    std::optional<Integers> computed = IsSmall(value) ? Compute(value) : std::nullopt;
    std::optional<Integers>& slot = known_[&value];
    slot = std::move(computed);
    return slot ? &*slot : nullptr;
  }

 private:
  static bool IsSmall(const Instr& value) {
    const Shape& shape = value.shape();
    return shape.IsStaticArray() && shape.quant() == nullptr &&
           (IsInteger(shape.type()) || shape.type() == ElementType::kPred) &&
           shape.ElementCount() <= kMostKnownElements;
  }

  std::optional<Integers> Compute(const Instr& value) {
    auto count = static_cast<size_t>(value.shape().ElementCount());
    Integers result(count);
    if (value.op() == Op::kConstant) {
      const Literal& literal = value.attrs<ConstantAttrs>().literal;
      for (size_t i = 0; i < count; ++i) result[i] = literal.IntAt(static_cast<int64_t>(i));
      return result;
    }
    if (value.op() == Op::kIota) {
      auto dimension = static_cast<size_t>(value.attrs<IotaAttrs>().dimension);
      int64_t inner = 1;
      for (size_t d = dimension + 1; d < value.shape().dims().size(); ++d)
        inner *= value.shape().dim(d);
      for (size_t i = 0; i < count; ++i)
        result[i] = static_cast<int64_t>(i) / inner % value.shape().dim(dimension);
      return result;
    }
    std::vector<const Integers*> operands;
    for (const Instr* operand : value.operands()) {
      const Integers* known = Of(*operand);
      if (known == nullptr) return std::nullopt;
      operands.push_back(known);
    }
    if (value.op() == Op::kBroadcast) return Broadcast(value, *operands[0]);
    if (value.op() == Op::kReshape || value.op() == Op::kConvert) return *operands[0];
    for (size_t i = 0; i < count; ++i) {
      std::optional<int64_t> element = Element(value, operands, i);
      if (!element) return std::nullopt;
      result[i] = *element;
    }
    return result;
  }

  static Integers Broadcast(const Instr& value, const Integers& from) {
    const Dims &to = value.shape().dims(), &of = value.operand(0)->shape().dims();
    const Dims& dimensions = value.attrs<DimensionsAttrs>().dimensions;
    Dims strides(to.size());  // in the operand, per dimension of the result
    int64_t stride = 1;
    for (size_t d = of.size(); d-- > 0;) {
      if (of[d] > 1) strides[static_cast<size_t>(dimensions[d])] = stride;
      stride *= of[d];
    }
    Integers result(static_cast<size_t>(value.shape().ElementCount()));
    for (size_t i = 0; i < result.size(); ++i) {
      auto rest = static_cast<int64_t>(i);
      int64_t at = 0;
      for (size_t d = to.size(); d-- > 0;) {
        at += rest % to[d] * strides[d];
        rest /= to[d];
      }
      result[i] = from[static_cast<size_t>(at)];
    }
    return result;
  }

  static std::optional<int64_t> Element(const Instr& value,
                                        const std::vector<const Integers*>& operands, size_t i) {
    auto x = [&](size_t operand) {
      const Integers& of = *operands[operand];
      return of.size() == 1 ? of[0] : of[i];  // clamp has scalar limits
    };
    int64_t result = 0;
    switch (value.op()) {
      case Op::kAdd:
        return __builtin_add_overflow(x(0), x(1), &result) ? std::nullopt : std::optional(result);
      case Op::kSubtract:
        return __builtin_sub_overflow(x(0), x(1), &result) ? std::nullopt : std::optional(result);
      case Op::kMultiply:
        return __builtin_mul_overflow(x(0), x(1), &result) ? std::nullopt : std::optional(result);
      case Op::kMinimum:
        return std::min(x(0), x(1));
      case Op::kMaximum:
        return std::max(x(0), x(1));
      case Op::kCompare:
        return Holds(x(0), value.attrs<CompareAttrs>().direction, x(1)) ? 1 : 0;
      case Op::kSelect:
        return x(0) != 0 ? x(1) : x(2);
      case Op::kClamp:
        return std::min(std::max(x(0), x(1)), x(2));
      default:
        return std::nullopt;
    }
  }

  std::unordered_map<const Instr*, std::optional<Integers>> known_;
};

}  // namespace

std::optional<std::vector<int64_t>> IntegersOf(const Instr& value) {
  KnownIntegers known;
  const Integers* integers = known.Of(value);
  return integers == nullptr ? std::nullopt : std::optional(*integers);
}

}  // namespace tokamak
