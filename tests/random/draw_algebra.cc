// Small expressions that a simplifier rewrites, and similar ones that are not equal: they differ in
// the sign of a zero, NaN, wrap-around or rounding.
#include "random/program_builder.h"

namespace tokamak::fuzz {
namespace {

using O = Op;

Instr* OfClass(ProgramBuilder& builder, TypeClass types) {
  Instr* x = builder.AnyThat([&](const Shape& shape) {
    return (types >> static_cast<int>(KindOf(shape.type())) & 1) != 0;
  });
  if (x != nullptr) return x;
  x = builder.Any();
  return builder.Convert(x, builder.AnyType(types));
}

// A number in every element: written in full, or as a broadcast scalar.
Instr* All(ProgramBuilder& builder, Instr* like, double value) {
  if (like == nullptr) return nullptr;
  if (builder.random().Percent(50)) return builder.Number(like->shape(), value);
  Instr* scalar = builder.Number(Shape::Scalar(like->shape().type()), value);
  return builder.BroadcastTo(scalar, like->shape().dims());
}

bool Either(ProgramBuilder& builder, Op op, Instr* x, Instr* y) {
  if (builder.random().Percent(35)) std::swap(x, y);
  return builder.Put(op, {x, y}) != nullptr;
}

// x op c, for the constants that rules match.
bool DrawWithConstant(ProgramBuilder& builder) {
  Instr* x = OfClass(builder, builder.random().Percent(25) ? kComplexClass : kIntOrReal);
  Op op = builder.random().Pick({O::kAdd, O::kSubtract, O::kMultiply, O::kDivide, O::kMultiply,
                                 O::kPower, O::kRemainder, O::kMaximum, O::kMinimum});
  double value = builder.random().Pick(
      {0.0, 0.0, 1.0, 1.0, 1.0, -1.0, 2.0, 0.5, -0.0, 4.0, 3.0, -2.0, 8.0, 10.0, 256.0});
  return Either(builder, op, x, All(builder, x, value));
}

bool DrawBitsWithConstant(ProgramBuilder& builder) {
  Instr* x = OfClass(builder, kInteger);
  Op op = builder.random().Pick({O::kAnd, O::kOr, O::kXor, O::kShiftLeft, O::kShiftRightLogical,
                                 O::kShiftRightArithmetic, O::kMultiplyHigh});
  double value = builder.random().Pick({0.0, 1.0, -1.0, 3.0, 7.0, 8.0, 15.0, 31.0, 32.0, 64.0});
  return Either(builder, op, x, All(builder, x, value));
}

// (x op a) op b, occasionally with op2 in between.
bool DrawTwice(ProgramBuilder& builder) {
  Instr* x = OfClass(builder, kIntOrReal);
  Op first = builder.random().Pick(
      {O::kAdd, O::kSubtract, O::kMultiply, O::kDivide, O::kMaximum, O::kMinimum});
  Op second =
      builder.random().Percent(60)
          ? first
          : builder.random().Pick({O::kAdd, O::kMultiply, O::kDivide, O::kMaximum, O::kMinimum});
  double a = builder.random().Pick({1.0, 2.0, 3.0, -1.0, 0.5, 0.1});
  double b = builder.random().Pick({1.0, 2.0, 5.0, -1.0, 0.25, 0.3});
  Instr* once = builder.Put(first, {x, All(builder, x, a)});
  return Either(builder, second, once, All(builder, x, b));
}

// f(f(x)), f(g(x)): negate, not, abs, conj, convert there and back, exp and log.
bool DrawInverse(ProgramBuilder& builder) {
  static constexpr std::pair<Op, Op> kPairs[] = {
      {O::kNegate, O::kNegate},   {O::kAbs, O::kAbs},     {O::kAbs, O::kNegate},
      {O::kExp, O::kLog},         {O::kLog, O::kExp},     {O::kSqrt, O::kSquare},
      {O::kSquare, O::kSqrt},     {O::kFloor, O::kFloor}, {O::kCeil, O::kFloor},
      {O::kSign, O::kAbs},        {O::kExpm1, O::kLog1p}, {O::kTanh, O::kNegate},
      {O::kNegate, O::kSquare},   {O::kAbs, O::kSquare},  {O::kNegate, O::kCos},
      {O::kNegate, O::kSin},      {O::kRsqrt, O::kSqrt},  {O::kSqrt, O::kRsqrt},
      {O::kRoundEven, O::kFloor}, {O::kAbs, O::kSign},    {O::kConj, O::kConj},
  };
  auto [inner, outer] = kPairs[builder.random().Below(std::size(kPairs))];
  Instr* x = OfClass(builder, kReal);
  return builder.Put(outer, {builder.Put(inner, {x})}) != nullptr;
}

bool DrawNotNot(ProgramBuilder& builder) {
  Instr* x = OfClass(builder, kBits);
  Instr* inner = builder.Put(O::kNot, {x});
  Op op = builder.random().Pick({O::kNot, O::kAnd, O::kOr, O::kXor});
  if (op == O::kNot) return builder.Put(O::kNot, {inner}) != nullptr;
  return Either(builder, op, inner, x);
}

// x - x, x / x, x ^ x, max(x, x) ...
bool DrawWithItself(ProgramBuilder& builder) {
  Op op = builder.random().Pick({O::kSubtract, O::kDivide, O::kXor, O::kAnd, O::kOr, O::kMaximum,
                                 O::kMinimum, O::kAdd, O::kMultiply, O::kRemainder, O::kPower});
  Instr* x = OfClass(builder, InfoOf(op).types);
  return builder.Put(op, {x, x}) != nullptr;
}

// (a op b) op2 a, and with shared operands: a*c + b*c, a - (a - b), max(a, min(a, b)).
bool DrawShared(ProgramBuilder& builder) {
  Instr* a = OfClass(builder, kIntOrReal);
  if (a == nullptr) return false;
  Instr* b = builder.Like(a->shape());
  std::vector<Op> ops{O::kAdd, O::kSubtract, O::kMultiply, O::kDivide, O::kMaximum, O::kMinimum};
  Op inner = builder.random().Pick(ops), outer = builder.random().Pick(ops);
  Instr* ab = builder.Put(inner, {a, b});
  if (builder.random().Percent(50))
    return Either(builder, outer, ab, builder.random().Percent(50) ? a : b);
  Instr* c = builder.Like(a->shape());
  Instr* ac = builder.Put(inner, {a, c});
  return builder.Put(outer, {ab, ac}) != nullptr;
}

bool DrawComplexParts(ProgramBuilder& builder) {
  Instr* x = builder.AnyThat([](const Shape& s) { return IsComplex(s.type()); });
  if (x == nullptr) {
    Instr* part = builder.AnyThat([](const Shape& s) { return s.type() == ElementType::kF32; });
    if (part == nullptr) return false;
    x = builder.Put(O::kComplex, {part, builder.Like(part->shape())});
  }
  if (x == nullptr) return false;
  Instr* real = builder.Put(O::kReal, {x});
  Instr* imaginary = builder.Put(O::kImag, {x});
  return builder.Put(O::kComplex, {real, imaginary}) != nullptr;
}

// To another type and back: a pass may drop this only if it is lossless.
bool DrawConvertBack(ProgramBuilder& builder) {
  Instr* x = builder.Any();
  ElementType own = x->shape().type();
  static constexpr ElementType kTypes[] = {
      ElementType::kF32, ElementType::kBF16, ElementType::kF16,     ElementType::kF64,
      ElementType::kS32, ElementType::kS8,   ElementType::kU8,      ElementType::kS64,
      ElementType::kU32, ElementType::kPred, ElementType::kF8E4M3FN};
  Instr* there = builder.Convert(x, kTypes[builder.random().Below(std::size(kTypes))]);
  if (builder.random().Percent(30)) there = builder.Put(O::kNegate, {there});
  return builder.Convert(there, own) != nullptr;
}

// select(p, x, x), select(not p, ..), select over constants, select of selects on one p.
bool DrawSelects(ProgramBuilder& builder) {
  Instr* x = builder.Any();
  Instr* p = builder.Like(Shape::Array(ElementType::kPred, x->shape().dims()));
  Instr* y = builder.Like(x->shape());
  switch (builder.random().Below(4)) {
    case 0:
      return builder.Put(O::kSelect, {p, x, x}) != nullptr;
    case 1:
      return builder.Put(O::kSelect, {builder.Put(O::kNot, {p}), x, y}) != nullptr;
    case 2: {
      Instr* inner = builder.Put(O::kSelect, {p, x, y});
      Instr* z = builder.Like(x->shape());
      bool first = builder.random().Percent(50);
      return builder.Put(O::kSelect, {p, first ? inner : z, first ? z : inner}) != nullptr;
    }
    default: {
      Instr* yes = builder.Put(
          O::kConstant, {},
          ConstantAttrs{Literal::Scalar(ElementType::kPred, builder.random().Percent(50) ? 1 : 0)});
      if (builder.random().Percent(50)) yes = builder.BroadcastTo(yes, x->shape().dims());
      return builder.Put(O::kSelect, {yes, x, y}) != nullptr;
    }
  }
}

// iota < c and similar: a range that is all true, all false or a mask.
bool DrawIotaMask(ProgramBuilder& builder) {
  Dims dims = builder.AnyOfRank(1)->shape().dims();
  Shape shape = Shape::Array(builder.random().Pick({ElementType::kS32, ElementType::kU32,
                                                    ElementType::kF32, ElementType::kS8}),
                             dims);
  if (shape.rank() == 0) return false;
  Instr* iota =
      builder.Put(O::kIota, {}, IotaAttrs{builder.random().Below(shape.rank())}, {.shape = shape});
  Instr* bound = nullptr;
  if (builder.random().Percent(30)) {
    bound = builder.Put(O::kIota, {}, IotaAttrs{builder.random().Below(shape.rank())},
                        {.shape = shape});
  } else {
    bound = All(builder, iota, static_cast<double>(builder.random().Between(-1, 5)));
  }
  auto direction = static_cast<CompareDirection>(builder.random().Below(6));
  return builder.Put(O::kCompare, {iota, bound}, CompareAttrs{direction, CompareType::kNone}) !=
         nullptr;
}

// compare(x, x), compare(unsigned, 0), compare of converts, not of a compare.
bool DrawComparisons(ProgramBuilder& builder) {
  Instr* x = OfClass(builder, kIntOrReal);
  if (x == nullptr) return false;
  auto direction = static_cast<CompareDirection>(builder.random().Below(6));
  Instr* other = x;
  if (builder.random().Percent(60)) {
    double value = builder.random().Pick({0.0, 1.0, -1.0, -128.0, 127.0, 255.0});
    other = All(builder, x, value);
  }
  Instr* result = builder.Put(O::kCompare, {x, other}, CompareAttrs{direction, CompareType::kNone});
  if (builder.random().Percent(40)) result = builder.Put(O::kNot, {result});
  if (builder.random().Percent(30)) result = builder.Convert(result, ElementType::kS32);
  return result != nullptr;
}

// clamp with crossing or trivial bounds; clamp of clamp, max of min.
bool DrawClamps(ProgramBuilder& builder) {
  Instr* x = OfClass(builder, kIntOrReal);
  if (x == nullptr) return false;
  Shape scalar = Shape::Scalar(x->shape().type());
  auto bound = [&] {
    return builder.Number(scalar, static_cast<double>(builder.random().Between(-2, 3)));
  };
  Instr* low = bound();
  Instr* once = builder.Put(O::kClamp, {low, x, bound()});
  if (builder.random().Percent(50)) {
    Instr* lower = bound();
    return builder.Put(O::kClamp, {lower, once, bound()}) != nullptr;
  }
  Instr* limit = builder.BroadcastTo(bound(), x->shape().dims());
  return builder.Put(builder.random().Percent(50) ? O::kMaximum : O::kMinimum, {once, limit}) !=
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
