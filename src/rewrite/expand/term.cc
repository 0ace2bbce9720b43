#include "rewrite/expand/term.h"

#include <cmath>

namespace tokamak {
namespace {

Term Filled(Term like, const Literal& scalar) {
  Instr* one = like.graph->MakeTerm(Op::kConstant, scalar.shape(), {}, ConstantAttrs{scalar});
  if (like.shape().IsScalar()) return {like.graph, one};
  return {like.graph, like.graph->MakeTerm(Op::kBroadcast, like.shape(), {one}, DimensionsAttrs{})};
}

Term Made(Term x, Op op, ElementType type, std::vector<Instr*> operands) {
  return {x.graph, x.graph->MakeTerm(op, x.shape().WithType(type), std::move(operands), {})};
}

}  // namespace

Term Term::Number(double value) const {
  return Filled(*this, Literal::Scalar(type(), value));
}

Term Term::Integer(int64_t value) const {
  return Filled(*this, Literal::ScalarInt(type(), value));
}

Term Term::Largest() const {
  const FloatFormat& format = FormatOf(type());
  // The top exponent is reserved for infinities and NaNs (IEEE), or only its last mantissa for NaN,
  // or not reserved.
  bool ieee = format.nan == FloatFormat::Nan::kIeee;
  bool loses_one = format.nan == FloatFormat::Nan::kAllOnes;
  int exponent = (1 << format.exponent_bits) - 1 - format.bias - (ieee ? 1 : 0);
  double mantissa = 2 - std::ldexp(loses_one ? 2.0 : 1.0, -format.mantissa_bits);
  return Number(std::ldexp(mantissa, exponent));
}

Term Term::SmallestNormal() const {
  return Number(std::ldexp(1.0, 1 - FormatOf(type()).bias));
}

Term Term::As(ElementType to) const {
  return Made(*this, Op::kConvert, to, {instr});
}

Term Term::BitsAs(ElementType to) const {
  return Made(*this, Op::kBitcastConvert, to, {instr});
}

Term Apply(Op op, Term x) {
  return Made(x, op, x.type(), {x.instr});
}

Term Apply(Op op, Term x, Term y) {
  return Made(x, op, x.type(), {x.instr, y.instr});
}

Term Compare(CompareDirection direction, Term x, Term y) {
  Shape shape = x.shape().WithType(ElementType::kPred);
  return {x.graph, x.graph->MakeTerm(Op::kCompare, shape, {x.instr, y.instr},
                                     CompareAttrs{direction, CompareType::kNone})};
}

Term Rem(Term x, double divisor) {
  return Apply(Op::kRemainder, x, x.Number(divisor));
}

Term IsFinite(Term x) {
  return Made(x, Op::kIsFinite, ElementType::kPred, {x.instr});
}

Term Real(Term z) {
  return Made(z, Op::kReal, RealPartOf(z.type()), {z.instr});
}

Term Imag(Term z) {
  return Made(z, Op::kImag, RealPartOf(z.type()), {z.instr});
}

Term ComplexOf(Term real, Term imag) {
  bool wide = real.type() == ElementType::kF64;
  return Made(real, Op::kComplex, wide ? ElementType::kC128 : ElementType::kC64,
              {real.instr, imag.instr});
}

Term Choose(Term condition, Term yes, Term no) {
  return Made(yes, Op::kSelect, yes.type(), {condition.instr, yes.instr, no.instr});
}

Term Polynomial(Term x, std::span<const double> coefficients) {
  Term sum = x.Number(coefficients[0]);
  for (double coefficient : coefficients.subspan(1)) sum = sum * x + coefficient;
  return sum;
}

}  // namespace tokamak
