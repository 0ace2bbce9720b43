// Programs of contractions: one to three dots of any type, with sizes near those of the tiles of
// generators, and what is fused with them: computed or moved operands, epilogues, several results.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "random/program_builder.h"
#include "support/check.h"

namespace tokamak::fuzz {
namespace {

using Type = ElementType;

// Mostly those of tensor cores.
Type DrawFactorType(Random& random) {
  int64_t dice = random.Below(100);
  if (dice < 28) return Type::kBF16;
  if (dice < 40) return Type::kF16;
  if (dice < 58) return Type::kF32;
  if (dice < 68) return random.Pick({Type::kS8, Type::kS8, Type::kU8});
  if (dice < 78) return random.Pick({Type::kF8E4M3FN, Type::kF8E4M3FN, Type::kF8E5M2});
  return random.Pick({Type::kF64,
                      Type::kC64,
                      Type::kC128,
                      Type::kPred,
                      Type::kS16,
                      Type::kU16,
                      Type::kS32,
                      Type::kU32,
                      Type::kS64,
                      Type::kU64,
                      Type::kS4,
                      Type::kU4,
                      Type::kS2,
                      Type::kU2,
                      Type::kF8E4M3,
                      Type::kF8E3M4,
                      Type::kF8E4M3FNUZ,
                      Type::kF8E5M2FNUZ,
                      Type::kF8E4M3B11FNUZ,
                      Type::kF8E8M0FNU,
                      Type::kF6E2M3FN,
                      Type::kF6E3M2FN,
                      Type::kF4E2M1FN});
}

// Whether sums of the type can be wider, as JAX's preferred_element_type.
bool IsNarrowFactor(Type type) {
  return InfoOf(type).bits <= 16 && (IsReal(type) || IsInteger(type));
}

// The type of the other factor: sometimes another one, as where gradients are f32.
Type DrawOtherFactorType(Random& random, Type type) {
  if (InfoOf(type).bits > 32 || !random.Percent(20)) return type;
  if (IsInteger(type) && InfoOf(type).bits <= 8)
    return random.Pick({Type::kS8, Type::kU8, Type::kU8, Type::kS4, Type::kU4});
  if (!IsReal(type)) return type;
  return random.Pick({Type::kF32, Type::kF32, Type::kBF16, Type::kBF16, Type::kF16, Type::kF8E4M3FN,
                      Type::kF8E5M2});
}

// The type of sums of a narrow type, as JAX's preferred_element_type.
Type DrawSumType(Random& random, Type type) {
  if (IsReal(type)) return random.Pick({Type::kF32, Type::kF32, Type::kF32, Type::kBF16});
  return random.Pick({Type::kS32, Type::kS32, Type::kS32, Type::kU32, Type::kS64});
}

struct DotExtents {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  int64_t Products() const { return batch * m * n * k; }
};

int64_t DrawExtent(Random& random) {
  int64_t dice = random.Below(100);
  if (dice < 12) return random.Pick({1, 3, 17, 127});
  if (dice < 50) return random.Pick({63, 64, 65, 127, 128, 129, 255, 256, 257});
  if (dice < 80) return random.Between(17, 200);
  return 8 * random.Between(4, 24);
}

// Few programs have the greatest number of products, because the interpreter computes them too.
DotExtents DrawExtents(Random& random) {
  DotExtents extents;
  if (random.Percent(35)) extents.batch = random.Pick({2, 3, 5, 6});
  int64_t* sizes[] = {&extents.m, &extents.n, &extents.k};
  for (int64_t* size : sizes) *size = DrawExtent(random);
  int64_t limit = random.Percent(3) ? int64_t{1} << 24 : int64_t{1} << random.Between(18, 21);
  int64_t* longest = nullptr;
  if (random.Percent(12)) {
    longest = sizes[random.Below(3)];
    *longest = random.Pick({1000, 4097});
    limit = std::max(limit, int64_t{1} << 22);
  }
  while (extents.Products() > limit) {
    int64_t* largest = &extents.batch;
    for (int64_t* size : sizes)
      if (size != longest && *size > *largest) largest = size;
    int64_t smaller = *largest / 2;
    if (*largest > 65) smaller = random.Pick({17, 33, 40, 63, 64, 65});
    *largest = std::max(smaller, int64_t{1});
  }
  return extents;
}

// A size as one dimension or several; their product may be larger.
Dims DrawDims(Random& random, int64_t size) {
  int64_t dice = random.Below(100);
  if (size == 1 && dice < 40) return {};
  if (dice < 75 || size < 4) return {size};
  int64_t first = random.Pick({2, 3, 4, 8});
  Dims dims{first, (size + first - 1) / first};
  if (dice < 82) std::swap(dims[0], dims[1]);
  return dims;
}

// The dimensions of an operand, and those of each kind.
struct DotSide {
  Dims dims;
  Dims batch, free, contracting;
};

DotSide Arranged(Random& random, const Dims& batch, const Dims& free, const Dims& contracting) {
  DotSide side;
  const Dims* kinds[] = {&batch, &free, &contracting};
  Dims* positions[] = {&side.batch, &side.free, &side.contracting};
  std::vector<size_t> order{0, 1, 2};
  if (random.Percent(60)) random.Shuffle(order);
  std::vector<std::pair<size_t, size_t>> roles;  // kind, number among those of the kind
  for (size_t kind : order) {
    positions[kind]->resize(kinds[kind]->size());
    for (size_t i = 0; i < kinds[kind]->size(); ++i) roles.emplace_back(kind, i);
  }
  if (random.Percent(15)) random.Shuffle(roles);
  for (size_t d = 0; d < roles.size(); ++d) {
    auto [kind, i] = roles[d];
    side.dims.push_back((*kinds[kind])[i]);
    (*positions[kind])[i] = static_cast<int64_t>(d);
  }
  return side;
}

// ---- elementwise ops

// An array to combine with another one: one number, a vector along a dimension, or a parameter.
Instr* Beside(ProgramBuilder& builder, const Shape& shape) {
  int64_t dice = builder.random().Below(100);
  if (dice < 30 || shape.rank() == 0) {
    double number = builder.random().Pick({0.5, 1.0, 2.0, 3.0, -1.0});
    Instr* scalar = builder.Number(Shape::Scalar(shape.type()), number);
    return builder.BroadcastTo(scalar, shape.dims());
  }
  if (dice < 75) {
    int64_t d = dice < 60 ? shape.rank() - 1 : builder.random().Below(shape.rank());
    Instr* vector = builder.Parameter(Shape::Array(shape.type(), {shape.dim(At(d))}));
    return builder.Broadcast(vector, shape.dims(), {d});
  }
  return builder.Parameter(shape);
}

Op UnaryOf(Random& random, Type type) {
  if (type == Type::kPred) return Op::kNot;
  if (IsComplex(type)) return Op::kNegate;
  if (IsInteger(type)) return random.Pick({Op::kNegate, Op::kNot, Op::kAbs});
  // No steps: they are elsewhere after another rounding of a sum.
  return random.Pick({Op::kNegate, Op::kAbs, Op::kTanh, Op::kLogistic});
}

Op BinaryOf(Random& random, Type type) {
  if (type == Type::kPred) return random.Pick({Op::kAnd, Op::kOr, Op::kXor});
  if (IsComplex(type)) return random.Pick({Op::kAdd, Op::kSubtract, Op::kMultiply});
  return random.Pick(
      {Op::kAdd, Op::kAdd, Op::kSubtract, Op::kMultiply, Op::kMaximum, Op::kMinimum});
}

// x after one random op; x itself if that does not exist for its type.
Instr* Combined(ProgramBuilder& builder, Instr* x) {
  const Shape shape = x->shape();
  Instr* made = nullptr;
  int64_t dice = builder.random().Below(100);
  if (dice < 30) {
    Op op = UnaryOf(builder.random(), shape.type());
    made = builder.Put(op, {x});
  } else if (dice < 85) {
    Op op = BinaryOf(builder.random(), shape.type());
    Instr* other = Beside(builder, shape);
    made = builder.Put(op, {x, other});
  } else {
    Instr* mask = Beside(builder, shape.WithType(Type::kPred));
    Instr* other = Beside(builder, shape);
    made = builder.Put(Op::kSelect, {mask, x, other});
  }
  return made != nullptr ? made : x;
}

Instr* CombinedOften(ProgramBuilder& builder, Instr* x, int64_t count) {
  for (; count > 0 && x != nullptr; --count) x = Combined(builder, x);
  return x;
}

// ---- operands

Instr* TransposedSource(ProgramBuilder& builder, const Shape& shape) {
  Dims permutation = builder.Permutation(shape.rank()), dims(shape.dims().size());
  for (size_t d = 0; d < dims.size(); ++d) dims[At(permutation[d])] = shape.dim(d);
  Instr* x = builder.Parameter(Shape::Array(shape.type(), dims));
  return builder.Put(Op::kTranspose, {x}, DimensionsAttrs{permutation});
}

// A part of a larger array, or an array with a margin.
Instr* CutSource(ProgramBuilder& builder, const Shape& shape) {
  Dims dims = shape.dims(), zeros(dims.size(), 0), ones(dims.size(), 1);
  size_t d = At(builder.random().Below(shape.rank()));
  bool pads = builder.random().Percent(40) && dims[d] > 2;
  int64_t margin = builder.random().Between(1, pads ? 2 : 9);
  Dims from = dims;
  from[d] += pads ? -margin : margin;
  Instr* x = builder.Parameter(Shape::Array(shape.type(), from));
  if (pads) {
    Dims high = zeros;
    high[d] = margin;
    Instr* value = builder.Number(Shape::Scalar(shape.type()), 1);
    return builder.Put(Op::kPad, {x, value}, PadAttrs{zeros, high, zeros});
  }
  Dims start = zeros, limit = dims;
  start[d] = builder.random().Between(0, margin);
  limit[d] += start[d];
  return builder.Put(Op::kSlice, {x}, SliceAttrs{start, limit, ones});
}

Instr* ConcatenatedSource(ProgramBuilder& builder, const Shape& shape) {
  size_t d = At(builder.random().Below(shape.rank()));
  if (shape.dim(d) < 2) return nullptr;
  Dims left = shape.dims(), right = shape.dims();
  left[d] = builder.random().Between(1, shape.dim(d) - 1);
  right[d] -= left[d];
  Instr* x = builder.Parameter(Shape::Array(shape.type(), left));
  Instr* y = builder.Parameter(Shape::Array(shape.type(), right));
  return builder.Put(Op::kConcatenate, {x, y}, DimensionAttrs{static_cast<int64_t>(d)});
}

Instr* ConvertedSource(ProgramBuilder& builder, const Shape& shape) {
  Type from = builder.random().Pick(
      {Type::kF32, Type::kBF16, Type::kF16, Type::kS8, Type::kPred, Type::kF8E4M3FN});
  return builder.Convert(builder.Parameter(shape.WithType(from)), shape.type());
}

Instr* MovedSource(ProgramBuilder& builder, const Shape& shape) {
  int64_t dice = builder.random().Below(100);
  if (shape.rank() == 0 || dice < 40) return builder.Parameter(shape);
  if (dice < 57) return TransposedSource(builder, shape);
  if (dice < 64)
    return builder.Reshape(builder.Parameter(Shape::Array(shape.type(), {shape.ElementCount()})),
                           shape.dims());
  if (dice < 78) return ConvertedSource(builder, shape);
  if (dice < 84) {
    Dims map(shape.dims().size() - 1), dims;
    std::iota(map.begin(), map.end(), 0);
    size_t without = At(builder.random().Below(shape.rank()));
    for (size_t d = without; d < map.size(); ++d) ++map[d];
    for (int64_t d : map) dims.push_back(shape.dim(At(d)));
    return builder.Broadcast(builder.Parameter(Shape::Array(shape.type(), dims)), shape.dims(),
                             map);
  }
  return dice < 94 ? CutSource(builder, shape) : ConcatenatedSource(builder, shape);
}

Instr* DrawFactor(ProgramBuilder& builder, const Shape& shape) {
  Instr* x = MovedSource(builder, shape);
  if (x == nullptr) x = builder.Parameter(shape);
  int64_t ops = builder.random().Percent(35) ? builder.random().Between(1, 3) : 0;
  return CombinedOften(builder, x, ops);
}

// ---- dots

Instr* PutDot(ProgramBuilder& builder, Instr* x, Instr* y, const DotAttrs& attrs) {
  if (x == nullptr || y == nullptr) return nullptr;
  Type type = x->shape().type();
  bool is_mixed = type != y->shape().type();
  bool widens = is_mixed || (IsNarrowFactor(type) && builder.random().Percent(45));
  if (!widens) return builder.Put(Op::kDot, {x, y}, attrs);
  std::vector<Shape> shapes{x->shape(), y->shape()};
  Attrs any(attrs);
  auto shape = InferShape({Op::kDot, shapes, any, {}, 0, nullptr});
  if (!shape.ok()) return nullptr;
  return builder.Put(Op::kDot, {x, y}, attrs,
                     {.shape = shape.value().WithType(DrawSumType(builder.random(), type))});
}

Instr* DrawGeneralDot(ProgramBuilder& builder, Instr** lhs) {
  Random& random = builder.random();
  Type type = DrawFactorType(random);
  DotExtents extents = DrawExtents(random);
  Dims batch = extents.batch == 1 ? Dims{} : DrawDims(random, extents.batch);
  Dims rows = DrawDims(random, extents.m), columns = DrawDims(random, extents.n);
  Dims depth = DrawDims(random, extents.k);
  DotSide x = Arranged(random, batch, rows, depth), y = Arranged(random, batch, columns, depth);
  DotAttrs attrs;
  attrs.precision = DrawPrecision(random, 70);
  Dims order = builder.Permutation(static_cast<int64_t>(depth.size()));
  if (random.Percent(70)) std::sort(order.begin(), order.end());
  for (int64_t i : order) {
    attrs.lhs_contracting.push_back(x.contracting[At(i)]);
    attrs.rhs_contracting.push_back(y.contracting[At(i)]);
  }
  attrs.lhs_batch = x.batch;
  attrs.rhs_batch = y.batch;
  *lhs = DrawFactor(builder, Shape::Array(type, x.dims));
  Type other = DrawOtherFactorType(random, type);
  Instr* rhs = DrawFactor(builder, Shape::Array(other, y.dims));
  return PutDot(builder, *lhs, rhs, attrs);
}

// x times a new matrix, along the last dimension of x.
Instr* DrawProductOf(ProgramBuilder& builder, Instr* x) {
  if (x == nullptr || x->shape().rank() == 0) return nullptr;
  int64_t depth = x->shape().dims().back();
  int64_t columns = builder.random().Pick({17, 32, 40, 64, 65});
  if (x->shape().ElementCount() * columns > int64_t{1} << 22) return nullptr;
  bool transposed = builder.random().Percent(40);
  Dims dims = transposed ? Dims{columns, depth} : Dims{depth, columns};
  Instr* y = DrawFactor(builder, Shape::Array(x->shape().type(), dims));
  DotAttrs attrs;
  attrs.lhs_contracting = {x->shape().rank() - 1};
  attrs.rhs_contracting = {transposed ? 1 : 0};
  return PutDot(builder, x, y, attrs);
}

// ---- epilogues

// 0.5 x (1 + tanh(0.8 (x + x^3 / 22))), after a bias.
Instr* Gelu(ProgramBuilder& builder, Instr* x) {
  const Shape shape = x->shape();
  if (shape.rank() == 0 || !IsReal(shape.type())) return x;
  auto number = [&](double value) {
    return builder.BroadcastTo(builder.Number(Shape::Scalar(shape.type()), value), shape.dims());
  };
  int64_t last = shape.rank() - 1;
  Instr* vector = builder.Parameter(Shape::Array(shape.type(), {shape.dim(At(last))}));
  Instr* bias = builder.Broadcast(vector, shape.dims(), {last});
  Instr* sum = builder.Put(Op::kAdd, {x, bias});
  Instr* square = builder.Put(Op::kMultiply, {sum, sum});
  Instr* cube = builder.Put(Op::kMultiply, {square, sum});
  Instr* small = builder.Put(Op::kMultiply, {cube, number(0.0447)});
  Instr* inner = builder.Put(Op::kAdd, {sum, small});
  Instr* scaled = builder.Put(Op::kMultiply, {inner, number(0.798)});
  Instr* bent = builder.Put(Op::kAdd, {builder.Put(Op::kTanh, {scaled}), number(1)});
  Instr* made = builder.Put(Op::kMultiply, {builder.Put(Op::kMultiply, {sum, bent}), number(0.5)});
  return made != nullptr ? made : x;
}

Instr* ReducedBy(ProgramBuilder& builder, Instr* x, int64_t d, Op op) {
  Type type = x->shape().type();
  Computation* body = Combiner(builder, type, op);
  // f8 types may have no infinity.
  bool has_least = op == Op::kMaximum && IsReal(type) && InfoOf(type).bits >= 16;
  Instr* init = builder.Number(Shape::Scalar(type), has_least ? -HUGE_VAL : 0);
  return builder.Put(Op::kReduce, {x, init}, DimensionsAttrs{{d}}, {.called = {body}});
}

// Sums or extremes of x along one dimension.
Instr* ReducedAlong(ProgramBuilder& builder, Instr* x, int64_t d) {
  Type type = x->shape().type();
  Op op = type == Type::kPred            ? Op::kOr
          : IsComplex(type)              ? Op::kAdd
          : builder.random().Percent(60) ? Op::kAdd
                                         : Op::kMaximum;
  return ReducedBy(builder, x, d, op);
}

Instr* DrawEpilogue(ProgramBuilder& builder, Instr* x) {
  Random& random = builder.random();
  if (random.Percent(25)) return x;
  x = random.Percent(20) ? Gelu(builder, x) : CombinedOften(builder, x, random.Between(1, 3));
  if (random.Percent(25)) {
    // Not to f16, whose largest number roundings of a large sum reach or not.
    Type type = random.Pick({Type::kF32, Type::kBF16});
    Instr* converted = IsComplex(x->shape().type()) ? nullptr : builder.Convert(x, type);
    if (converted != nullptr) x = converted;
    if (random.Percent(40)) x = Combined(builder, x);
  }
  if (random.Percent(15) && x->shape().rank() > 1) {
    Dims permutation = builder.Permutation(x->shape().rank());
    x = builder.Put(Op::kTranspose, {x}, DimensionsAttrs{permutation});
  }
  return x;
}

// The softmax of the rows of x.
Instr* SoftmaxOf(ProgramBuilder& builder, Instr* x) {
  if (x == nullptr) return nullptr;
  const Dims dims = x->shape().dims();
  int64_t last = x->shape().rank() - 1;
  Dims others(static_cast<size_t>(last));
  std::iota(others.begin(), others.end(), 0);
  Instr* most = builder.Broadcast(ReducedBy(builder, x, last, Op::kMaximum), dims, others);
  Instr* power = builder.Put(Op::kExp, {builder.Put(Op::kSubtract, {x, most})});
  Instr* sum = power == nullptr ? nullptr : ReducedBy(builder, power, last, Op::kAdd);
  return builder.Put(Op::kDivide, {power, builder.Broadcast(sum, dims, others)});
}

// softmax(q k + mask) v, with the heads before or after the rows.
Instr* DrawAttention(ProgramBuilder& builder) {
  Random& random = builder.random();
  Type type = random.Pick({Type::kBF16, Type::kBF16, Type::kF16, Type::kF32});
  int64_t batch = random.Between(1, 2), heads = random.Between(1, 3);
  int64_t rows = random.Pick({33, 64, 65, 128, 200}), keys = random.Pick({40, 64, 65, 128, 257});
  int64_t depth = random.Pick({40, 64, 64, 96, 128});
  bool inside = random.Percent(50);
  auto array = [&](int64_t count) {
    return Shape::Array(
        type, inside ? Dims{batch, count, heads, depth} : Dims{batch, heads, count, depth});
  };
  Dims of_batch = inside ? Dims{0, 2} : Dims{0, 1};
  DotAttrs attrs;
  attrs.lhs_batch = attrs.rhs_batch = of_batch;
  attrs.lhs_contracting = attrs.rhs_contracting = {3};
  Instr* q = DrawFactor(builder, array(rows));
  Instr* k = DrawFactor(builder, array(keys));
  Instr* scores = PutDot(builder, q, k, attrs);
  if (scores == nullptr) return nullptr;
  Instr* scale = builder.Number(Shape::Scalar(scores->shape().type()), 0.125);
  scores = builder.Put(Op::kMultiply, {scores, builder.BroadcastTo(scale, scores->shape().dims())});
  if (random.Percent(50)) scores = Combined(builder, scores);
  Instr* weights = SoftmaxOf(builder, scores);
  if (weights == nullptr) return nullptr;
  weights = builder.Convert(weights, type);
  Instr* v = DrawFactor(builder, array(keys));
  attrs.lhs_batch = {0, 1};
  attrs.rhs_contracting = {inside ? 1 : 2};
  return PutDot(builder, weights, v, attrs);
}

void AddResults(ProgramBuilder& builder, Instr* dot, std::vector<Instr*>& results) {
  Random& random = builder.random();
  Instr* last = DrawEpilogue(builder, dot);
  results.push_back(last);
  if (last != dot && random.Percent(20)) results.push_back(dot);
  if (random.Percent(12)) results.push_back(DrawEpilogue(builder, dot));
  if (random.Percent(25) && last->shape().rank() > 0) {
    int64_t d = last->shape().rank() - 1;
    if (random.Percent(40)) d = random.Below(last->shape().rank());
    if (Instr* reduced = ReducedAlong(builder, last, d)) results.push_back(reduced);
  }
}

}  // namespace

std::vector<Precision> DrawPrecision(Random& random, int default_percent) {
  if (random.Percent(default_percent)) return {};
  Precision precision = random.Pick({Precision::kHigh, Precision::kHighest});
  return {precision, precision};
}

Instr* DrawContractions(ProgramBuilder& builder) {
  Random& random = builder.random();
  std::vector<Instr*> results;
  Instr *lhs = nullptr, *dot = nullptr;
  int64_t dice = random.Below(100);
  if (dice < 8) dot = lhs = DrawAttention(builder);
  if (dice >= 88) dot = lhs = DrawImageConvolution(builder);
  // A type may lack an op, and an array may be too large.
  for (int attempts = 0; dot == nullptr && attempts < 20; ++attempts)
    dot = DrawGeneralDot(builder, &lhs);
  TOK_CHECK(dot != nullptr, "no contraction could be drawn");
  AddResults(builder, dot, results);
  if (random.Percent(10))  // another product of the same operand
    if (Instr* other = DrawProductOf(builder, lhs)) AddResults(builder, other, results);
  if (random.Percent(10))  // a chain
    if (Instr* next = DrawProductOf(builder, results[0])) AddResults(builder, next, results);
  if (results.size() == 1) return results[0];
  return builder.Put(Op::kTuple, results);
}

}  // namespace tokamak::fuzz
