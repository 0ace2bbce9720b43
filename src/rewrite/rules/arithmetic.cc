// Sums, products and their inverses. Floating-point rows hold for every value, NaN and both zeros
// included: x + 0 is not x, for -0 + 0 is 0; x + -0 is.

#include "rewrite/rules/topics.h"

namespace tokamak {
namespace {

using m::x;
using m::y;

// -x is there for every x. f8e8m0fnu has no sign: -x is NaN.
bool HasNegative(const m::Match& match) {
  ElementType type = match.type();
  return !IsReal(type) || FormatOf(type).has_sign;
}
bool IsSignedOrFloat(const m::Match& match) {
  return !IsUnsigned(match.type()) && match.type() != ElementType::kPred && HasNegative(match);
}

}  // namespace

std::vector<Rule> ArithmeticRules() {
  return {
      {"add.zero", "x + 0 is x for integers", m::Add(x, m::Zero()), x, IsIntegral},
      {"add.negative-zero", "x + -0 is x", m::Add(x, m::NegativeZero()), x, IsRealType},
      {"subtract.zero", "x - 0 is x", m::Subtract(x, m::PositiveZero()), x,
       [](const m::Match& match) { return !IsComplex(match.type()); }},
      {"subtract.self", "x - x is 0 for integers", m::Subtract(x, x), m::Zero(), IsIntegral},
      {"multiply.one", "x * 1 is x", m::Multiply(x, m::One()), x,
       [](const m::Match& match) { return !IsComplex(match.type()); }},
      {"multiply.zero", "x * 0 is 0 for integers", m::Multiply(x, m::Zero()), m::Zero(),
       IsIntegral},
      {"divide.one", "x / 1 is x", m::Divide(x, m::One()), x,
       [](const m::Match& match) { return !IsComplex(match.type()); }},
      {"negate.negate", "-(-x) is x", m::Negate(m::Negate(x)), x, IsSignedOrFloat},
      // Not of floats: a NaN in y would keep another sign.
      {"add.negate", "x + -y is x - y for integers", m::Add(x, m::Negate(y)), m::Subtract(x, y),
       IsIntegral},
      {"multiply.zero-float", "x * 0 is 0 where nothing is NaN or infinite",
       m::Multiply(x, m::PositiveZero()), m::Zero(), IsRealType, "", true},
  };
}

}  // namespace tokamak
