// Sums, products and quotients. Floating-point rules hold for every value, including NaN and both
// zeros: x + 0 is not x, because -0 + 0 is 0, but x + -0 is x. They also preserve the sign of a
// NaN, which a sort or a bitcast can observe: -x * c is not x * -c. Integer-only rules are in
// integer.cc.

#include <cmath>

#include "rewrite/rules/conditions.h"
#include "rewrite/rules/topics.h"

namespace tokamak {
namespace {

using m::a;
using m::c;
using m::x;
using m::y;

// op(x, -c) instead of op(x, c).
Instr* TakeSignInto(Editor& edit, const m::Match& match, Op op) {
  return edit.Make(op, {match[x], NegatedConstant(edit, match[c])});
}

// 1/c is representable in the type, and neither c nor 1/c is subnormal: x / c and x * (1/c) round
// the same number.
bool HasExactInverse(const m::Match& match) {
  std::optional<int> power = PowerOfTwo(match[c]);
  if (!power || !IsIeee(match.type())) return false;
  int bias = FormatOf(match.type()).bias;
  return *power > -bias && *power < bias;
}

}  // namespace

// long: a table
std::span<const Rule> ArithmeticRules() {
  static constexpr Rule kRules[] = {
      {"add.zero", "x + 0 is x for integers", m::Add(x, m::Zero()), x, IsIntegral},
      {"add.negative-zero", "x + -0 is x", m::Add(x, m::NegativeZero()), x, IsRealType},
      {"subtract.zero", "x - 0 is x", m::Subtract(x, m::PositiveZero()), x, IsNotComplex},
      {"subtract.self", "x - x is 0 for integers", m::Subtract(x, x), m::Zero(), IsIntegral},
      {"multiply.one", "x * 1 is x", m::Multiply(x, m::One()), x, IsNotComplex},
      {"multiply.zero", "x * 0 is 0 for integers", m::Multiply(x, m::Zero()), m::Zero(),
       IsIntegral},
      {"divide.one", "x / 1 is x", m::Divide(x, m::One()), x, IsNotComplex},
      {"negate.negate", "-(-x) is x", m::Negate(m::Negate(x)), x},
      {"subtract.zero-minus", "0 - x is -x for integers", m::Subtract(m::Zero(), x), m::Negate(x),
       IsIntegral},
      {"subtract.constant", "x - c is x + -c", m::Subtract(x, m::Splat(c)),
       [](Editor& edit, const m::Match& match) { return TakeSignInto(edit, match, Op::kAdd); },
       [](const m::Match& match) {
         if (SplatOf(match[x]) != nullptr) return false;
         return IsIntegral(match) || (IsRealType(match) && !std::isnan(*RealOf(match[c])));
       }},
      {"multiply.minus-one", "x * -1 is -x for integers", m::Multiply(x, m::MinusOne()),
       m::Negate(x), IsIntegral},
      {"divide.power-of-two", "x / 2^k is x * 2^-k where both are ordinary numbers",
       m::Divide(x, m::Splat(c)),
       [](Editor& edit, const m::Match& match) -> Instr* {
         double inverse = 1 / match.number(c).DoubleAt(0);
         return edit.Make(Op::kMultiply, {match[x], edit.Filled(match.shape(), inverse)});
       },
       HasExactInverse,
       R"(x = bf16[61] parameter(0)
          c = bf16[] constant(0.125)
          b = bf16[61] broadcast(c), dimensions={}
          ROOT d = bf16[61] divide(x, b))"},
      {"add.pred", "of preds, + is or", m::Add(x, y), m::Or(x, y), IsPred},
      {"abs.abs", "||x|| is |x|", m::Abs(m::Bind(a, m::Abs(x))), a,
       [](const m::Match& match) { return match[a]->shape() == match.shape(); }},
      {"abs.negate", "|-x| is |x|", m::Abs(m::Negate(x)), m::Abs(x),
       [](const m::Match& match) { return !IsUnsigned(match.type()); }},
  };
  return kRules;
}

}  // namespace tokamak
