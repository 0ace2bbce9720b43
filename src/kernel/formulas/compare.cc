// The compare op.

#include "kernel/formulas/functions.h"

namespace tokamak::formulas {
namespace {

Scalar InOrder(CompareDirection direction, Scalar x, Scalar y) {
  switch (direction) {
    case CompareDirection::kEq:
      return x == y;
    case CompareDirection::kNe:
      return x != y;
    case CompareDirection::kLt:
      return x < y;
    case CompareDirection::kLe:
      return x <= y;
    case CompareDirection::kGt:
      return x > y;
    case CompareDirection::kGe:
      break;
  }
  return x >= y;
}

// An integer key with the total order -NaN < -inf < ... < -0 < 0 < ... < inf < NaN. Narrow types
// have one NaN.
Scalar OrderKey(ElementType type, Scalar x) {
  if (IsNarrow(type)) x = Choose(IsNan(x), NotANumber(x), x);
  bool wide = x.type() == ScalarType::kF64;
  ScalarType key = wide ? ScalarType::kS64 : ScalarType::kS32;
  Scalar bits = x.BitsAs(key);
  Bits most = wide ? ~Bits{0} >> 1 : Bits{0x7fffffff};
  return bits ^ ((bits >> bits.Like(wide ? 63 : 31)) & x.builder().ConstantBits(key, most));
}

}  // namespace

std::optional<Scalar> Compare(ElementType type, const CompareAttrs& attrs, const Element& x,
                              const Element& y) {
  if (IsComplex(type)) {
    if (attrs.direction == CompareDirection::kNe) return (x[0] != y[0]) | (x[1] != y[1]);
    return (x[0] == y[0]) & (x[1] == y[1]);
  }
  if (type == ElementType::kPred)
    return InOrder(attrs.direction, x[0].As(ScalarType::kU8), y[0].As(ScalarType::kU8));
  if (IsReal(type) && attrs.type == CompareType::kTotalOrder)
    return InOrder(attrs.direction, OrderKey(type, x[0]), OrderKey(type, y[0]));
  return InOrder(attrs.direction, x[0], y[0]);
}

}  // namespace tokamak::formulas
