// Functions of one and two numbers: rules that are bit-exact.

#include <cmath>

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

// Whether it is integral: it was already rounded, or was an integer.
bool IsWhole(const Instr* instr) {
  switch (instr->op()) {
    case Op::kFloor:
    case Op::kCeil:
    case Op::kRoundAfz:
    case Op::kRoundEven:
    case Op::kSign:
      return true;
    case Op::kConvert: {
      ElementType from = instr->operand(0)->shape().type();
      return IsInteger(from) || from == ElementType::kPred;
    }
    default:
      return false;
  }
}
// The largest number of f6e2m3fn is 7.5, and larger values saturate to it.
bool EndsWhole(ElementType type) {
  double last = RoundToType(type, 1e30);
  return std::isnan(last) || std::floor(last) == last;
}
bool TakesWhole(const m::Match& match) {
  return IsReal(match.type()) && IsWhole(match[x]) && EndsWhole(match.type());
}

bool HasPlainAccuracy(const m::Match& match) {
  return match.root()->attrs<AccuracyAttrs>() == AccuracyAttrs{};
}
bool IsOfReals(const m::Match& match) {
  return IsReal(match[x]->shape().type());
}

}  // namespace

// long: a table
std::span<const Rule> FunctionRules() {
  static constexpr Rule kRules[] = {
      {"floor.whole", "floor of a whole number", m::Floor(x), x, TakesWhole,
       R"(x = f32[61] parameter(0)
          c = f32[61] ceil(x)
          ROOT f = f32[61] floor(c))"},
      {"ceil.whole", "ceil of a whole number", m::Ceil(x), x, TakesWhole,
       R"(x = s64[61] parameter(0)
          c = bf16[61] convert(x)
          ROOT f = bf16[61] ceil(c))"},
      {"round-nearest-afz.whole", "rounding of a whole number", m::RoundAfz(x), x, TakesWhole,
       R"(x = f64[61] parameter(0)
          c = f64[61] round-nearest-even(x)
          ROOT f = f64[61] round-nearest-afz(c))"},
      {"round-nearest-even.whole", "rounding of a whole number", m::RoundEven(x), x, TakesWhole,
       R"(x = f16[61] parameter(0)
          c = f16[61] floor(x)
          ROOT f = f16[61] round-nearest-even(c))"},
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
      {"square.product", "square(x) is x * x for reals", m::Square(x), m::Multiply(x, x),
       [](const m::Match& match) { return IsRealType(match) && HasPlainAccuracy(match); }},
      {"is-finite.negate", "whether -x is finite", m::IsFinite(m::Negate(x)), m::IsFinite(x)},
      {"is-finite.abs", "whether |x| is finite", m::IsFinite(m::Abs(x)), m::IsFinite(x), IsOfReals},
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
      {"reduce-precision.repeats", "reduce-precision of reduce-precision to the same precision",
       m::ReducePrecision(m::Bind(a, m::ReducePrecision(x))), a,
       [](const m::Match& match) {
         return match.root()->attrs<ReducePrecisionAttrs>() ==
                match[a]->attrs<ReducePrecisionAttrs>();
       },
       R"(x = f32[61] parameter(0)
          a = f32[61] reduce-precision(x), exponent_bits=5, mantissa_bits=10
          ROOT c = f32[61] reduce-precision(a), exponent_bits=5, mantissa_bits=10)"},
  };
  return kRules;
}

}  // namespace tokamak
