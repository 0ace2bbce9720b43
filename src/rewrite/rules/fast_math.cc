// Identities of real numbers that do not hold in floating-point arithmetic; disabled by default.
// The first rules change only the sign of a NaN; the next affect zeros, infinities and NaN; the
// last change rounding.

#include <cmath>

#include "rewrite/rules/conditions.h"
#include "rewrite/rules/topics.h"

namespace tokamak {
namespace {

using m::a;
using m::b;
using m::c;
using m::d;
using m::x;
using m::y;
using m::z;

double Number(const m::Match& match, m::Var var) {
  return match.number(var).DoubleAt(0);
}
Instr* WithReal(Editor& edit, const m::Match& match, Op op, double value) {
  if (!std::isfinite(value)) return nullptr;
  return edit.Make(op, {match[x], edit.Filled(match.shape(), value)});
}
bool IsHalf(const m::Match& match) {
  return IsRealType(match) && Number(match, c) == 0.5;
}
bool OnceEach(const m::Match& match) {
  return IsRealType(match) && HasOneUser(match[a]) && HasOneUser(match[b]);
}

constexpr Rule Fast(std::string_view name, std::string_view meaning, m::Pattern pattern,
                    Replacement replacement, Condition when = IsRealType,
                    std::string_view example = {}) {
  return {name, meaning, pattern, replacement, when, example, true};
}

}  // namespace

std::span<const Rule> NanSignRules() {
  static constexpr Rule kRules[] = {
      Fast("add.negate-float", "x + -y is x - y", m::Add(x, m::Negate(y)), m::Subtract(x, y)),
      Fast("subtract.negate-float", "x - -y is x + y", m::Subtract(x, m::Negate(y)), m::Add(x, y)),
      Fast("multiply.minus-one-float", "x * -1 is -x", m::Multiply(x, m::MinusOne()), m::Negate(x)),
      Fast("multiply.negates-float", "-x * -y is x * y", m::Multiply(m::Negate(x), m::Negate(y)),
           m::Multiply(x, y)),
      Fast("divide.negates-float", "-x / -y is x / y", m::Divide(m::Negate(x), m::Negate(y)),
           m::Divide(x, y)),
      Fast("negate.multiply-constant-float", "-(x * c) is x * -c",
           m::Negate(m::Multiply(x, m::Splat(c))),
           [](Editor& edit, const m::Match& match) {
             return WithReal(edit, match, Op::kMultiply, -Number(match, c));
           }),
      Fast("abs.square-float", "|x * x| is x * x", m::Abs(m::Bind(a, m::Multiply(x, x))), a),
      Fast("abs.exponential-float", "e^x has no sign", m::Abs(m::Bind(a, m::Exp(x))), a),
      Fast("cosine.negate-float", "cos(-x) is cos(x)", m::Cos(m::Negate(x)), m::Cos(x)),
      Fast("maximum.negates-float", "max(-x, -y) is -min(x, y)",
           m::Maximum(m::Bind(a, m::Negate(x)), m::Bind(b, m::Negate(y))),
           m::Negate(m::Minimum(x, y)), OnceEach),
      Fast("minimum.negates-float", "min(-x, -y) is -max(x, y)",
           m::Minimum(m::Bind(a, m::Negate(x)), m::Bind(b, m::Negate(y))),
           m::Negate(m::Maximum(x, y)), OnceEach),
  };
  return kRules;
}

std::span<const Rule> SpecialNumberRules() {
  static constexpr Rule kRules[] = {
      Fast("multiply.zero-float", "x * 0 is 0 where nothing is NaN or infinite",
           m::Multiply(x, m::PositiveZero()), m::Zero()),
      Fast("add.zero-float", "x + 0 is x but for -0", m::Add(x, m::PositiveZero()), x),
      Fast("subtract.zero-minus-float", "0 - x is -x but for 0", m::Subtract(m::PositiveZero(), x),
           m::Negate(x)),
      Fast("subtract.self-float", "x - x is 0 where nothing is NaN or infinite", m::Subtract(x, x),
           m::Zero()),
      Fast("divide.self-float", "x / x is 1 where x is not 0", m::Divide(x, x), m::One()),
      Fast("multiply.roots-float", "sqrt(x) * sqrt(x) is x where x is not negative",
           m::Multiply(m::Bind(a, m::Sqrt(x)), a), x),
  };
  return kRules;
}

std::span<const Rule> RoundingRules() {
  static constexpr Rule kRules[] = {
      Fast("add.constants-float", "(x + c) + d is x + (c + d)",
           m::Add(m::Add(x, m::Splat(c)), m::Splat(d)),
           [](Editor& edit, const m::Match& match) {
             return WithReal(edit, match, Op::kAdd, Number(match, c) + Number(match, d));
           }),
      Fast("multiply.constants-float", "(x * c) * d is x * (c * d)",
           m::Multiply(m::Multiply(x, m::Splat(c)), m::Splat(d)),
           [](Editor& edit, const m::Match& match) {
             return WithReal(edit, match, Op::kMultiply, Number(match, c) * Number(match, d));
           }),
      Fast("divide.constant-float", "x / c is x * (1 / c)", m::Divide(x, m::Splat(c)),
           [](Editor& edit, const m::Match& match) {
             return WithReal(edit, match, Op::kMultiply, 1 / Number(match, c));
           }),
      Fast("divide.quotient-float", "(x / y) / z is x / (y * z)", m::Divide(m::Divide(x, y), z),
           m::Divide(x, m::Multiply(y, z))),
      Fast("subtract.sum-float", "(x + y) - y is x", m::Subtract(m::Add(x, y), y), x),
      Fast("divide.root-float", "x / sqrt(y) is x * rsqrt(y)", m::Divide(x, m::Sqrt(y)),
           m::Multiply(x, m::Rsqrt(y))),
      Fast("power.half-float", "x^0.5 is sqrt(x)", m::Power(x, m::Splat(c)), m::Sqrt(x), IsHalf,
           R"(x = f32[61] parameter(0)
              c = f32[] constant(0.5)
              b = f32[61] broadcast(c), dimensions={}
              ROOT p = f32[61] power(x, b))"),
      Fast("log.exponential-float", "log(e^x) is x", m::Log(m::Exp(x)), x),
      Fast("exponential.log-float", "e^log(x) is x", m::Exp(m::Log(x)), x),
      Fast("multiply.exponentials-float", "e^x * e^y is e^(x + y)",
           m::Multiply(m::Bind(a, m::Exp(x)), m::Bind(b, m::Exp(y))), m::Exp(m::Add(x, y)),
           OnceEach),
      Fast("add.products-float", "x * y + x * z is x * (y + z)",
           m::Add(m::Bind(a, m::Multiply(x, y)), m::Bind(b, m::Multiply(x, z))),
           m::Multiply(x, m::Add(y, z)), OnceEach),
  };
  return kRules;
}

}  // namespace tokamak
