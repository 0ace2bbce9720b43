#include "rewrite/term.h"

namespace tokamak {
namespace {

Term MadeAs(Term x, Op op, ElementType type, std::vector<Instr*> operands, Attrs attrs = {}) {
  Shape shape = x.shape().WithType(type).WithoutLayout();
  return {x.edit, x.edit->Make(op, std::move(shape), std::move(operands), std::move(attrs))};
}

}  // namespace

Term Term::Number(double value) const {
  return {edit, edit->Filled(shape().WithoutLayout(), value)};
}

Term Term::As(ElementType to) const {
  return MadeAs(*this, Op::kConvert, to, {instr});
}

Term Apply(Op op, Term x) {
  return MadeAs(x, op, x.type(), {x.instr});
}

Term Apply(Op op, Term x, Term y) {
  return MadeAs(x, op, x.type(), {x.instr, y.instr});
}

Term Compare(CompareDirection direction, Term x, Term y) {
  return MadeAs(x, Op::kCompare, ElementType::kPred, {x.instr, y.instr},
                CompareAttrs{direction, CompareType::kNone});
}

Term Real(Term z) {
  return MadeAs(z, Op::kReal, RealPartOf(z.type()), {z.instr});
}

Term Imag(Term z) {
  return MadeAs(z, Op::kImag, RealPartOf(z.type()), {z.instr});
}

Term ComplexOf(Term real, Term imag) {
  bool wide = real.type() == ElementType::kF64;
  return MadeAs(real, Op::kComplex, wide ? ElementType::kC128 : ElementType::kC64,
                {real.instr, imag.instr});
}

}  // namespace tokamak
