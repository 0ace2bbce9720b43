#include <algorithm>
#include <cmath>

#include "gen/reducer.h"
#include "gen/window.h"
#include "passes/passes.h"
#include "passes/target/expand_ops.h"
#include "passes/target/split_sizes.h"
#include "rewrite/editor.h"

namespace tokamak {
namespace {

bool IsTrivial(const WindowDim& dim) {
  return dim == WindowDim{};
}

// Splits a window over one array with an op that is associative and commutative.
class WindowSplitter {
 public:
  WindowSplitter(Instr& window, Op op, Literal neutral)
      : instr_(window), op_(op), make_(window), neutral_(make_.Constant(std::move(neutral))) {}

  // Splits into one window per dimension; those that shrink the array most come first.
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

  // Along one dimension: windows of `a` taps, then windows of `b` of those, and the remaining taps.
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
    dims[d] = WindowResults(dim, dims[d]);
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
  Editor make_;
  Instr* neutral_;
};

bool SplitWindow(Instr& instr) {
  if (!IsLongWindow(instr) || WhyNoReduceWindowCode(instr) || !instr.shape().IsArray())
    return false;
  if (instr.captures() > 0) return false;
  std::optional<Op> op = CommutativeOpOf(*instr.called(0));
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
  // Strides per window. Chosen: with fewer, the intermediate array has nearly as many elements as
  // the windows read.
  constexpr int64_t kMinStrides = 8;
  const WindowDim& dim = window[only];
  if (dim.base_dilation != 1 || dim.stride > dim.size / kMinStrides) return false;
  WindowSplitter(instr, *op, std::move(*neutral)).InParts(only);
  return true;
}

}  // namespace

// Splits long windows into one window per dimension, and a long window along one dimension into
// windows of windows: 256 taps become 16 of 16.
Result<Changed> SplitWindows(Module& module, PassContext& context) {
  constexpr ExpansionRow kRows[] = {{SplitWindow, "expand.long-window"}};
  return ExpandBy(kRows, module, context);
}

}  // namespace tokamak
