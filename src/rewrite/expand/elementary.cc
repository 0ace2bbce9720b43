#include "rewrite/expand/formulas.h"

namespace tokamak {
namespace {

ElementType IntegerAsWideAs(ElementType type) {
  switch (InfoOf(type).bits) {
    case 4:
      return ElementType::kS4;
    case 8:
      return ElementType::kS8;
    case 16:
      return ElementType::kS16;
    case 32:
      return ElementType::kS32;
    default:
      return ElementType::kS64;
  }
}

}  // namespace

Term ExpandAcos(Term x) {
  return Atan2(Sqrt((1 - x) * (1 + x)), x);
}

Term ExpandAcosh(Term x) {
  Term root = Sqrt(x - 1);
  return Select(x >= x.Largest() / 2, Log(x.Number(2)) + Log(x),
                Log1p(root * (Sqrt(x + 1) + root)));
}

Term ExpandAsin(Term x) {
  Term half = Atan2(x, 1 + Sqrt((1 - x) * (1 + x)));
  return half + half;
}

Term ExpandAsinh(Term x) {
  Term size = Abs(x), square = size * size;
  return Sign(x) * Select(size >= Sqrt(x.Largest()), Log(x.Number(2)) + Log(size),
                          Log1p(size + square / (1 + Sqrt(square + 1))));
}

Term ExpandAtan(Term x) {
  return Atan2(x, x.Number(1));
}

Term ExpandAtanh(Term x) {
  return Select(Abs(x) > 1, x.NaN(), (Log1p(x) - Log1p(-x)) * 0.5);
}

// e^x / 2 is computed as e^(x + log 1/2), which overflows later.
Term ExpandCosh(Term x) {
  Term half = Log(x.Number(0.5));
  return Exp(x + half) + Exp(half - x);
}

Term ExpandSinh(Term x) {
  Term half = Log(x.Number(0.5)), minus_one = Expm1(x);
  return Select(Abs(x) < 1, 0.5 * (minus_one + minus_one / (minus_one + 1)),
                Exp(x + half) - Exp(half - x));
}

Term ExpandSquare(Term x) {
  return x * x;
}

Term ExpandIsInf(Term x) {
  return Abs(x) == x.Infinity();
}

Term ExpandIsPosInf(Term x) {
  return x == x.Infinity();
}

Term ExpandIsNegInf(Term x) {
  return x == -x.Infinity();
}

// Floating-point numbers of one sign are ordered like their bits, so adding or subtracting one bit
// gives the neighbour.
Term ExpandNextAfter(Term from, Term to) {
  ElementType integer = IntegerAsWideAs(from.type());
  int64_t sign_bit = int64_t{-1} << (InfoOf(integer).bits - 1);
  Term x = from.BitsAs(integer), y = to.BitsAs(integer);
  Term x_size = x & x.Integer(~sign_bit), y_size = y & x.Integer(~sign_bit);
  Term x_sign = x & x.Integer(sign_bit), y_sign = y & x.Integer(sign_bit);
  Term from_zero = Select(y_size == 0, y, y_sign | x.Integer(1));
  Term inward = (x_size > y_size) | (x_sign != y_sign);
  Term step = x + Select(inward, x.Integer(-1), x.Integer(1));
  Term next = Select(from == to, y, Select(x_size == 0, from_zero, step));
  Term unordered = (from != from) | (to != to);
  return Select(unordered, from.NaN().BitsAs(integer), next).BitsAs(from.type());
}

}  // namespace tokamak
