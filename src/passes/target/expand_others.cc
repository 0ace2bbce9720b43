// Rows of the table of expand-ops (expand_ops.h): each function rewrites one instruction into ops
// that every target computes, and returns false if the instruction is not of its kind. The
// functions are independent of each other; ExpandBy applies the table again to the instructions
// that they create.
//
//   cholesky, triangular-solve, narrow floats   in f64, rounded once
//   custom-call potrf                           cholesky, select of a triangle, NaN test
//   atan2, power of complex numbers             log and exp; a power selects special cases
//   dynamic-iota, dynamic-reshape               the static op, if the shape is known
//   concatenate of more than 512 operands       a tree of concatenates of 32

#include <algorithm>
#include <limits>

#include "gen/region.h"
#include "passes/target/expand_ops.h"
#include "rewrite/editor.h"

namespace tokamak {

// Triangular solve of narrow floats: computed in f64 and rounded once.
bool ExpandNarrowSolve(Instr& instr) {
  if (instr.op() != Op::kCholesky && instr.op() != Op::kTriangularSolve) return false;
  ElementType type = instr.shape().type();
  if (!IsPlainArray(instr.shape()) || !IsReal(type) || InfoOf(type).bits >= 32) return false;
  Editor make(instr);
  std::vector<Instr*> operands;
  auto as = [&](Instr* x, ElementType to) {
    return make.Make(Op::kConvert, Shape::Array(to, x->shape().dims()), {x});
  };
  for (Instr* operand : instr.operands()) operands.push_back(as(operand, ElementType::kF64));
  Instr* wide = make.Make(instr.op(), Shape::Array(ElementType::kF64, instr.shape().dims()),
                          std::move(operands), instr.attrs());
  make.Replace(as(wide, type));
  return true;
}

namespace {

bool IsZeroConstant(const Instr* x) {
  if (x->op() == Op::kBroadcast) x = x->operand(0);
  if (x->op() != Op::kConstant || !x->shape().IsArray() || !IsInteger(x->shape().type()))
    return false;
  const Literal& literal = x->attrs<ConstantAttrs>().literal;
  for (int64_t i = 0; i < x->shape().ElementCount(); ++i)
    if (literal.IntAt(i) != 0) return false;
  return true;
}

// Whether the result is only compared with 0.
bool IsOnlyComparedWithZero(const Instr& call, int64_t result) {
  for (const Instr* part : call.users()) {
    if (part->op() != Op::kGetTupleElement || part->parent()->root() == part) return false;
    if (part->attrs<TupleIndexAttrs>().index != result) continue;
    for (const Instr* user : part->users()) {
      if (user->op() != Op::kCompare) return false;
      CompareDirection direction = user->attrs<CompareAttrs>().direction;
      if (direction != CompareDirection::kEq && direction != CompareDirection::kNe) return false;
      if (!IsZeroConstant(user->operand(user->operand(0) == part ? 1 : 0))) return false;
    }
  }
  return true;
}

}  // namespace

// LAPACK's potrf: a factor in one triangle, the other triangle unchanged, and the index of the
// failing minor, or 0. For a matrix that is not positive definite our factor is NaN, so only the
// failure is known, not its index.
bool ExpandPotrf(Instr& instr) {
  if (instr.op() != Op::kCustomCall || instr.operand_count() != 1 || !instr.shape().IsTuple())
    return false;
  const CustomCallAttrs& attrs = instr.attrs<CustomCallAttrs>();
  const std::string& name = attrs.target;
  if (!name.starts_with("lapack_") || !name.ends_with("potrf_ffi") || attrs.has_side_effect ||
      instr.parent()->root() == &instr)
    return false;
  const Shape given = instr.operand(0)->shape().WithoutLayout();
  const std::vector<Shape> results = ResultShapesOf(instr.shape());
  if (!IsPlainArray(given) || given.rank() < 2 || given.ElementCount() == 0 ||
      results.size() != 2 || results[0].dims() != given.dims() ||
      results[1].type() != ElementType::kS32 || !IsOnlyComparedWithZero(instr, 1))
    return false;
  const AttrValue* letter = Find(attrs.backend_dict, "uplo");
  const IntAttr* triangle = letter == nullptr ? nullptr : letter->As<IntAttr>();
  bool lower = triangle == nullptr || triangle->value == 'L';
  Editor make(instr);
  Instr* a = instr.operand(0);
  Instr* factor = make.Make(Op::kCholesky, given, {a}, CholeskyAttrs{.lower = lower});
  Shape positions = Shape::Array(ElementType::kS32, given.dims());
  auto along = [&](int64_t d) { return make.Make(Op::kIota, positions, {}, IotaAttrs{d}); };
  auto compare = [&](Instr* x, Instr* y, CompareDirection direction) {
    return make.Make(Op::kCompare, Shape::Array(ElementType::kPred, x->shape().dims()), {x, y},
                     CompareAttrs{direction, CompareType::kNone});
  };
  Instr *row = along(given.rank() - 2), *column = along(given.rank() - 1);
  Instr* kept = compare(row, column, lower ? CompareDirection::kGe : CompareDirection::kLe);
  Instr* both = make.Make(Op::kSelect, given, {kept, factor, a});
  // Tests the first element of each factor: NaN is not equal to itself.
  SliceAttrs corner{Dims(given.dims().size()), given.dims(), Dims(given.dims().size(), 1)};
  corner.limits[corner.limits.size() - 2] = corner.limits.back() = 1;
  Instr* first = make.Make(Op::kSlice, Shape::Array(given.type(), corner.limits), {factor}, corner);
  first = make.Make(Op::kReshape, Shape::Array(given.type(), results[1].dims()), {first});
  Instr* failed = make.Make(Op::kConvert, results[1].WithoutLayout(),
                            {compare(first, first, CompareDirection::kNe)});
  make.Replace(make.Make(Op::kTuple, instr.shape(), {both, failed}));
  return true;
}

// -i log((x + i y) / sqrt(x x + y y)) for complex numbers.
bool ExpandComplexAtan2(Instr& instr) {
  if (instr.op() != Op::kAtan2 || !IsPlainArray(instr.shape())) return false;
  const Shape shape = Shape::Array(instr.shape().type(), instr.shape().dims());
  if (!IsComplex(shape.type()) || shape.ElementCount() == 0) return false;
  Editor make(instr);
  ElementType part_type = shape.type() == ElementType::kC64 ? ElementType::kF32 : ElementType::kF64;
  Shape part = Shape::Array(part_type, shape.dims());
  // i z, or -i z
  auto flipped = [&](Instr* z, bool back) {
    Instr* re = make.Make(Op::kReal, part, {z});
    Instr* im = make.Make(Op::kImag, part, {z});
    Instr* negated = make.Make(Op::kNegate, part, {back ? re : im});
    return make.Make(Op::kComplex, shape,
                     back ? std::vector<Instr*>{im, negated} : std::vector<Instr*>{negated, re});
  };
  auto both = [&](Op op, Instr* x, Instr* y) { return make.Make(op, shape, {x, y}); };
  Instr *y = instr.operand(0), *x = instr.operand(1);
  Instr* squares = both(Op::kAdd, both(Op::kMultiply, x, x), both(Op::kMultiply, y, y));
  Instr* size = make.Make(Op::kSqrt, shape, {squares});
  Instr* unit = both(Op::kDivide, both(Op::kAdd, x, flipped(y, false)), size);
  make.Replace(flipped(make.Make(Op::kLog, shape, {unit}), true));
  return true;
}

// z^w = e^(w log z) for c128. It loses the bits of |w log z|; the formula for c64 has spare
// precision. If an operand is 0 or not finite, only real operands have a defined power; z^0 and 1^w
// are 1.
bool ExpandComplexPower(Instr& instr) {
  if (instr.op() != Op::kPower || !IsPlainArray(instr.shape())) return false;
  if (instr.shape().type() != ElementType::kC128 || instr.shape().ElementCount() == 0) return false;
  const Dims dims = instr.shape().dims();
  Editor make(instr);
  Shape shape = Shape::Array(ElementType::kC128, dims),
        part = Shape::Array(ElementType::kF64, dims), pred = Shape::Array(ElementType::kPred, dims);
  auto number = [&](double value) { return make.Filled(part, value); };
  auto is = [&](Instr* x, CompareDirection direction, double than) {
    return make.Make(Op::kCompare, pred, {x, number(than)},
                     CompareAttrs{direction, CompareType::kNone});
  };
  auto both = [&](Instr* x, Instr* y) { return make.Make(Op::kAnd, pred, {x, y}); };
  auto either = [&](Instr* x, Instr* y) { return make.Make(Op::kOr, pred, {x, y}); };
  auto pick = [&](Instr* p, Instr* x, Instr* y) {
    return make.Make(Op::kSelect, shape, {p, x, y});
  };
  auto real = [&](double value) {
    Instr* re = number(value);
    return make.Make(Op::kComplex, shape, {re, number(0)});
  };
  constexpr auto kEq = CompareDirection::kEq;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Instr *z = instr.operand(0), *w = instr.operand(1);
  Instr *z_re = make.Make(Op::kReal, part, {z}), *z_im = make.Make(Op::kImag, part, {z});
  Instr *w_re = make.Make(Op::kReal, part, {w}), *w_im = make.Make(Op::kImag, part, {w});
  Instr *z_real = is(z_im, kEq, 0), *w_real = is(w_im, kEq, 0);
  Instr* of_zero = both(is(z_re, kEq, 0), z_real);
  Instr* of_infinity = both(is(z_re, kEq, kInfinity), z_real);
  Instr* to_positive = both(is(w_re, CompareDirection::kGt, 0), w_real);
  Instr* to_negative = both(is(w_re, CompareDirection::kLt, 0), w_real);
  Instr* finite = both(make.Make(Op::kIsFinite, pred, {z}), make.Make(Op::kIsFinite, pred, {w}));
  Instr* log = make.Make(Op::kLog, shape, {z});
  Instr* power = make.Make(Op::kExp, shape, {make.Make(Op::kMultiply, shape, {w, log})});
  Instr* nan = number(kNan);
  Instr* result = pick(both(finite, make.Make(Op::kNot, pred, {of_zero})), power,
                       make.Make(Op::kComplex, shape, {nan, nan}));
  result =
      pick(either(both(of_zero, to_positive), both(of_infinity, to_negative)), real(0), result);
  result = pick(both(of_infinity, to_positive), real(kInfinity), result);
  Instr* is_one = either(both(is(w_re, kEq, 0), w_real), both(is(z_re, kEq, 1), z_real));
  make.Replace(pick(is_one, real(1), result));
  return true;
}

// Ops whose shape is an operand, if that operand is known.
bool ExpandKnownShape(Instr& instr) {
  if (instr.op() != Op::kDynamicIota && instr.op() != Op::kDynamicReshape) return false;
  if (!IsPlainArray(instr.shape())) return false;
  Editor make(instr);
  if (instr.op() == Op::kDynamicIota) {
    make.Replace(make.Make(Op::kIota, instr.shape(), {}, instr.attrs()));
    return true;
  }
  const Shape& from = instr.operand(0)->shape();
  if (!IsPlainArray(from) || from.ElementCount() != instr.shape().ElementCount()) return false;
  make.Replace(make.Make(Op::kReshape, instr.shape(), {instr.operand(0)}));
  return true;
}

namespace {

// Concatenates adjacent operands in groups.
std::vector<Instr*> Shortened(Editor& make, const Instr& like, const std::vector<Instr*>& parts,
                              size_t at_a_time) {
  auto along = static_cast<size_t>(like.attrs<DimensionAttrs>().dimension);
  std::vector<Instr*> fewer;
  for (size_t begin = 0; begin < parts.size(); begin += at_a_time) {
    size_t end = std::min(begin + at_a_time, parts.size());
    std::vector<Instr*> some(parts.begin() + static_cast<int64_t>(begin),
                             parts.begin() + static_cast<int64_t>(end));
    Dims dims = like.shape().dims();
    dims[along] = 0;
    for (const Instr* part : some) dims[along] += part->shape().dim(along);
    fewer.push_back(make.Make(Op::kConcatenate, Shape::Array(like.shape().type(), dims),
                              std::move(some), like.attrs()));
  }
  return fewer;
}

}  // namespace

// A kernel cannot read very many arrays.
bool SplitConcatenate(Instr& instr) {
  // Operands: concatenates with more than kMany are split into levels of kAtATime. Chosen: a kernel
  // selects among all operands per element, so its code grows with them.
  constexpr size_t kMany = 512, kAtATime = 32;
  if (instr.op() != Op::kConcatenate || instr.operand_count() <= kMany) return false;
  Editor make(instr);
  std::vector<Instr*> parts(instr.operands().begin(), instr.operands().end());
  while (parts.size() > kAtATime) parts = Shortened(make, instr, parts, kAtATime);
  make.Replace(make.Make(Op::kConcatenate, instr.shape(), std::move(parts), instr.attrs()));
  return true;
}

}  // namespace tokamak
