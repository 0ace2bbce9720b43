// Conversions between element types.

#include "rewrite/rules/topics.h"

namespace tokamak {
namespace {

using m::a;
using m::x;

// Every number of `from` is a number of `to`.
bool Holds(ElementType to, ElementType from) {
  if (to == from) return true;
  const ElementTypeInfo &wide = InfoOf(to), &narrow = InfoOf(from);
  if (narrow.kind == TypeKind::kBool)  // f8e8m0fnu has no 0
    return wide.kind != TypeKind::kBool && wide.bits >= 8 && to != ElementType::kF8E8M0FNU;
  if (wide.kind == narrow.kind && IsInteger(to)) return wide.bits >= narrow.bits;
  if (IsSigned(to) && IsUnsigned(from)) return wide.bits > narrow.bits;
  if (IsReal(to) && IsReal(from))
    return (to == ElementType::kF64 && narrow.bits < 64) ||
           (to == ElementType::kF32 && narrow.bits <= 16);
  return false;
}

}  // namespace

std::vector<Rule> ConvertRules() {
  return {
      {"convert.same", "a conversion to the type that it has already", m::Convert(x), x,
       [](const m::Match& match) { return match[x]->shape() == match.shape(); },
       R"(x = f32[6] parameter(0)
          ROOT c = f32[6] convert(x))"},
      {"convert.there-and-back", "to a wider type and back again",
       m::Convert(m::Bind(a, m::Convert(x))), x,
       [](const m::Match& match) {
         return match[x]->shape() == match.shape() &&
                Holds(match[a]->shape().type(), match[x]->shape().type());
       },
       R"(x = bf16[6] parameter(0)
          a = f32[6] convert(x)
          ROOT c = bf16[6] convert(a))"},
  };
}

}  // namespace tokamak
