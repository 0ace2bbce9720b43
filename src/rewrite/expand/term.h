#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "ir/ir.h"

namespace tokamak {

// Receives the instructions that a formula creates.
class TermGraph {
 public:
  virtual Instr* MakeTerm(Op op, const Shape& shape, std::vector<Instr*> operands,
                          const Attrs& attrs) = 0;

 protected:
  ~TermGraph() = default;
};

// A value in a formula. Terms overload the arithmetic operators, so formulas read as on paper; each
// operation creates an instruction in the graph. All terms of an operation have one shape, and a
// number next to a term has the term's type.
struct Term {
  TermGraph* graph;
  Instr* instr;

  const Shape& shape() const { return instr->shape(); }
  ElementType type() const { return shape().type(); }

  Term Number(double value) const;
  Term Integer(int64_t value) const;
  Term Infinity() const { return Number(std::numeric_limits<double>::infinity()); }
  Term NaN() const { return Number(std::numeric_limits<double>::quiet_NaN()); }
  // The largest finite and the smallest normal number of the type.
  Term Largest() const;
  Term SmallestNormal() const;

  Term As(ElementType type) const;
  Term BitsAs(ElementType type) const;
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
TOK_TERM_OPERATOR(&, Apply, Op::kAnd)
TOK_TERM_OPERATOR(|, Apply, Op::kOr)
TOK_TERM_OPERATOR(<, Compare, CompareDirection::kLt)
TOK_TERM_OPERATOR(<=, Compare, CompareDirection::kLe)
TOK_TERM_OPERATOR(>, Compare, CompareDirection::kGt)
TOK_TERM_OPERATOR(>=, Compare, CompareDirection::kGe)
TOK_TERM_OPERATOR(==, Compare, CompareDirection::kEq)
TOK_TERM_OPERATOR(!=, Compare, CompareDirection::kNe)
#undef TOK_TERM_OPERATOR

inline Term operator-(Term x) {
  return Apply(Op::kNegate, x);
}
inline Term operator!(Term x) {
  return Apply(Op::kNot, x);
}

inline Term Abs(Term x) {
  return Apply(Op::kAbs, x);
}
inline Term Sign(Term x) {
  return Apply(Op::kSign, x);
}
inline Term Floor(Term x) {
  return Apply(Op::kFloor, x);
}
inline Term Sqrt(Term x) {
  return Apply(Op::kSqrt, x);
}
inline Term Exp(Term x) {
  return Apply(Op::kExp, x);
}
inline Term Expm1(Term x) {
  return Apply(Op::kExpm1, x);
}
inline Term Log(Term x) {
  return Apply(Op::kLog, x);
}
inline Term Log1p(Term x) {
  return Apply(Op::kLog1p, x);
}
inline Term Sin(Term x) {
  return Apply(Op::kSin, x);
}
inline Term Cos(Term x) {
  return Apply(Op::kCos, x);
}
inline Term Atan2(Term y, Term x) {
  return Apply(Op::kAtan2, y, x);
}
inline Term Pow(Term x, Term y) {
  return Apply(Op::kPower, x, y);
}
inline Term Max(Term x, Term y) {
  return Apply(Op::kMaximum, x, y);
}
inline Term Min(Term x, Term y) {
  return Apply(Op::kMinimum, x, y);
}

Term Rem(Term x, double divisor);
Term IsFinite(Term x);
Term Real(Term z);
Term Imag(Term z);
Term ComplexOf(Term real, Term imag);

Term Choose(Term condition, Term yes, Term no);
template <typename A, typename B>
requires WithTerm<A, B> Term Select(Term condition, A yes, B no) {
  if constexpr (std::same_as<A, Term>) {
    return Choose(condition, yes, Like(yes, no));
  } else {
    return Choose(condition, Like(no, yes), no);
  }
}

// c[0] x^(n-1) + ... + c[n-1] by Horner's rule.
Term Polynomial(Term x, std::span<const double> coefficients);

}  // namespace tokamak
