#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "fusion/expand_ops.h"
#include "fusion/split_reductions.h"
#include "gen/reducer.h"
#include "gen/select_scatter.h"
#include "gen/window.h"

namespace tokamak {
namespace {

bool IsTrivial(const WindowDim& dim) {
  return dim == WindowDim{};
}

int64_t OutSize(const WindowDim& dim, int64_t size) {
  int64_t padded = (size - 1) * dim.base_dilation + 1 + dim.pad_low + dim.pad_high;
  int64_t window = (dim.size - 1) * dim.window_dilation + 1;
  return padded < window ? 0 : (padded - window) / dim.stride + 1;
}

// A window of one array with an op that any order and any parts of the taps suit.
class WindowSplitter {
 public:
  WindowSplitter(Instr& window, Op op, Literal neutral)
      : instr_(window), op_(op), make_(window), neutral_(make_.Constant(std::move(neutral))) {}

  // The dimensions one after the other; those that leave least come first.
  void ByDimension() {
    const Window window = instr_.attrs<WindowAttrs>().window;
    std::vector<size_t> order;
    for (size_t d = 0; d < window.size(); ++d)
      if (!IsTrivial(window[d])) order.push_back(d);
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t x, size_t y) { return window[x].stride > window[y].stride; });
    Instr* x = instr_.operand(0);
    for (size_t d : order) x = Along(x, d, window[d]);
    Finish(x);
  }

  // Along one dimension: windows of `a` taps, then `b` of those, and what is left of the taps.
  void InParts(size_t d) {
    const WindowDim dim = instr_.attrs<WindowAttrs>().window[d];
    auto a = static_cast<int64_t>(std::sqrt(static_cast<double>(dim.size)));
    auto cost = [&](int64_t x) { return x + dim.size / x + dim.size % x; };
    for (int64_t x = 2; x <= 2 * a; ++x)
      if (cost(x) < cost(a)) a = x;
    int64_t b = dim.size / a, rest = dim.size % a;
    WindowDim inner = dim, outer, last = dim;
    inner.size = a;
    inner.stride = 1;
    outer.size = b;
    outer.stride = dim.stride;
    outer.window_dilation = a * dim.window_dilation;
    outer.pad_high = -rest * dim.window_dilation;
    Instr* x = Along(Along(instr_.operand(0), d, inner), d, outer);
    if (rest > 0) {
      last.size = rest;
      last.pad_low -= a * b * dim.window_dilation;
      x = make_.Make(op_, x->shape(), {x, Along(instr_.operand(0), d, last)});
    }
    Finish(x);
  }

 private:
  Instr* Along(Instr* x, size_t d, const WindowDim& dim) {
    Dims dims = x->shape().dims();
    dims[d] = OutSize(dim, dims[d]);
    WindowAttrs attrs;
    attrs.window.resize(dims.size());
    attrs.window[d] = dim;
    Instr* made = make_.Make(Op::kReduceWindow, Shape::Array(x->shape().type(), dims),
                             {x, neutral_}, std::move(attrs));
    made->set_called({instr_.called(0)});
    return made;
  }

  void Finish(Instr* x) {
    Instr* first = make_.Make(Op::kBroadcast, x->shape(), {instr_.operand(1)}, DimensionsAttrs{{}});
    make_.Replace(make_.Make(op_, x->shape(), {first, x}));
  }

  Instr& instr_;
  Op op_;
  Expansion make_;
  Instr* neutral_;
};

}  // namespace

bool SplitWindow(Instr& instr) {
  if (!IsLongWindow(instr) || WhyNoWindow(instr) || !instr.shape().IsArray()) return false;
  if (instr.captures() > 0) return false;
  std::optional<Op> op = AnyOrderOp(*instr.called(0));
  std::optional<Literal> neutral;
  if (op) neutral = NeutralLiteral(*op, instr.shape().type());
  if (!neutral) return false;
  const Window& window = instr.attrs<WindowAttrs>().window;
  size_t count = 0, only = 0;
  for (size_t d = 0; d < window.size(); ++d) {
    if (IsTrivial(window[d])) continue;
    ++count;
    only = d;
  }
  if (count > 1) {
    WindowSplitter(instr, *op, std::move(*neutral)).ByDimension();
    return true;
  }
  // A place must see more than a few elements, and what is in between must not be many more.
  const WindowDim& dim = window[only];
  if (dim.base_dilation != 1 || dim.stride > dim.size / 8) return false;
  WindowSplitter(instr, *op, std::move(*neutral)).InParts(only);
  return true;
}

namespace {

// A computation's instructions again in another one; its root.
Instr* Copied(const Computation& from, Computation& to, std::vector<Instr*> arguments) {
  std::unordered_map<const Instr*, Instr*> made;
  for (const Instr* instr : from.PostOrder()) {
    if (instr->op() == Op::kParameter) {
      made[instr] = arguments[static_cast<size_t>(instr->attrs<ParameterAttrs>().number)];
      continue;
    }
    std::vector<Instr*> operands;
    for (const Instr* operand : instr->operands()) operands.push_back(made[operand]);
    Instr* copy = to.Append(instr->op(), instr->shape(), std::move(operands), instr->attrs());
    copy->set_called({instr->called().begin(), instr->called().end()});
    made[instr] = copy;
  }
  return made[from.root()];
}

// Of (value, index) and another pair the one that the window selects; an index below 0: of none.
Computation* PickBody(const Instr& instr) {
  Computation* body = instr.parent()->module()->AddComputation(instr.name() + "_pick");
  body->is_public = false;
  Shape value = Shape::Scalar(instr.operand(0)->shape().type()),
        index = Shape::Scalar(ElementType::kS32), pred = Shape::Scalar(ElementType::kPred);
  Instr *x = body->AppendParameter(0, value), *i = body->AppendParameter(1, index);
  Instr *y = body->AppendParameter(2, value), *k = body->AppendParameter(3, index);
  Instr* zero = body->Append(Op::kConstant, index, {},
                             ConstantAttrs{Literal::ScalarInt(ElementType::kS32, 0)});
  Instr* any = body->Append(Op::kCompare, pred, {i, zero},
                            CompareAttrs{CompareDirection::kGe, CompareType::kNone});
  Instr* better = Copied(*instr.called(0), *body, {x, y});
  Instr* keeps = body->Append(Op::kAnd, pred, {any, better});
  Instr* best = body->Append(Op::kSelect, value, {keeps, x, y});
  Instr* place = body->Append(Op::kSelect, index, {keeps, i, k});
  body->set_root(body->Append(Op::kTuple, Shape::Tuple({value, index}), {best, place}));
  return body;
}

}  // namespace

bool ExpandSelectAndScatter(Instr& instr) {
  if (instr.op() != Op::kSelectAndScatter || !WhyNoSelectAndScatter(instr)) return false;
  Instr *x = instr.operand(0), *source = instr.operand(1), *init = instr.operand(2);
  for (const Instr* operand : instr.operands())
    if (!IsPlainArray(operand->shape()) || operand->shape().ElementCount() == 0) return false;
  int64_t count = x->shape().ElementCount(), windows = source->shape().ElementCount();
  if (instr.captures() > 0 || count > INT32_MAX) return false;
  WindowAttrs attrs = instr.attrs<WindowAttrs>();
  for (const WindowDim& dim : attrs.window)
    if (dim.base_dilation != 1 || dim.reversed) return false;
  // The window's own size may leave more places than there are sources.
  Expansion make(instr);
  const Dims &dims = x->shape().dims(), &places = source->shape().dims();
  for (size_t d = 0; d < dims.size(); ++d)
    if (OutSize(attrs.window[d], dims[d]) != places[d]) return false;
  ElementType type = x->shape().type(), index = ElementType::kS32;
  Instr* flat = make.Make(Op::kIota, Shape::Array(index, {count}), {}, IotaAttrs{0});
  Instr* numbers = make.Make(Op::kReshape, Shape::Array(index, dims), {flat});
  Instr* none = make.Constant(Literal::ScalarInt(index, -1));
  Instr* any = make.Constant(Literal::Scalar(type, 0));
  Instr* both = make.Make(Op::kReduceWindow,
                          Shape::Tuple({Shape::Array(type, places), Shape::Array(index, places)}),
                          {x, numbers, any, none}, std::move(attrs));
  both->set_called({PickBody(instr)});
  Instr* picked =
      make.Make(Op::kGetTupleElement, Shape::Array(index, places), {both}, TupleIndexAttrs{1});
  Instr* starts = make.Make(Op::kReshape, Shape::Array(index, {windows, 1}), {picked});
  Instr* updates = make.Make(Op::kReshape, Shape::Array(type, {windows}), {source});
  ScatterAttrs scatter;
  scatter.inserted_window_dims = {0};
  scatter.scatter_dims_to_operand_dims = {0};
  scatter.index_vector_dim = 1;
  Shape line = Shape::Array(type, {count});
  Instr* sums =
      make.Make(Op::kScatter, line, {make.Spread(init, line), starts, updates}, std::move(scatter));
  sums->set_called({instr.called(1)});
  make.Replace(make.Make(Op::kReshape, Shape::Array(type, dims), {sums}));
  return true;
}

}  // namespace tokamak
