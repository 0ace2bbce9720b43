// Reductions. Sums of floats are never reassociated: each element of the result keeps its summands
// in their order. Integers, maximum, minimum and logical ops may be reassociated.

#include <algorithm>

#include "rewrite/rules/conditions.h"
#include "rewrite/rules/topics.h"

namespace tokamak {
namespace {

using m::a;
using m::x;
using m::y;

// The op of a reduction with one array, one initial value, and a body that is a single binary op.
std::optional<Op> Combiner(const Instr* reduce) {
  if (reduce->operand_count() != 2 || reduce->captures() != 0 || !reduce->shape().IsArray())
    return std::nullopt;
  const Computation& body = *reduce->called(0);
  std::optional<Op> op = CombinerOf(body);
  // The body may compute in a different type.
  if (!op || body.root()->shape().type() != reduce->shape().type()) return std::nullopt;
  if (reduce->operand(0)->shape().type() != reduce->shape().type()) return std::nullopt;
  return op;
}
bool IsExact(const Instr* reduce) {
  std::optional<Op> op = Combiner(reduce);
  return op && IsExactCombiner(*op, reduce->shape().type());
}
bool IsIdempotent(Op op, ElementType type) {
  if (op == Op::kMaximum || op == Op::kMinimum || op == Op::kAnd || op == Op::kOr) return true;
  return type == ElementType::kPred && op != Op::kXor;
}

// op(init, x) for each element.
Instr* WithInit(Editor& edit, const m::Match& match, Instr* reduced) {
  Instr* init = edit.Broadcast(match[y], match.shape());
  return edit.Make(*Combiner(match.root()), {init, reduced});
}

// op(init, x) for a reduction over one element. A complex product returns x itself where init is 1:
// 1 times an infinite complex number is a different number.
Instr* OfOne(Editor& edit, const m::Match& match, Instr* element) {
  Op op = *Combiner(match.root());
  ElementType type = match.type();
  if (op != Op::kMultiply || !IsComplex(type)) return WithInit(edit, match, element);
  Shape scalar = Shape::Scalar(type), pred = Shape::Array(ElementType::kPred, match.shape().dims());
  Instr* identity = edit.Filled(scalar, 1);
  Instr* leaves = edit.Make(Op::kCompare, {match[y], identity},
                            CompareAttrs{CompareDirection::kEq, CompareType::kNone});
  return edit.Make(Op::kSelect,
                   {edit.Broadcast(leaves, pred), element, WithInit(edit, match, element)});
}

Instr* MakeReduce(Editor& edit, const m::Match& match, Instr* of, Dims dims) {
  return edit.MakeLike(*match.root(), {of, match[y]}, DimensionsAttrs{std::move(dims)});
}

bool AllOnes(const m::Match& match) {
  return std::ranges::all_of(DimensionsOf(match.root()),
                             [&](int64_t d) { return SizeAt(match[x]->shape(), d) == 1; });
}

// reduce(transpose(x)): the reduced dimensions of x, if the result keeps its order.
std::optional<Dims> ThroughTranspose(const m::Match& match) {
  const Dims &permutation = DimensionsOf(match[a]), &reduced = DimensionsOf(match.root());
  Dims kept, dims;
  for (size_t d = 0; d < permutation.size(); ++d)
    (Contains(reduced, static_cast<int64_t>(d)) ? dims : kept).push_back(permutation[d]);
  if (!IsIncreasing(kept)) return std::nullopt;
  if (!IsIncreasing(dims) && !IsExact(match.root())) return std::nullopt;
  std::ranges::sort(dims);
  return dims;
}

// reduce(reshape(x)) where the reshape inserts or removes dimensions of size 1: the reduced
// dimensions of x. Other dimensions of size 1 of x are kept and reshaped away afterwards.
std::optional<Dims> ThroughReshape(const m::Match& match) {
  const Dims &from = match[a]->shape().dims(), &to = match[x]->shape().dims();
  Dims dims;
  size_t next = 0;
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] == 1) continue;
    while (next < to.size() && to[next] == 1) ++next;
    if (next == to.size() || to[next] != from[d]) return std::nullopt;
    if (Contains(DimensionsOf(match.root()), static_cast<int64_t>(d)))
      dims.push_back(static_cast<int64_t>(next));
    ++next;
  }
  while (next < to.size() && to[next] == 1) ++next;
  if (next != to.size() || dims.empty()) return std::nullopt;
  return dims;
}

// If the broadcast repeats every reduced dimension: the total number of repetitions.
std::optional<int64_t> Repeats(const m::Match& match) {
  int64_t count = 1;
  for (int64_t d : DimensionsOf(match.root())) {
    if (Contains(DimensionsOf(match[a]), d)) return std::nullopt;
    count *= SizeAt(match[a]->shape(), d);
  }
  return count > 0 ? std::optional(count) : std::nullopt;
}
// The broadcast without the reduced dimensions.
Instr* Unrepeated(Editor& edit, const m::Match& match) {
  const Dims& reduced = DimensionsOf(match.root());
  Dims dims;
  for (int64_t d : DimensionsOf(match[a]))
    dims.push_back(d - std::ranges::count_if(reduced, [=](int64_t r) { return r < d; }));
  return edit.MakeShaped(Op::kBroadcast, match.shape().WithoutLayout(), {match[x]},
                         DimensionsAttrs{std::move(dims)});
}

Dims JoinReduced(const m::Match& match) {
  const Dims &outer = DimensionsOf(match.root()), &inner = DimensionsOf(match[a]);
  Dims all = inner;
  int64_t index = 0;
  for (int64_t d = 0; d < match[x]->shape().rank(); ++d) {
    if (Contains(inner, d)) continue;
    if (Contains(outer, index++)) all.push_back(d);
  }
  std::ranges::sort(all);
  return all;
}

constexpr std::string_view kBodies = R"(
add {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = s32[] add(a, b)
}

max {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b)
}

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
)";

}  // namespace

// long: a table
std::span<const Rule> ReduceRules() {
  static constexpr Rule kRules[] = {
      {"reduce.empty", "a reduction of no elements is its initial value", m::Reduce(x, y),
       [](Editor& edit, const m::Match& match) { return edit.Broadcast(match[y], match.shape()); },
       [](const m::Match& match) {
         return match.shape().IsArray() && match.root()->captures() == 0 &&
                match[x]->shape().ElementCount() == 0 && match[y]->shape().type() == match.type();
       },
       R"(  x = f32[0,3] parameter(0)
  z = f32[] parameter(1)
  ROOT r = f32[3] reduce(x, z), dimensions={0}, to_apply=sum)",
       kBodies},
      {"reduce.one", "a reduction of one element each", m::Reduce(x, y),
       [](Editor& edit, const m::Match& match) {
         return OfOne(edit, match, Reshaped(edit, match[x], match.shape().dims()));
       },
       [](const m::Match& match) { return Combiner(match.root()) && AllOnes(match); },
       R"(  x = f32[1,61] parameter(0)
  z = f32[] parameter(1)
  ROOT r = f32[61] reduce(x, z), dimensions={0}, to_apply=sum)",
       kBodies},
      {"reduce.of-transpose", "a reduction of a transpose",
       m::Reduce(m::Bind(a, m::Transpose(x)), y),
       [](Editor& edit, const m::Match& match) {
         return MakeReduce(edit, match, match[x], *ThroughTranspose(match));
       },
       [](const m::Match& match) {
         return Combiner(match.root()) && ThroughTranspose(match).has_value();
       },
       R"(  x = f32[5,4,6] parameter(0)
  t = f32[4,6,5] transpose(x), dimensions={1,2,0}
  z = f32[] parameter(1)
  ROOT r = f32[4,6] reduce(t, z), dimensions={2}, to_apply=sum)",
       kBodies},
      {"reduce.of-reshape", "a reduction of a reshape that adds or removes dimensions of size 1",
       m::Reduce(m::Bind(a, m::Reshape(x)), y),
       [](Editor& edit, const m::Match& match) {
         return Reshaped(edit, MakeReduce(edit, match, match[x], *ThroughReshape(match)),
                         match.shape().dims());
       },
       [](const m::Match& match) {
         return Combiner(match.root()) && match.shape().ElementCount() > 0 &&
                ThroughReshape(match).has_value();
       },
       R"(  x = f32[5,6] parameter(0)
  t = f32[5,1,6] reshape(x)
  z = f32[] parameter(1)
  ROOT r = f32[1,6] reduce(t, z), dimensions={0}, to_apply=sum)",
       kBodies},
      {"reduce.of-reduce", "a reduction of a reduction by the same op",
       m::Reduce(m::Bind(a, m::Reduce(x, y)), y),
       [](Editor& edit, const m::Match& match) {
         return MakeReduce(edit, match, match[x], JoinReduced(match));
       },
       [](const m::Match& match) {
         return IsExact(match.root()) && Combiner(match[a]) == Combiner(match.root()) &&
                (IsIdentityOf(*Combiner(match[a]), match[y]) ||
                 IsIdempotent(*Combiner(match[a]), match.type()));
       },
       R"(  x = f32[5,4,6] parameter(0)
  z = f32[] parameter(1)
  a = f32[5,6] reduce(x, z), dimensions={1}, to_apply=max
  ROOT r = f32[6] reduce(a, z), dimensions={0}, to_apply=max)",
       kBodies},
      {"reduce.of-repeated", "a maximum or minimum of equal elements is the element",
       m::Reduce(m::Bind(a, m::Broadcast(x)), y),
       [](Editor& edit, const m::Match& match) {
         return WithInit(edit, match, Unrepeated(edit, match));
       },
       [](const m::Match& match) {
         return IsExact(match.root()) && IsIdempotent(*Combiner(match.root()), match.type()) &&
                Repeats(match).has_value();
       },
       R"(  x = f32[6] parameter(0)
  b = f32[6,4,3] broadcast(x), dimensions={0}
  z = f32[] parameter(1)
  ROOT r = f32[6,3] reduce(b, z), dimensions={1}, to_apply=max)",
       kBodies},
  };
  return kRules;
}

namespace {

// Size 1, no padding, no dilation: each window contains one element.
bool IsOfOne(const Window& window) {
  return std::ranges::all_of(window, [](const WindowDim& d) {
    return d.size == 1 && d.pad_low == 0 && d.pad_high == 0 && d.base_dilation == 1;
  });
}
// Each dimension is either untouched or covered by a single window.
std::optional<Dims> Covered(const m::Match& match) {
  const Window& window = match.root()->attrs<WindowAttrs>().window;
  Dims covered;
  for (size_t d = 0; d < window.size(); ++d) {
    const WindowDim& w = window[d];
    int64_t size = match[x]->shape().dim(d);
    if (w.pad_low != 0 || w.pad_high != 0 || w.base_dilation != 1 || w.window_dilation != 1)
      return std::nullopt;
    if (w.size == 1 && w.stride == 1) continue;
    if (w.size != size) return std::nullopt;
    covered.push_back(static_cast<int64_t>(d));
  }
  return covered.empty() ? std::nullopt : std::optional(covered);
}

}  // namespace

std::span<const Rule> WindowRules() {
  static constexpr Rule kRules[] = {
      {"reduce-window.one", "windows of one element", m::ReduceWindow(x, y),
       [](Editor& edit, const m::Match& match) {
         SliceAttrs attrs;
         const Window& window = match.root()->attrs<WindowAttrs>().window;
         for (size_t d = 0; d < window.size(); ++d) {
           attrs.starts.push_back(0);
           attrs.limits.push_back(match[x]->shape().dim(d));
           attrs.strides.push_back(window[d].stride);
         }
         return WithInit(edit, match, edit.Make(Op::kSlice, {match[x]}, std::move(attrs)));
       },
       [](const m::Match& match) {
         return Combiner(match.root()) && IsOfOne(match.root()->attrs<WindowAttrs>().window) &&
                match.shape().ElementCount() > 0;
       },
       R"(  x = f32[5,6] parameter(0)
  z = f32[] parameter(1)
  ROOT r = f32[5,3] reduce-window(x, z), window={size=1x1 stride=1x2}, to_apply=sum)",
       kBodies},
      {"reduce-window.whole", "one window over everything is a reduction", m::ReduceWindow(x, y),
       [](Editor& edit, const m::Match& match) {
         Instr* reduce = edit.MakeCalling(Op::kReduce, {match[x], match[y]},
                                          DimensionsAttrs{*Covered(match)}, match.root()->called());
         return Reshaped(edit, reduce, match.shape().dims());
       },
       [](const m::Match& match) { return IsExact(match.root()) && Covered(match).has_value(); },
       R"(  x = f32[5,6] parameter(0)
  z = f32[] parameter(1)
  ROOT r = f32[5,1] reduce-window(x, z), window={size=1x6}, to_apply=max)",
       kBodies},
  };
  return kRules;
}

}  // namespace tokamak
