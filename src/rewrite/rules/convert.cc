// Conversions between element types.

#include "rewrite/rules/conditions.h"
#include "rewrite/rules/topics.h"

namespace tokamak {
namespace {

using m::a;
using m::x;

// Whether every number of `from` is representable in `to`, including both zeros, infinities and
// NaN.
bool Holds(ElementType to, ElementType from) {
  if (to == from) return true;
  const ElementTypeInfo &wide = InfoOf(to), &narrow = InfoOf(from);
  if (narrow.kind == TypeKind::kBool) return wide.kind != TypeKind::kBool && wide.bits >= 4;
  if (wide.kind == narrow.kind && IsInteger(to)) return wide.bits >= narrow.bits;
  if (IsSigned(to) && IsUnsigned(from)) return wide.bits > narrow.bits;
  if (IsIeee(to) && IsInteger(from)) {
    int bits = narrow.bits - (IsSigned(from) ? 1 : 0);
    return bits <= FormatOf(to).mantissa_bits + 1 && bits <= FormatOf(to).bias;
  }
  if (IsReal(to) && IsReal(from))
    return (to == ElementType::kF64 && narrow.bits < 64) ||
           (to == ElementType::kF32 && narrow.bits <= 16);
  return false;
}

bool IsNumberType(ElementType type) {
  return IsInteger(type) || IsReal(type);
}

// Whether converting x from A to B to C equals converting it from A to C, given that B can
// represent A. From integer through floating point to integer it does not: floating-point
// conversions saturate, integer conversions wrap.
bool IsThroughWider(const m::Match& match) {
  ElementType from = match[x]->shape().type(), through = match[a]->shape().type();
  if (IsComplex(through) || IsComplex(match.type()) || !Holds(through, from)) return false;
  bool wraps = IsInteger(from) && IsInteger(match.type());
  return !wraps || IsInteger(through) || Holds(match.type(), from);
}

}  // namespace

// long: a table
std::span<const Rule> ConvertRules() {
  static constexpr Rule kRules[] = {
      {"convert.same", "a conversion to the type that it has already", m::Convert(x), x,
       [](const m::Match& match) { return match[x]->shape() == match.shape(); },
       R"(x = f32[6] parameter(0)
          ROOT c = f32[6] convert(x))"},
      {"convert.round-trip", "to a wider type and back again",
       m::Convert(m::Bind(a, m::Convert(x))), x,
       [](const m::Match& match) {
         return match[x]->shape() == match.shape() &&
                Holds(match[a]->shape().type(), match[x]->shape().type());
       },
       R"(x = bf16[6] parameter(0)
          a = f32[6] convert(x)
          ROOT c = bf16[6] convert(a))"},
      {"convert.through-wider", "to a wider type and on", m::Convert(m::Bind(a, m::Convert(x))),
       [](Editor& edit, const m::Match& match) {
         return edit.MakeShaped(Op::kConvert, match.shape().WithoutLayout(), {match[x]});
       },
       IsThroughWider,
       R"(x = s8[61] parameter(0)
          a = f32[61] convert(x)
          ROOT c = f64[61] convert(a))"},
      {"convert.through-narrower", "integers cut twice", m::Convert(m::Bind(a, m::Convert(x))),
       [](Editor& edit, const m::Match& match) {
         return edit.MakeShaped(Op::kConvert, match.shape().WithoutLayout(), {match[x]});
       },
       [](const m::Match& match) {
         ElementType from = match[x]->shape().type(), through = match[a]->shape().type();
         return IsInteger(from) && IsInteger(through) && IsInteger(match.type()) &&
                InfoOf(through).bits >= InfoOf(match.type()).bits;
       },
       R"(x = s64[61] parameter(0)
          a = u16[61] convert(x)
          ROOT c = s8[61] convert(a))"},
      {"convert.iota", "an iota as another type is an iota of it",
       m::Convert(m::Bind(a, m::Iota())),
       [](Editor& edit, const m::Match& match) {
         return edit.MakeShaped(Op::kIota, match.shape().WithoutLayout(), {},
                                match[a]->attrs<IotaAttrs>());
       },
       [](const m::Match& match) {
         // Every index is representable in both types.
         int64_t last = SizeAt(match.shape(), match[a]->attrs<IotaAttrs>().dimension) - 1;
         for (ElementType type : {match.type(), match[a]->shape().type()}) {
           if (!IsNumberType(type)) return false;
           int bits = InfoOf(type).bits - (IsSigned(type) ? 1 : 0);
           if (IsReal(type)) bits = IsIeee(type) ? FormatOf(type).mantissa_bits + 1 : 0;
           if (bits < 62 && last >= int64_t{1} << bits) return false;
         }
         return true;
       },
       R"(i = s32[3,61] iota(), iota_dimension=1
          ROOT c = f32[3,61] convert(i))"},
  };
  return kRules;
}

}  // namespace tokamak
