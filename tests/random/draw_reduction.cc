// Reductions, windows, sorts and scans.
#include <algorithm>

#include "random/draft.h"

namespace tokamak::fuzz {
namespace {

Op CombinerFor(Draft& draft, ElementType type) {
  if (type == ElementType::kPred) return draft.random().Pick({Op::kAnd, Op::kOr});
  if (IsComplex(type)) return draft.random().Pick({Op::kAdd, Op::kMultiply});
  std::vector<Op> ops{Op::kAdd, Op::kAdd, Op::kMultiply, Op::kMaximum, Op::kMinimum};
  if (IsInteger(type)) ops.insert(ops.end(), {Op::kAnd, Op::kOr, Op::kXor});
  return draft.random().Pick(ops);
}

// What the combiner leaves everything as it is with, mostly.
Instr* InitFor(Draft& draft, ElementType type, Op op) {
  Shape scalar = Shape::Scalar(type);
  if (draft.random().Percent(20)) return draft.Like(scalar);
  if (op == Op::kMultiply || op == Op::kAnd) return draft.Constant(scalar, Mood::kOnes);
  if ((op == Op::kMaximum || op == Op::kMinimum) && IsReal(type))
    return draft.Number(scalar, op == Op::kMaximum ? -HUGE_VAL : HUGE_VAL);
  if (IsReal(type) && draft.random().Percent(20)) return draft.Number(scalar, -0.0);
  return draft.Constant(scalar, Mood::kZeros);
}

Instr* Reduced(Draft& draft, Instr* x, Op op) {
  if (x == nullptr) return nullptr;
  Dims dimensions;
  for (int64_t d = 0; d < x->shape().rank(); ++d)
    if (draft.random().Percent(55)) dimensions.push_back(d);
  ElementType type = x->shape().type();
  Instr* init = InitFor(draft, type, op);
  if (draft.random().Percent(92) || IsComplex(type)) {
    Computation* body = Combiner(draft, type, op);
    return draft.Put(Op::kReduce, {x, init}, DimensionsAttrs{dimensions}, {.called = {body}});
  }
  // Kept below a number that the body captures.
  Instr* captured = draft.LikeButDrawn(Shape::Scalar(type));
  Draft body(draft.plot(), "bounded", Draft::Kind::kBody, draft.depth() + 1);
  Instr* a = body.Parameter(Shape::Scalar(type));
  Instr* b = body.Parameter(Shape::Scalar(type));
  Instr* limit = body.Parameter(Shape::Scalar(type));
  Instr* root = body.Put(Op::kMinimum, {body.Put(op, {a, b}), limit});
  if (root == nullptr) return nullptr;
  body.computation()->set_root(root);
  return draft.Put(Op::kReduce, {x, init, captured}, DimensionsAttrs{dimensions},
                   {.called = {body.computation()}, .captures = 1});
}

bool DrawReduce(Draft& draft) {
  Instr* x = draft.AnyOfRank(1);
  Op op = CombinerFor(draft, x->shape().type());
  return Reduced(draft, x, op) != nullptr;
}

// A reduce of a reduce, a broadcast, a reshape, a pad, a concatenate, a transpose.
bool DrawReduceOfMoved(Draft& draft) {
  Instr* x = draft.AnyOfRank(1);
  Op op = CombinerFor(draft, x->shape().type());
  const Shape shape = x->shape();
  switch (draft.random().Below(6)) {
    case 0:
      x = Reduced(draft, x, op);
      if (draft.random().Percent(25)) op = CombinerFor(draft, shape.type());
      break;
    case 1: {
      Dims dims = shape.dims(), map = draft.Permutation(shape.rank());
      std::sort(map.begin(), map.end());
      dims.push_back(draft.random().Between(1, 4));
      x = draft.Broadcast(x, dims, map);
      break;
    }
    case 2:
      x = draft.Reshape(x, {shape.ElementCount()});
      break;
    case 3:
      x = draft.Put(Op::kPad, {x, InitFor(draft, shape.type(), op)},
                    PadAttrs{Dims(shape.dims().size(), 1), Dims(shape.dims().size(), 1),
                             Dims(shape.dims().size(), 0)});
      break;
    case 4:
      x = draft.Put(Op::kConcatenate, {x, draft.Like(shape)}, DimensionAttrs{shape.rank() - 1});
      break;
    default:
      x = draft.Put(Op::kTranspose, {x}, DimensionsAttrs{draft.Permutation(shape.rank())});
  }
  return Reduced(draft, x, op) != nullptr;
}

// Of pairs (value, index) the one that a comparison of the values prefers.
Computation* PickBody(Draft& draft, ElementType type) {
  Draft body(draft.plot(), "argmax", Draft::Kind::kBody, draft.depth() + 1);
  Shape value_scalar = Shape::Scalar(type), index_scalar = Shape::Scalar(ElementType::kS32);
  Instr *a = body.Parameter(value_scalar), *i = body.Parameter(index_scalar);
  Instr *b = body.Parameter(value_scalar), *j = body.Parameter(index_scalar);
  auto direction =
      draft.random().Pick({CompareDirection::kGt, CompareDirection::kGe, CompareDirection::kLt});
  Instr* first = body.Put(Op::kCompare, {a, b}, CompareAttrs{direction, CompareType::kNone});
  Instr* value = body.Put(Op::kSelect, {first, a, b});
  Instr* place = body.Put(Op::kSelect, {first, i, j});
  body.computation()->set_root(body.Put(Op::kTuple, {value, place}));
  return body.computation();
}

// The greatest and its index, as argmax is written; and two plain sums in one.
bool DrawVariadicReduce(Draft& draft) {
  Instr* x = draft.AnyThat([](const Shape& s) { return s.rank() > 0 && !IsComplex(s.type()); });
  if (x == nullptr) return false;
  const Shape shape = x->shape();
  int64_t along = draft.random().Below(shape.rank());
  Shape index = shape.WithType(ElementType::kS32);
  Instr* iota = draft.Put(Op::kIota, {}, IotaAttrs{along}, {.shape = index});
  Instr* init = InitFor(draft, shape.type(), Op::kMaximum);
  Instr* zero = draft.Integer(ElementType::kS32, 0);
  Instr* both = draft.Put(Op::kReduce, {x, iota, init, zero}, DimensionsAttrs{{along}},
                          {.called = {PickBody(draft, shape.type())}});
  if (both == nullptr) return false;
  if (draft.random().Percent(80)) draft.Element(both, 0);
  if (draft.random().Percent(80)) draft.Element(both, 1);
  return true;
}

WindowDim AnyWindow(Draft& draft, int64_t size) {
  WindowDim w;
  if (draft.random().Percent(40)) return w;
  w.size = draft.random().Between(1, std::clamp<int64_t>(size, 1, 4));
  if (draft.random().Percent(8)) {  // many taps
    w.size = 40;
    w.pad_low = w.pad_high = 25;
    return w;
  }
  if (draft.random().Percent(40)) w.stride = draft.random().Between(1, 3);
  if (draft.random().Percent(50)) w.pad_low = draft.random().Between(-1, 3);
  if (draft.random().Percent(50)) w.pad_high = draft.random().Between(-1, 3);
  if (draft.random().Percent(15)) w.base_dilation = 2;
  if (draft.random().Percent(15)) w.window_dilation = 2;
  return w;
}

bool DrawReduceWindow(Draft& draft) {
  Instr* x = draft.AnyOfRank(1);
  Op op = CombinerFor(draft, x->shape().type());
  WindowAttrs attrs;
  for (int64_t size : x->shape().dims()) attrs.window.push_back(AnyWindow(draft, size));
  if (draft.random().Percent(35)) {  // a cumulative sum, from either side
    attrs.window.assign(attrs.window.size(), WindowDim{});
    int64_t along = draft.random().Below(x->shape().rank());
    WindowDim& w = attrs.window[At(along)];
    w.size = std::max<int64_t>(x->shape().dim(At(along)), 1);
    (draft.random().Percent(50) ? w.pad_low : w.pad_high) = w.size - 1;
    if (draft.random().Percent(10)) ++w.pad_low;
  }
  Instr* init = InitFor(draft, x->shape().type(), op);
  Computation* body = Combiner(draft, x->shape().type(), op);
  return draft.Put(Op::kReduceWindow, {x, init}, attrs, {.called = {body}}) != nullptr;
}

// The greatest of each window and its index.
bool DrawVariadicWindow(Draft& draft) {
  Instr* x = draft.AnyThat(
      [](const Shape& s) { return s.rank() > 0 && s.ElementCount() > 0 && !IsComplex(s.type()); });
  if (x == nullptr) return false;
  const Shape shape = x->shape();
  Instr* iota = draft.Put(Op::kIota, {}, IotaAttrs{draft.random().Below(shape.rank())},
                          {.shape = shape.WithType(ElementType::kS32)});
  Instr* init = InitFor(draft, shape.type(), Op::kMaximum);
  WindowAttrs attrs;
  for (int64_t size : shape.dims()) attrs.window.push_back(AnyWindow(draft, size));
  Instr* both = draft.Put(Op::kReduceWindow, {x, iota, init, draft.Integer(ElementType::kS32, 0)},
                          attrs, {.called = {PickBody(draft, shape.type())}});
  if (both == nullptr) return false;
  if (draft.random().Percent(80)) draft.Element(both, 0);
  if (draft.random().Percent(80)) draft.Element(both, 1);
  return true;
}

Computation* Comparator(Draft& draft, const std::vector<Instr*>& operands) {
  Draft body(draft.plot(), "order", Draft::Kind::kBody, draft.depth() + 1);
  std::vector<Instr*> left, right;
  for (const Instr* operand : operands) {
    left.push_back(body.Parameter(Shape::Scalar(operand->shape().type())));
    right.push_back(body.Parameter(Shape::Scalar(operand->shape().type())));
  }
  // Of the operands that have an order, one decides: mostly the first.
  size_t by = draft.random().Percent(80)
                  ? 0
                  : At(draft.random().Below(static_cast<int64_t>(operands.size())));
  ElementType type = left[by]->shape().type();
  bool total = IsReal(type) && draft.random().Percent(70);
  auto direction = draft.random().Pick({CompareDirection::kLt, CompareDirection::kGt});
  Instr* root =
      body.Put(Op::kCompare, {left[by], right[by]},
               CompareAttrs{direction, total ? CompareType::kTotalOrder : CompareType::kNone});
  if (root == nullptr) return nullptr;
  body.computation()->set_root(root);
  return body.computation();
}

bool DrawSort(Draft& draft) {
  auto has_order = [](const Shape& s) { return s.rank() > 0 && !IsComplex(s.type()); };
  Instr* x = draft.AnyThat(has_order);
  if (x == nullptr) return false;
  std::vector<Instr*> operands{x};
  for (int64_t i = draft.random().Pick({0, 0, 1, 1, 2}); i > 0; --i) {
    ElementType type = draft.AnyType();
    if (IsComplex(type)) type = ElementType::kS32;
    operands.push_back(draft.Like(x->shape().WithType(type)));
  }
  for (const Instr* operand : operands)
    if (operand == nullptr) return false;
  int64_t along = draft.random().Below(x->shape().rank());
  // One that is not stable may give any of several orders.
  bool stable = operands.size() > 1 || draft.random().Percent(70);
  Computation* order = Comparator(draft, operands);
  Instr* sorted = draft.Put(Op::kSort, operands, SortAttrs{along, stable}, {.called = {order}});
  if (sorted == nullptr) return false;
  if (sorted->shape().IsArray()) {
    if (draft.random().Percent(15))  // sorted again
      draft.Put(Op::kSort, {sorted}, SortAttrs{along, true}, {.called = {order}});
    return true;
  }
  for (size_t i = 0; i < operands.size(); ++i)
    if (draft.random().Percent(75)) draft.Element(sorted, static_cast<int64_t>(i));
  return true;
}

bool DrawTopK(Draft& draft) {
  Instr* x = draft.AnyThat([](const Shape& s) { return s.rank() > 0 && !IsComplex(s.type()); });
  if (x == nullptr) return false;
  TopKAttrs attrs{draft.random().Between(
                      0, std::min<int64_t>(x->shape().dims().back(), draft.plot().size.Of(4, 40))),
                  draft.random().Percent(80), true};
  Instr* both = draft.Put(Op::kTopK, {x}, attrs);
  if (both == nullptr) return false;
  draft.Element(both, 0);
  if (draft.random().Percent(60)) draft.Element(both, 1);
  return true;
}

bool DrawSelectAndScatter(Draft& draft) {
  Instr* x = draft.AnyThat([](const Shape& s) {
    return s.rank() > 0 && s.ElementCount() > 0 && !IsComplex(s.type()) &&
           s.type() != ElementType::kPred;
  });
  if (x == nullptr) return false;
  const Shape shape = x->shape();
  WindowAttrs attrs;
  Dims counts;
  for (int64_t size : shape.dims()) {
    WindowDim w;
    w.size = draft.random().Between(1, std::min<int64_t>(size, 3));
    w.stride = draft.random().Between(1, 2);
    if (draft.random().Percent(25)) w.pad_low = 1;
    attrs.window.push_back(w);
    counts.push_back((size + w.pad_low - w.size) / w.stride + 1);
  }
  Instr* source = draft.Like(Shape::Array(shape.type(), counts));
  Instr* init = draft.Constant(Shape::Scalar(shape.type()), Mood::kZeros);
  Draft select(draft.plot(), "select", Draft::Kind::kBody, draft.depth() + 1);
  Instr* a = select.Parameter(Shape::Scalar(shape.type()));
  Instr* b = select.Parameter(Shape::Scalar(shape.type()));
  select.computation()->set_root(
      select.Put(Op::kCompare, {a, b}, CompareAttrs{CompareDirection::kGe, CompareType::kNone}));
  Computation* add = Combiner(draft, shape.type(), Op::kAdd);
  return draft.Put(Op::kSelectAndScatter, {x, source, init}, attrs,
                   {.called = {select.computation(), add}}) != nullptr;
}

// HLO's scan: running sums and the carry.
bool DrawScan(Draft& draft) {
  Instr* x = draft.AnyOfRank(1);
  const Shape shape = x->shape();
  int64_t along = draft.random().Below(shape.rank());
  Dims step = shape.dims();
  step.erase(step.begin() + along);
  Shape step_shape = shape.WithDims(step);
  Instr* init = draft.Like(step_shape);
  Draft body(draft.plot(), "step", Draft::Kind::kBody, draft.depth() + 1);
  Instr* element = body.Parameter(step_shape);
  Instr* carry = body.Parameter(step_shape);
  Instr* sum =
      body.Put(draft.random().Pick({Op::kAdd, Op::kMaximum, Op::kMultiply}), {element, carry});
  if (sum == nullptr) return false;
  body.computation()->set_root(body.Put(Op::kTuple, {sum, sum}));
  ScanAttrs attrs{along, 1, draft.random().Percent(30), std::nullopt};
  Instr* both =
      draft.Put(Op::kScan, {x, init}, attrs,
                {.shape = Shape::Tuple({shape, step_shape}), .called = {body.computation()}});
  if (both == nullptr) return false;
  draft.Element(both, 0);
  if (draft.random().Percent(60)) draft.Element(both, 1);
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

Computation* Combiner(Draft& draft, ElementType type, Op op) {
  Draft body(draft.plot(), InfoOf(op).name, Draft::Kind::kBody, draft.depth() + 1);
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
