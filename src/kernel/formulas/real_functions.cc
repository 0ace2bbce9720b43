// Selects the function of reals for an op.

#include "kernel/formulas/functions.h"

namespace tokamak::formulas {

Scalar Polynomial(Scalar x, std::initializer_list<double> coefficients) {
  const double* next = coefficients.end();
  Scalar sum = x.Like(*--next);
  while (next != coefficients.begin()) sum = Fma(sum, x, x.Like(*--next));
  return sum;
}

namespace {

// A function of f64, also used for f32 with one final rounding.
using Function = Scalar (*)(Scalar);
Scalar InF64(Function function, Scalar x) {
  return function(x.As(ScalarType::kF64)).As(x.type());
}

}  // namespace

std::optional<Scalar> RealFunction(Op op, ElementType type, std::span<const Element> operands) {
  Scalar x = operands[0][0], y = operands.size() > 1 ? operands[1][0] : Scalar();
  bool is_short = InfoOf(type).bits <= 16;
  switch (op) {
    case Op::kExp:
      return is_short ? ExpFor16Bits(x) : Exp(x);
    case Op::kExpm1:
      return Expm1(x);
    case Op::kLog:
      return Log(x);
    case Op::kLog1p:
      return Log1p(x);
    case Op::kLogistic:
      return is_short ? LogisticFor16Bits(x) : Logistic(x);
    case Op::kTanh:
      return is_short ? TanhFor16Bits(x) : Tanh(x);
    case Op::kPower:
      return Power(x, y);
    case Op::kCbrt:
      return CubeRoot(x);
    case Op::kSin:
      return Sin(x);
    case Op::kCos:
      return Cos(x);
    case Op::kTan:
      return Tan(x);
    case Op::kAtan:
      return Atan(x);
    case Op::kAtan2:
      return Atan2(x, y);
    case Op::kAsin:
      return InF64(Asin, x);
    case Op::kAcos:
      return InF64(Acos, x);
    case Op::kSinh:
      return InF64(Sinh, x);
    case Op::kCosh:
      return InF64(Cosh, x);
    case Op::kAsinh:
      return InF64(Asinh, x);
    case Op::kAcosh:
      return InF64(Acosh, x);
    case Op::kAtanh:
      return InF64(Atanh, x);
    case Op::kErf:
      return Erf(x);
    case Op::kErfInv:
      return ErfInv(x);
    case Op::kLgamma:
      return InF64(Lgamma, x);
    case Op::kDigamma:
      return InF64(Digamma, x);
    case Op::kBesselI1e:
      return InF64(BesselI1e, x);
    case Op::kErfc:
      return InfoOf(type).bits == 16 ? ErfcFor16Bits(x) : InF64(Erfc, x);
    case Op::kZeta:
    case Op::kPolygamma: {
      if (x.type() == ScalarType::kF64) return std::nullopt;
      Scalar wide_x = x.As(ScalarType::kF64), wide_y = y.As(ScalarType::kF64);
      return (op == Op::kZeta ? Zeta(wide_x, wide_y) : Polygamma(wide_x, wide_y)).As(x.type());
    }
    default:
      return std::nullopt;
  }
}

}  // namespace tokamak::formulas
