// Functions of one and two numbers: rules that are bit-exact.

#include "rewrite/rules/conditions.h"
#include "rewrite/rules/topics.h"

namespace tokamak {
namespace {

using m::a;
using m::x;
using m::y;

// In f64 the last bit of a power may be wrong; in narrower types the error is rounded away.
bool IsNarrowReal(const m::Match& match) {
  return IsReal(match.type()) && match.type() != ElementType::kF64;
}

}  // namespace

// long: a table
std::span<const Rule> FunctionRules() {
  static constexpr Rule kRules[] = {
      {"power.zero", "x^0 is 1, of NaN too", m::Power(x, m::Zero()), m::One()},
      {"power.one", "x^1 is x", m::Power(x, m::One()), x, IsNotComplex},
      {"power.two", "x^2 is x * x", m::Power(x, m::Splat(y)), m::Multiply(x, x),
       [](const m::Match& match) {
         if (IsNarrowReal(match)) return match.number(y).DoubleAt(0) == 2;
         return IsInteger(match.type()) && match.number(y).IntAt(0) == 2;
       },
       R"(x = f32[61] parameter(0)
          c = f32[] constant(2)
          b = f32[61] broadcast(c), dimensions={}
          ROOT p = f32[61] power(x, b))"},
      {"power.minus-one", "x^-1 is 1 / x", m::Power(x, m::MinusOne()), m::Divide(m::One(), x),
       IsNarrowReal},
      {"power.of-one", "1^x is 1, for NaN too", m::Power(m::One(), x), m::One(), IsNotComplex},
      {"bitcast-convert.same", "a bitcast to the same type is its operand", m::BitcastConvert(x), x,
       [](const m::Match& match) { return match[x]->shape() == match.shape(); },
       R"(x = f32[6] parameter(0)
          ROOT c = f32[6] bitcast-convert(x))"},
      // Only through integers: a NaN may lose bits when it passes through a float.
      {"bitcast-convert.composes", "a bitcast of a bitcast is one",
       m::BitcastConvert(m::Bind(a, m::BitcastConvert(x))),
       [](Editor& edit, const m::Match& match) -> Instr* {
         if (match[x]->shape().type() == match.type()) return match[x];
         return edit.MakeShaped(Op::kBitcastConvert, match.shape().WithoutLayout(), {match[x]});
       },
       [](const m::Match& match) {
         return IsInteger(match[a]->shape().type()) && SameDims(match[a]->shape(), match.shape()) &&
                SameDims(match[x]->shape(), match.shape());
       },
       R"(x = f32[6] parameter(0)
          a = s32[6] bitcast-convert(x)
          ROOT c = u32[6] bitcast-convert(a))"},
      {"reduce-precision.of-narrow",
       "reduce-precision to at least the precision of the operand does nothing",
       m::ReducePrecision(x), x,
       [](const m::Match& match) {
         const auto& attrs = match.root()->attrs<ReducePrecisionAttrs>();
         ElementType type = match.type();
         if (match[x]->op() == Op::kConvert) {
           ElementType from = match[x]->operand(0)->shape().type();
           if (IsIeee(from) && IsIeee(type) && InfoOf(from).bits < InfoOf(type).bits) type = from;
         }
         if (!IsIeee(type)) return false;
         const FloatFormat& format = FormatOf(type);
         return attrs.exponent_bits >= format.exponent_bits &&
                attrs.mantissa_bits >= format.mantissa_bits;
       },
       R"(x = bf16[61] parameter(0)
          a = f32[61] convert(x)
          ROOT c = f32[61] reduce-precision(a), exponent_bits=8, mantissa_bits=7)"},
  };
  return kRules;
}

}  // namespace tokamak
