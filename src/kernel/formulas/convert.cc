// convert, and bitcast-convert between types of equal width.

#include <cmath>

#include "kernel/formulas/functions.h"

namespace tokamak {
namespace formulas {
namespace {

// Truncates. Out-of-range numbers saturate, NaN becomes 0.
Scalar RealToInteger(ElementType to, Scalar x) {
  int bits = InfoOf(to).bits;
  ScalarType type = ComputeType(to);
  double high = std::ldexp(1.0, IsSigned(to) ? bits - 1 : bits);
  double low = IsSigned(to) ? -high : 0;
  if (bits <= 16) {  // both bounds are exact, and an s32 holds all values
    Scalar clamped = LesserOf(GreaterOf(x, x.Like(low)), x.Like(high - 1));
    return Choose(x == x, clamped, x.Like(0)).As(ScalarType::kS32).As(type);
  }
  Bits most = (~Bits{0} >> (64 - bits)) >> (IsSigned(to) ? 1 : 0);
  Bits least = IsSigned(to) ? Bits{1} << (bits - 1) : 0;
  KernelBuilder& b = x.builder();
  Scalar fits = (x > low) & (x < high);
  Scalar whole = Choose(fits, x, x.Like(0)).As(type);
  Scalar end = Choose(x <= low, b.ConstantBits(type, least), whole);
  return Choose(x >= high, b.ConstantBits(type, most), end);
}

// For an integer that does not fit an f64 and will be rounded to a narrow real: discarded low bits
// set a sticky bit.
Scalar Sticky(Scalar x) {
  KernelBuilder& b = x.builder();
  auto number = [&](Bits bits) { return b.ConstantBits(x.type(), bits); };
  Scalar size = IsSigned(x.type()) ? Choose(x < 0, -x, x).BitsAs(ScalarType::kU64) : x;
  Scalar is_wide = size >= b.ConstantBits(ScalarType::kU64, Bits{1} << 53);
  Scalar is_cut = is_wide & ((x & number(0xfff)) != 0);
  return Choose(is_cut, (x & number(~Bits{0xfff})) | number(0x800), x);
}

Scalar IntegerToReal(ElementType to, Scalar x) {
  int bits = InfoOf(x.type()).bits;
  if (!IsNarrow(to)) return x.As(ComputeType(to));
  if (bits <= 16) return RoundTo(to, x.As(ScalarType::kF32));
  if (bits == 64) x = Sticky(x);
  return RoundTo(to, x.As(ScalarType::kF64));
}

bool Holds(ElementType to, ElementType from) {  // whether `to` can represent every number of `from`
  if (to == from || InfoOf(to).bits >= 32) return true;
  return false;
}

Scalar ConvertPart(ElementType from, ElementType to, Scalar x) {
  TypeKind kind = KindOf(from), target = KindOf(to);
  if (target == TypeKind::kBool) return kind == TypeKind::kBool ? x : x != 0;
  if (kind == TypeKind::kBool) {
    KernelBuilder& b = x.builder();
    return Choose(x, ConstantElement(b, to, 1)[0], ConstantElement(b, to, 0)[0]);
  }
  bool real = kind == TypeKind::kReal, to_real = target == TypeKind::kReal;
  if (real && to_real) return Holds(to, from) ? x.As(ComputeType(to)) : RoundTo(to, x);
  if (real) return RealToInteger(to, x);
  if (to_real) return IntegerToReal(to, x);
  return WrapTo(to, x.As(ComputeType(to)));
}

}  // namespace
}  // namespace formulas

Element ConvertElement(KernelBuilder& b, ElementType from, ElementType to, Element x) {
  if (from == to) return x;
  ElementType from_part = RealPartOf(from), to_part = RealPartOf(to);
  if (IsComplex(from) && to == ElementType::kPred) return {(x[0] != 0) | (x[1] != 0), Scalar()};
  Element result{formulas::ConvertPart(from_part, to_part, x[0]), Scalar()};
  if (!IsComplex(to)) return result;
  result[1] = IsComplex(from) ? formulas::ConvertPart(from_part, to_part, x[1])
                              : b.Constant(ComputeType(to), 0);
  return result;
}

}  // namespace tokamak
