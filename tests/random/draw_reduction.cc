// Reductions, windows, sorts and scans.
#include <algorithm>

#include "random/program_builder.h"

namespace tokamak::fuzz {
namespace {

Op CombinerFor(ProgramBuilder& builder, ElementType type) {
  if (type == ElementType::kPred) return builder.random().Pick({Op::kAnd, Op::kOr});
  if (IsComplex(type)) return builder.random().Pick({Op::kAdd, Op::kMultiply});
  std::vector<Op> ops{Op::kAdd, Op::kAdd, Op::kMultiply, Op::kMaximum, Op::kMinimum};
  if (IsInteger(type)) ops.insert(ops.end(), {Op::kAnd, Op::kOr, Op::kXor});
  return builder.random().Pick(ops);
}

// Usually the identity of the combiner.
Instr* InitFor(ProgramBuilder& builder, ElementType type, Op op) {
  Shape scalar = Shape::Scalar(type);
  if (builder.random().Percent(20)) return builder.Like(scalar);
  if (op == Op::kMultiply || op == Op::kAnd) return builder.Constant(scalar, Mood::kOnes);
  if ((op == Op::kMaximum || op == Op::kMinimum) && IsReal(type))
    return builder.Number(scalar, op == Op::kMaximum ? -HUGE_VAL : HUGE_VAL);
  if (IsReal(type) && builder.random().Percent(20)) return builder.Number(scalar, -0.0);
  return builder.Constant(scalar, Mood::kZeros);
}

Instr* Reduced(ProgramBuilder& builder, Instr* x, Op op) {
  if (x == nullptr) return nullptr;
  Dims dimensions;
  for (int64_t d = 0; d < x->shape().rank(); ++d)
    if (builder.random().Percent(55)) dimensions.push_back(d);
  ElementType type = x->shape().type();
  Instr* init = InitFor(builder, type, op);
  if (builder.random().Percent(92) || IsComplex(type)) {
    Computation* body = Combiner(builder, type, op);
    return builder.Put(Op::kReduce, {x, init}, DimensionsAttrs{dimensions}, {.called = {body}});
  }
  // Bounded by a number that the body captures.
  Instr* captured = builder.LikeButDrawn(Shape::Scalar(type));
  ProgramBuilder body(builder.program_state(), "bounded", ProgramBuilder::Kind::kBody,
                      builder.depth() + 1);
  Instr* a = body.Parameter(Shape::Scalar(type));
  Instr* b = body.Parameter(Shape::Scalar(type));
  Instr* limit = body.Parameter(Shape::Scalar(type));
  Instr* root = body.Put(Op::kMinimum, {body.Put(op, {a, b}), limit});
  if (root == nullptr) return nullptr;
  body.computation()->set_root(root);
  return builder.Put(Op::kReduce, {x, init, captured}, DimensionsAttrs{dimensions},
                     {.called = {body.computation()}, .captures = 1});
}

bool DrawReduce(ProgramBuilder& builder) {
  Instr* x = builder.AnyOfRank(1);
  Op op = CombinerFor(builder, x->shape().type());
  return Reduced(builder, x, op) != nullptr;
}

// A reduce of a reduce, a broadcast, a reshape, a pad, a concatenate, a transpose.
bool DrawReduceOfMoved(ProgramBuilder& builder) {
  Instr* x = builder.AnyOfRank(1);
  Op op = CombinerFor(builder, x->shape().type());
  const Shape shape = x->shape();
  switch (builder.random().Below(6)) {
    case 0:
      x = Reduced(builder, x, op);
      if (builder.random().Percent(25)) op = CombinerFor(builder, shape.type());
      break;
    case 1: {
      Dims dims = shape.dims(), map = builder.Permutation(shape.rank());
      std::sort(map.begin(), map.end());
      dims.push_back(builder.random().Between(1, 4));
      x = builder.Broadcast(x, dims, map);
      break;
    }
    case 2:
      x = builder.Reshape(x, {shape.ElementCount()});
      break;
    case 3:
      x = builder.Put(Op::kPad, {x, InitFor(builder, shape.type(), op)},
                      PadAttrs{Dims(shape.dims().size(), 1), Dims(shape.dims().size(), 1),
                               Dims(shape.dims().size(), 0)});
      break;
    case 4:
      x = builder.Put(Op::kConcatenate, {x, builder.Like(shape)}, DimensionAttrs{shape.rank() - 1});
      break;
    default:
      x = builder.Put(Op::kTranspose, {x}, DimensionsAttrs{builder.Permutation(shape.rank())});
  }
  return Reduced(builder, x, op) != nullptr;
}

// Selects from (value, index) pairs by a comparison of the values.
Computation* PickBody(ProgramBuilder& builder, ElementType type) {
  ProgramBuilder body(builder.program_state(), "argmax", ProgramBuilder::Kind::kBody,
                      builder.depth() + 1);
  Shape value_scalar = Shape::Scalar(type), index_scalar = Shape::Scalar(ElementType::kS32);
  Instr *a = body.Parameter(value_scalar), *i = body.Parameter(index_scalar);
  Instr *b = body.Parameter(value_scalar), *j = body.Parameter(index_scalar);
  auto direction =
      builder.random().Pick({CompareDirection::kGt, CompareDirection::kGe, CompareDirection::kLt});
  Instr* first = body.Put(Op::kCompare, {a, b}, CompareAttrs{direction, CompareType::kNone});
  Instr* value = body.Put(Op::kSelect, {first, a, b});
  Instr* position = body.Put(Op::kSelect, {first, i, j});
  body.computation()->set_root(body.Put(Op::kTuple, {value, position}));
  return body.computation();
}

// The maximum and its index, written like argmax; and two plain sums in one reduce.
bool DrawVariadicReduce(ProgramBuilder& builder) {
  Instr* x = builder.AnyThat([](const Shape& s) { return s.rank() > 0 && !IsComplex(s.type()); });
  if (x == nullptr) return false;
  const Shape shape = x->shape();
  int64_t along = builder.random().Below(shape.rank());
  Shape index = shape.WithType(ElementType::kS32);
  Instr* iota = builder.Put(Op::kIota, {}, IotaAttrs{along}, {.shape = index});
  Instr* init = InitFor(builder, shape.type(), Op::kMaximum);
  Instr* zero = builder.Integer(ElementType::kS32, 0);
  Instr* both = builder.Put(Op::kReduce, {x, iota, init, zero}, DimensionsAttrs{{along}},
                            {.called = {PickBody(builder, shape.type())}});
  if (both == nullptr) return false;
  if (builder.random().Percent(80)) builder.Element(both, 0);
  if (builder.random().Percent(80)) builder.Element(both, 1);
  return true;
}

WindowDim AnyWindow(ProgramBuilder& builder, int64_t size) {
  WindowDim w;
  if (builder.random().Percent(40)) return w;
  w.size = builder.random().Between(1, std::clamp<int64_t>(size, 1, 4));
  if (builder.random().Percent(8)) {  // many taps
    w.size = 40;
    w.pad_low = w.pad_high = 25;
    return w;
  }
  if (builder.random().Percent(40)) w.stride = builder.random().Between(1, 3);
  if (builder.random().Percent(50)) w.pad_low = builder.random().Between(-1, 3);
  if (builder.random().Percent(50)) w.pad_high = builder.random().Between(-1, 3);
  if (builder.random().Percent(15)) w.base_dilation = 2;
  if (builder.random().Percent(15)) w.window_dilation = 2;
  return w;
}

bool DrawReduceWindow(ProgramBuilder& builder) {
  Instr* x = builder.AnyOfRank(1);
  Op op = CombinerFor(builder, x->shape().type());
  WindowAttrs attrs;
  for (int64_t size : x->shape().dims()) attrs.window.push_back(AnyWindow(builder, size));
  if (builder.random().Percent(35)) {  // a cumulative sum, from either end
    attrs.window.assign(attrs.window.size(), WindowDim{});
    int64_t along = builder.random().Below(x->shape().rank());
    WindowDim& w = attrs.window[At(along)];
    w.size = std::max<int64_t>(x->shape().dim(At(along)), 1);
    (builder.random().Percent(50) ? w.pad_low : w.pad_high) = w.size - 1;
    if (builder.random().Percent(10)) ++w.pad_low;
  }
  Instr* init = InitFor(builder, x->shape().type(), op);
  Computation* body = Combiner(builder, x->shape().type(), op);
  return builder.Put(Op::kReduceWindow, {x, init}, attrs, {.called = {body}}) != nullptr;
}

// The maximum of each window and its index.
bool DrawVariadicWindow(ProgramBuilder& builder) {
  Instr* x = builder.AnyThat(
      [](const Shape& s) { return s.rank() > 0 && s.ElementCount() > 0 && !IsComplex(s.type()); });
  if (x == nullptr) return false;
  const Shape shape = x->shape();
  Instr* iota = builder.Put(Op::kIota, {}, IotaAttrs{builder.random().Below(shape.rank())},
                            {.shape = shape.WithType(ElementType::kS32)});
  Instr* init = InitFor(builder, shape.type(), Op::kMaximum);
  WindowAttrs attrs;
  for (int64_t size : shape.dims()) attrs.window.push_back(AnyWindow(builder, size));
  Instr* both =
      builder.Put(Op::kReduceWindow, {x, iota, init, builder.Integer(ElementType::kS32, 0)}, attrs,
                  {.called = {PickBody(builder, shape.type())}});
  if (both == nullptr) return false;
  if (builder.random().Percent(80)) builder.Element(both, 0);
  if (builder.random().Percent(80)) builder.Element(both, 1);
  return true;
}

Computation* Comparator(ProgramBuilder& builder, const std::vector<Instr*>& operands) {
  ProgramBuilder body(builder.program_state(), "order", ProgramBuilder::Kind::kBody,
                      builder.depth() + 1);
  std::vector<Instr*> left, right;
  for (const Instr* operand : operands) {
    left.push_back(body.Parameter(Shape::Scalar(operand->shape().type())));
    right.push_back(body.Parameter(Shape::Scalar(operand->shape().type())));
  }
  // One of the orderable operands is the key, usually the first.
  size_t by = builder.random().Percent(80)
                  ? 0
                  : At(builder.random().Below(static_cast<int64_t>(operands.size())));
  ElementType type = left[by]->shape().type();
  bool total = IsReal(type) && builder.random().Percent(70);
  auto direction = builder.random().Pick({CompareDirection::kLt, CompareDirection::kGt});
  Instr* root =
      body.Put(Op::kCompare, {left[by], right[by]},
               CompareAttrs{direction, total ? CompareType::kTotalOrder : CompareType::kNone});
  if (root == nullptr) return nullptr;
  body.computation()->set_root(root);
  return body.computation();
}

bool DrawSort(ProgramBuilder& builder) {
  auto has_order = [](const Shape& s) { return s.rank() > 0 && !IsComplex(s.type()); };
  Instr* x = builder.AnyThat(has_order);
  if (x == nullptr) return false;
  std::vector<Instr*> operands{x};
  for (int64_t i = builder.random().Pick({0, 0, 1, 1, 2}); i > 0; --i) {
    ElementType type = builder.AnyType();
    if (IsComplex(type)) type = ElementType::kS32;
    operands.push_back(builder.Like(x->shape().WithType(type)));
  }
  for (const Instr* operand : operands)
    if (operand == nullptr) return false;
  int64_t along = builder.random().Below(x->shape().rank());
  // An unstable sort may give any of several orders.
  bool stable = operands.size() > 1 || builder.random().Percent(70);
  Computation* order = Comparator(builder, operands);
  Instr* sorted = builder.Put(Op::kSort, operands, SortAttrs{along, stable}, {.called = {order}});
  if (sorted == nullptr) return false;
  if (sorted->shape().IsArray()) {
    if (builder.random().Percent(15))  // sorted again
      builder.Put(Op::kSort, {sorted}, SortAttrs{along, true}, {.called = {order}});
    return true;
  }
  for (size_t i = 0; i < operands.size(); ++i)
    if (builder.random().Percent(75)) builder.Element(sorted, static_cast<int64_t>(i));
  return true;
}

bool DrawTopK(ProgramBuilder& builder) {
  Instr* x = builder.AnyThat([](const Shape& s) { return s.rank() > 0 && !IsComplex(s.type()); });
  if (x == nullptr) return false;
  TopKAttrs attrs{
      builder.random().Between(
          0, std::min<int64_t>(x->shape().dims().back(), builder.program_state().size.Of(4, 40))),
      builder.random().Percent(80), true};
  Instr* both = builder.Put(Op::kTopK, {x}, attrs);
  if (both == nullptr) return false;
  builder.Element(both, 0);
  if (builder.random().Percent(60)) builder.Element(both, 1);
  return true;
}

bool DrawSelectAndScatter(ProgramBuilder& builder) {
  Instr* x = builder.AnyThat([](const Shape& s) {
    return s.rank() > 0 && s.ElementCount() > 0 && !IsComplex(s.type()) &&
           s.type() != ElementType::kPred;
  });
  if (x == nullptr) return false;
  const Shape shape = x->shape();
  WindowAttrs attrs;
  Dims counts;
  for (int64_t size : shape.dims()) {
    WindowDim w;
    w.size = builder.random().Between(1, std::min<int64_t>(size, 3));
    w.stride = builder.random().Between(1, 2);
    if (builder.random().Percent(25)) w.pad_low = 1;
    attrs.window.push_back(w);
    counts.push_back((size + w.pad_low - w.size) / w.stride + 1);
  }
  Instr* source = builder.Like(Shape::Array(shape.type(), counts));
  Instr* init = builder.Constant(Shape::Scalar(shape.type()), Mood::kZeros);
  ProgramBuilder select(builder.program_state(), "select", ProgramBuilder::Kind::kBody,
                        builder.depth() + 1);
  Instr* a = select.Parameter(Shape::Scalar(shape.type()));
  Instr* b = select.Parameter(Shape::Scalar(shape.type()));
  select.computation()->set_root(
      select.Put(Op::kCompare, {a, b}, CompareAttrs{CompareDirection::kGe, CompareType::kNone}));
  Computation* add = Combiner(builder, shape.type(), Op::kAdd);
  return builder.Put(Op::kSelectAndScatter, {x, source, init}, attrs,
                     {.called = {select.computation(), add}}) != nullptr;
}

// HLO's scan: running sums and the carry.
bool DrawScan(ProgramBuilder& builder) {
  Instr* x = builder.AnyOfRank(1);
  const Shape shape = x->shape();
  int64_t along = builder.random().Below(shape.rank());
  Dims step = shape.dims();
  step.erase(step.begin() + along);
  Shape step_shape = shape.WithDims(step);
  Instr* init = builder.Like(step_shape);
  ProgramBuilder body(builder.program_state(), "step", ProgramBuilder::Kind::kBody,
                      builder.depth() + 1);
  Instr* element = body.Parameter(step_shape);
  Instr* carry = body.Parameter(step_shape);
  Instr* sum =
      body.Put(builder.random().Pick({Op::kAdd, Op::kMaximum, Op::kMultiply}), {element, carry});
  if (sum == nullptr) return false;
  body.computation()->set_root(body.Put(Op::kTuple, {sum, sum}));
  ScanAttrs attrs{along, 1, builder.random().Percent(30), std::nullopt};
  Instr* both =
      builder.Put(Op::kScan, {x, init}, attrs,
                  {.shape = Shape::Tuple({shape, step_shape}), .called = {body.computation()}});
  if (both == nullptr) return false;
  builder.Element(both, 0);
  if (builder.random().Percent(60)) builder.Element(both, 1);
  return true;
}

constexpr Drawer kReductionDrawers[] = {
    {"reduce", 45, 6, DrawReduce},
    {"reduce-of-moved", 25, 8, DrawReduceOfMoved},
    {"variadic-reduce", 8, 14, DrawVariadicReduce},
    {"reduce-window", 20, 6, DrawReduceWindow},
    {"variadic-window", 4, 14, DrawVariadicWindow},
    {"sort", 20, 9, DrawSort},
    {"topk", 8, 3, DrawTopK},
    {"select-and-scatter", 5, 10, DrawSelectAndScatter},
    {"scan", 4, 9, DrawScan},
};

}  // namespace

Computation* Combiner(ProgramBuilder& builder, ElementType type, Op op) {
  ProgramBuilder body(builder.program_state(), InfoOf(op).name, ProgramBuilder::Kind::kBody,
                      builder.depth() + 1);
  Instr* a = body.Parameter(Shape::Scalar(type));
  Instr* b = body.Parameter(Shape::Scalar(type));
  Instr* root = op == Op::kCopy ? b : body.Put(op, {a, b});
  if (root == nullptr) return nullptr;
  body.computation()->set_root(root);
  return body.computation();
}

std::span<const Drawer> ReductionDrawers() {
  return kReductionDrawers;
}

}  // namespace tokamak::fuzz
