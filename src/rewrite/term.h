#pragma once

#include <concepts>
#include <type_traits>

#include "rewrite/editor.h"

namespace tokamak {

// A value in a formula. Terms overload the arithmetic operators, so formulas read as on paper; each
// operation creates an instruction: x * 2.0 + y creates two, and the constant. All terms of an
// operation have one shape, and a number next to a term has the term's type.
struct Term {
  Editor* edit;
  Instr* instr;

  const Shape& shape() const { return instr->shape(); }
  ElementType type() const { return shape().type(); }

  Term Number(double value) const;
  Term As(ElementType type) const;
};

Term Apply(Op op, Term x);
Term Apply(Op op, Term x, Term y);
Term Compare(CompareDirection direction, Term x, Term y);

// An operand: a term, or a number that takes the type of the other operand.
template <typename T>
concept TermOrNumber = std::same_as<T, Term> || std::is_arithmetic_v<T>;
template <typename A, typename B>
concept WithTerm = TermOrNumber<A> && TermOrNumber<B> &&
    (std::same_as<A, Term> || std::same_as<B, Term>);

inline Term Like(Term, Term x) {
  return x;
}
inline Term Like(Term other, double number) {
  return other.Number(number);
}

#define TOK_TERM_OPERATOR(symbol, make, which)             \
  template <typename A, typename B>                        \
  requires WithTerm<A, B> Term operator symbol(A x, B y) { \
    if constexpr (std::same_as<A, Term>) {                 \
      return make(which, x, Like(x, y));                   \
    } else {                                               \
      return make(which, Like(y, x), y);                   \
    }                                                      \
  }
TOK_TERM_OPERATOR(+, Apply, Op::kAdd)
TOK_TERM_OPERATOR(-, Apply, Op::kSubtract)
TOK_TERM_OPERATOR(*, Apply, Op::kMultiply)
TOK_TERM_OPERATOR(/, Apply, Op::kDivide)
TOK_TERM_OPERATOR(==, Compare, CompareDirection::kEq)
#undef TOK_TERM_OPERATOR

Term Real(Term z);
Term Imag(Term z);
Term ComplexOf(Term real, Term imag);

}  // namespace tokamak
