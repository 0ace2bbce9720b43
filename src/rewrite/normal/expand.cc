#include "rewrite/normal/expand.h"

#include <array>
#include <limits>

namespace tokamak {
namespace {

// Writes arithmetic on arrays of one shape.
struct Arithmetic {
  NormalGraph& graph;
  Shape shape;

  Instr* Number(double value) const {
    Instr* scalar = graph.Constant(Literal::Scalar(shape.type(), value));
    return graph.Make(Op::kBroadcast, shape, {scalar}, DimensionsAttrs{});
  }
  Instr* Of(Op op, Instr* x) const { return graph.Make(op, shape, {x}); }
  Instr* Of(Op op, Instr* x, Instr* y) const { return graph.Make(op, shape, {x, y}); }
  Instr* Compare(CompareDirection direction, Instr* x, Instr* y) const {
    return graph.Make(Op::kCompare, shape.WithType(ElementType::kPred), {x, y},
                      CompareAttrs{direction, CompareType::kNone});
  }
  Instr* Select(Instr* condition, Instr* yes, Instr* no) const {
    return graph.Make(Op::kSelect, shape, {condition, yes, no});
  }
};

// M. Giles, "Approximating the erfinv function" (2010): single precision, two
// polynomials in w = -log(1 - x^2), centred or through its root.
Instr* ErfInvSingle(const Arithmetic& a, Instr* x) {
  constexpr std::array kNear = {2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
                                -4.39150654e-06, 0.00021858087,  -0.00125372503,
                                -0.00417768164,  0.246640727,    1.50140941};
  constexpr std::array kFar = {-0.000200214257, 0.000100950558, 0.00134934322,
                               -0.00367342844,  0.00573950773,  -0.0076224613,
                               0.00943887047,   1.00167406,     2.83297682};
  Instr* log = a.Of(Op::kLog1p, a.Of(Op::kMultiply, x, a.Of(Op::kNegate, x)));
  Instr* w = a.Of(Op::kNegate, log);
  Instr* near = a.Compare(CompareDirection::kLt, w, a.Number(5));
  Instr* centred = a.Of(Op::kSubtract, w, a.Number(2.5));
  Instr* rooted = a.Of(Op::kSubtract, a.Of(Op::kSqrt, w), a.Number(3));
  Instr* t = a.Select(near, centred, rooted);
  Instr* sum = a.Select(near, a.Number(kNear[0]), a.Number(kFar[0]));
  for (size_t i = 1; i < kNear.size(); ++i) {
    Instr* coefficient = a.Select(near, a.Number(kNear[i]), a.Number(kFar[i]));
    sum = a.Of(Op::kAdd, coefficient, a.Of(Op::kMultiply, sum, t));
  }
  Instr* inside = a.Of(Op::kMultiply, sum, x);
  Instr* at_edge = a.Compare(CompareDirection::kEq, a.Of(Op::kAbs, x), a.Number(1));
  Instr* edge = a.Of(Op::kMultiply, x, a.Number(std::numeric_limits<double>::infinity()));
  return a.Select(at_edge, edge, inside);
}

}  // namespace

Instr* ExpandAsJax(NormalGraph& graph, Op op, const Shape& shape, Instr* x) {
  Arithmetic a{graph, shape};
  if (op == Op::kSquare) return a.Of(Op::kMultiply, x, x);
  if (op == Op::kErfInv && shape.type() == ElementType::kF32) return ErfInvSingle(a, x);
  return nullptr;
}

}  // namespace tokamak
