// Small sums that a simplifier knows by heart, and others that look like them
// and are not equal: the sign of a zero, NaN, wrap-around and rounding decide.
#include "random/draft.h"

namespace tokamak::fuzz {
namespace {

using O = Op;

Instr* OfClass(Draft& draft, TypeClass types) {
  Instr* x = draft.AnyThat([&](const Shape& shape) {
    return (types >> static_cast<int>(KindOf(shape.type())) & 1) != 0;
  });
  if (x != nullptr) return x;
  x = draft.Any();
  return draft.Convert(x, draft.AnyType(types));
}

// A number in every element: written in full, or a scalar and its broadcast.
Instr* All(Draft& draft, Instr* like, double value) {
  if (like == nullptr) return nullptr;
  if (draft.random().Percent(50)) return draft.Number(like->shape(), value);
  Instr* scalar = draft.Number(Shape::Scalar(like->shape().type()), value);
  return draft.Spread(scalar, like->shape().dims());
}

bool Either(Draft& draft, Op op, Instr* x, Instr* y) {
  if (draft.random().Percent(35)) std::swap(x, y);
  return draft.Put(op, {x, y}) != nullptr;
}

// x op c, for the constants that rules ask about.
bool DrawWithConstant(Draft& draft) {
  Instr* x = OfClass(draft, draft.random().Percent(25) ? kComplexClass : kIntOrReal);
  Op op = draft.random().Pick({O::kAdd, O::kSubtract, O::kMultiply, O::kDivide, O::kMultiply,
                               O::kPower, O::kRemainder, O::kMaximum, O::kMinimum});
  double value = draft.random().Pick(
      {0.0, 0.0, 1.0, 1.0, 1.0, -1.0, 2.0, 0.5, -0.0, 4.0, 3.0, -2.0, 8.0, 10.0, 256.0});
  return Either(draft, op, x, All(draft, x, value));
}

bool DrawBitsWithConstant(Draft& draft) {
  Instr* x = OfClass(draft, kInteger);
  Op op = draft.random().Pick({O::kAnd, O::kOr, O::kXor, O::kShiftLeft, O::kShiftRightLogical,
                               O::kShiftRightArithmetic, O::kMultiplyHigh});
  double value = draft.random().Pick({0.0, 1.0, -1.0, 3.0, 7.0, 8.0, 15.0, 31.0, 32.0, 64.0});
  return Either(draft, op, x, All(draft, x, value));
}

// (x op a) op b, and op2 between them now and then.
bool DrawTwice(Draft& draft) {
  Instr* x = OfClass(draft, kIntOrReal);
  Op first = draft.random().Pick(
      {O::kAdd, O::kSubtract, O::kMultiply, O::kDivide, O::kMaximum, O::kMinimum});
  Op second =
      draft.random().Percent(60)
          ? first
          : draft.random().Pick({O::kAdd, O::kMultiply, O::kDivide, O::kMaximum, O::kMinimum});
  double a = draft.random().Pick({1.0, 2.0, 3.0, -1.0, 0.5, 0.1});
  double b = draft.random().Pick({1.0, 2.0, 5.0, -1.0, 0.25, 0.3});
  Instr* once = draft.Put(first, {x, All(draft, x, a)});
  return Either(draft, second, once, All(draft, x, b));
}

// f(f(x)), f(g(x)): negate, not, abs, conj, convert there and back, exp and log.
bool DrawInverse(Draft& draft) {
  static constexpr std::pair<Op, Op> kPairs[] = {
      {O::kNegate, O::kNegate},   {O::kAbs, O::kAbs},     {O::kAbs, O::kNegate},
      {O::kExp, O::kLog},         {O::kLog, O::kExp},     {O::kSqrt, O::kSquare},
      {O::kSquare, O::kSqrt},     {O::kFloor, O::kFloor}, {O::kCeil, O::kFloor},
      {O::kSign, O::kAbs},        {O::kExpm1, O::kLog1p}, {O::kTanh, O::kNegate},
      {O::kNegate, O::kSquare},   {O::kAbs, O::kSquare},  {O::kNegate, O::kCos},
      {O::kNegate, O::kSin},      {O::kRsqrt, O::kSqrt},  {O::kSqrt, O::kRsqrt},
      {O::kRoundEven, O::kFloor}, {O::kAbs, O::kSign},    {O::kConj, O::kConj},
  };
  auto [inner, outer] = kPairs[draft.random().Below(std::size(kPairs))];
  Instr* x = OfClass(draft, kReal);
  return draft.Put(outer, {draft.Put(inner, {x})}) != nullptr;
}

bool DrawNotNot(Draft& draft) {
  Instr* x = OfClass(draft, kBits);
  Instr* inner = draft.Put(O::kNot, {x});
  Op op = draft.random().Pick({O::kNot, O::kAnd, O::kOr, O::kXor});
  if (op == O::kNot) return draft.Put(O::kNot, {inner}) != nullptr;
  return Either(draft, op, inner, x);
}

// x - x, x / x, x ^ x, max(x, x) ...
bool DrawWithItself(Draft& draft) {
  Op op = draft.random().Pick({O::kSubtract, O::kDivide, O::kXor, O::kAnd, O::kOr, O::kMaximum,
                               O::kMinimum, O::kAdd, O::kMultiply, O::kRemainder, O::kPower});
  Instr* x = OfClass(draft, InfoOf(op).types);
  return draft.Put(op, {x, x}) != nullptr;
}

// (a op b) op2 a, and with shared parts: a*c + b*c, a - (a - b), max(a, min(a, b)).
bool DrawShared(Draft& draft) {
  Instr* a = OfClass(draft, kIntOrReal);
  if (a == nullptr) return false;
  Instr* b = draft.Like(a->shape());
  std::vector<Op> ops{O::kAdd, O::kSubtract, O::kMultiply, O::kDivide, O::kMaximum, O::kMinimum};
  Op inner = draft.random().Pick(ops), outer = draft.random().Pick(ops);
  Instr* ab = draft.Put(inner, {a, b});
  if (draft.random().Percent(50))
    return Either(draft, outer, ab, draft.random().Percent(50) ? a : b);
  Instr* c = draft.Like(a->shape());
  Instr* ac = draft.Put(inner, {a, c});
  return draft.Put(outer, {ab, ac}) != nullptr;
}

bool DrawComplexParts(Draft& draft) {
  Instr* x = draft.AnyThat([](const Shape& s) { return IsComplex(s.type()); });
  if (x == nullptr) {
    Instr* part = draft.AnyThat([](const Shape& s) { return s.type() == ElementType::kF32; });
    if (part == nullptr) return false;
    x = draft.Put(O::kComplex, {part, draft.Like(part->shape())});
  }
  if (x == nullptr) return false;
  Instr* real = draft.Put(O::kReal, {x});
  Instr* imaginary = draft.Put(O::kImag, {x});
  return draft.Put(O::kComplex, {real, imaginary}) != nullptr;
}

// To another type and back: what a pass may drop only when the way loses nothing.
bool DrawConvertBack(Draft& draft) {
  Instr* x = draft.Any();
  ElementType own = x->shape().type();
  static constexpr ElementType kTypes[] = {
      ElementType::kF32, ElementType::kBF16, ElementType::kF16,     ElementType::kF64,
      ElementType::kS32, ElementType::kS8,   ElementType::kU8,      ElementType::kS64,
      ElementType::kU32, ElementType::kPred, ElementType::kF8E4M3FN};
  Instr* there = draft.Convert(x, kTypes[draft.random().Below(std::size(kTypes))]);
  if (draft.random().Percent(30)) there = draft.Put(O::kNegate, {there});
  return draft.Convert(there, own) != nullptr;
}

// select(p, x, x), select(not p, ..), select over constants, select of selects on one p.
bool DrawSelects(Draft& draft) {
  Instr* x = draft.Any();
  Instr* p = draft.Like(Shape::Array(ElementType::kPred, x->shape().dims()));
  Instr* y = draft.Like(x->shape());
  switch (draft.random().Below(4)) {
    case 0:
      return draft.Put(O::kSelect, {p, x, x}) != nullptr;
    case 1:
      return draft.Put(O::kSelect, {draft.Put(O::kNot, {p}), x, y}) != nullptr;
    case 2: {
      Instr* inner = draft.Put(O::kSelect, {p, x, y});
      Instr* z = draft.Like(x->shape());
      bool first = draft.random().Percent(50);
      return draft.Put(O::kSelect, {p, first ? inner : z, first ? z : inner}) != nullptr;
    }
    default: {
      Instr* yes = draft.Put(
          O::kConstant, {},
          ConstantAttrs{Literal::Scalar(ElementType::kPred, draft.random().Percent(50) ? 1 : 0)});
      if (draft.random().Percent(50)) yes = draft.Spread(yes, x->shape().dims());
      return draft.Put(O::kSelect, {yes, x, y}) != nullptr;
    }
  }
}

// iota < c and its kind: a range that is all true, all false or a mask.
bool DrawIotaMask(Draft& draft) {
  Dims dims = draft.AnyOfRank(1)->shape().dims();
  Shape shape = Shape::Array(draft.random().Pick({ElementType::kS32, ElementType::kU32,
                                                  ElementType::kF32, ElementType::kS8}),
                             dims);
  if (shape.rank() == 0) return false;
  Instr* iota =
      draft.Put(O::kIota, {}, IotaAttrs{draft.random().Below(shape.rank())}, {.shape = shape});
  Instr* bound = nullptr;
  if (draft.random().Percent(30)) {
    bound =
        draft.Put(O::kIota, {}, IotaAttrs{draft.random().Below(shape.rank())}, {.shape = shape});
  } else {
    bound = All(draft, iota, static_cast<double>(draft.random().Between(-1, 5)));
  }
  auto direction = static_cast<CompareDirection>(draft.random().Below(6));
  return draft.Put(O::kCompare, {iota, bound}, CompareAttrs{direction, CompareType::kNone}) !=
         nullptr;
}

// compare(x, x), compare(unsigned, 0), compare of converts, not of a compare.
bool DrawComparisons(Draft& draft) {
  Instr* x = OfClass(draft, kIntOrReal);
  if (x == nullptr) return false;
  auto direction = static_cast<CompareDirection>(draft.random().Below(6));
  Instr* other = x;
  if (draft.random().Percent(60)) {
    double value = draft.random().Pick({0.0, 1.0, -1.0, -128.0, 127.0, 255.0});
    other = All(draft, x, value);
  }
  Instr* result = draft.Put(O::kCompare, {x, other}, CompareAttrs{direction, CompareType::kNone});
  if (draft.random().Percent(40)) result = draft.Put(O::kNot, {result});
  if (draft.random().Percent(30)) result = draft.Convert(result, ElementType::kS32);
  return result != nullptr;
}

// clamp whose bounds cross, or are all there is; clamp of clamp, max of min.
bool DrawClamps(Draft& draft) {
  Instr* x = OfClass(draft, kIntOrReal);
  if (x == nullptr) return false;
  Shape scalar = Shape::Scalar(x->shape().type());
  auto bound = [&] {
    return draft.Number(scalar, static_cast<double>(draft.random().Between(-2, 3)));
  };
  Instr* low = bound();
  Instr* once = draft.Put(O::kClamp, {low, x, bound()});
  if (draft.random().Percent(50)) {
    Instr* lower = bound();
    return draft.Put(O::kClamp, {lower, once, bound()}) != nullptr;
  }
  Instr* limit = draft.Spread(bound(), x->shape().dims());
  return draft.Put(draft.random().Percent(50) ? O::kMaximum : O::kMinimum, {once, limit}) !=
         nullptr;
}

constexpr Drawer kAlgebraDrawers[] = {
    {"with-constant", 140, 3, DrawWithConstant},
    {"bits-with-constant", 40, 3, DrawBitsWithConstant},
    {"twice", 30, 5, DrawTwice},
    {"inverse", 30, 2, DrawInverse},
    {"not-not", 12, 2, DrawNotNot},
    {"with-itself", 25, 1, DrawWithItself},
    {"shared", 30, 5, DrawShared},
    {"complex-parts", 8, 4, DrawComplexParts},
    {"convert-back", 30, 2, DrawConvertBack},
    {"selects", 20, 4, DrawSelects},
    {"iota-mask", 20, 3, DrawIotaMask},
    {"comparisons", 20, 3, DrawComparisons},
    {"clamps", 10, 6, DrawClamps},
};

}  // namespace

std::span<const Drawer> AlgebraDrawers() {
  return kAlgebraDrawers;
}

}  // namespace tokamak::fuzz
