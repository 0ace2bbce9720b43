#include <algorithm>
#include <numeric>

#include "passes/passes.h"
#include "rewrite/rules.h"

namespace tokamak {
namespace {

using m::a;
using m::x;
using m::y;

bool Contains(const Dims& dims, int64_t d) {
  return std::ranges::count(dims, d) > 0;
}

// What a dot neither pairs nor sums, in order.
Dims FreeDims(int64_t rank, const Dims& batch, const Dims& contracting) {
  Dims free;
  for (int64_t d = 0; d < rank; ++d)
    if (!Contains(batch, d) && !Contains(contracting, d)) free.push_back(d);
  return free;
}

Dims Mapped(const Dims& dims, const Dims& permutation) {
  Dims mapped;
  for (int64_t d : dims) mapped.push_back(permutation[static_cast<size_t>(d)]);
  return mapped;
}

const Dims& DimensionsOf(const Instr* instr) {
  return instr->attrs<DimensionsAttrs>().dimensions;
}

// The dimension numbers of a dot whose operand is a transpose, for what is transposed; nothing when
// the free dimensions would come out in another order. Sums keep their order: no bit changes.
Instr* FoldTranspose(Rewriter& rewriter, const m::Match& match, bool left) {
  DotAttrs attrs = match.root()->attrs<DotAttrs>();
  const Dims& permutation = DimensionsOf(match[a]);
  Dims& batch = left ? attrs.lhs_batch : attrs.rhs_batch;
  Dims& contracting = left ? attrs.lhs_contracting : attrs.rhs_contracting;
  Dims free = Mapped(FreeDims(match[a]->shape().rank(), batch, contracting), permutation);
  if (!std::ranges::is_sorted(free)) return nullptr;
  batch = Mapped(batch, permutation);
  contracting = Mapped(contracting, permutation);
  std::vector<Instr*> operands = {left ? match[x] : match[y], left ? match[y] : match[x]};
  return rewriter.MakeShaped(Op::kDot, match.shape().WithoutLayout(), std::move(operands),
                             std::move(attrs));
}

// The permutation that moves the free dimensions of the right side before those of the left.
Dims Exchange(size_t batch, size_t lhs_free, size_t rhs_free) {
  Dims order(batch + lhs_free + rhs_free);
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin() + static_cast<std::ptrdiff_t>(batch),
              order.begin() + static_cast<std::ptrdiff_t>(batch + lhs_free), order.end());
  return order;
}

Instr* SwapSides(Rewriter& rewriter, const m::Match& match) {
  const DotAttrs& attrs = match[a]->attrs<DotAttrs>();
  int64_t batch = static_cast<int64_t>(attrs.lhs_batch.size());
  int64_t summed = static_cast<int64_t>(attrs.lhs_contracting.size());
  int64_t lhs_free = match[x]->shape().rank() - batch - summed;
  int64_t rhs_free = match[y]->shape().rank() - batch - summed;
  if (lhs_free == 0 || rhs_free == 0 || attrs.algorithm) return nullptr;
  if (DimensionsOf(match.root()) != Exchange(static_cast<size_t>(batch),
                                             static_cast<size_t>(lhs_free),
                                             static_cast<size_t>(rhs_free)))
    return nullptr;
  DotAttrs swapped = attrs;
  std::swap(swapped.lhs_batch, swapped.rhs_batch);
  std::swap(swapped.lhs_contracting, swapped.rhs_contracting);
  std::ranges::reverse(swapped.precision);
  return rewriter.MakeShaped(Op::kDot, match.shape().WithoutLayout(), {match[y], match[x]},
                             std::move(swapped));
}

// One side of a product without a sum, as the result needs it.
Instr* Side(Rewriter& rewriter, Instr* side, const Dims& batch, const Dims& contracting,
            int64_t free_at, const Shape& wide) {
  Dims dims, places;
  for (int64_t d = 0, free = free_at; d < side->shape().rank(); ++d) {
    if (Contains(contracting, d)) continue;
    dims.push_back(side->shape().dim(static_cast<size_t>(d)));
    auto found = std::ranges::find(batch, d);
    places.push_back(found != batch.end() ? found - batch.begin() : free++);
  }
  Shape shape = Shape::Array(side->shape().type(), dims);
  if (!contracting.empty()) side = rewriter.MakeShaped(Op::kReshape, shape, {side});
  if (shape.type() != wide.type())
    side = rewriter.MakeShaped(Op::kConvert, shape.WithType(wide.type()), {side});
  return rewriter.MakeShaped(Op::kBroadcast, wide, {side}, DimensionsAttrs{std::move(places)});
}

// A dot that sums nothing is a product, plus the 0 that its sum begins with: -0 becomes 0.
Instr* OuterProduct(Rewriter& rewriter, const m::Match& match) {
  const DotAttrs& attrs = match.root()->attrs<DotAttrs>();
  for (int64_t d : attrs.lhs_contracting)
    if (match[x]->shape().dim(static_cast<size_t>(d)) != 1) return nullptr;
  ElementType type = match.type();
  if (!IsReal(type) && !IsInteger(type)) return nullptr;
  bool narrow = IsReal(type) && InfoOf(type).bits < 32;
  Shape wide = Shape::Array(narrow ? ElementType::kF32 : type, match.shape().dims());
  int64_t batch = static_cast<int64_t>(attrs.lhs_batch.size());
  int64_t lhs_free =
      match[x]->shape().rank() - batch - static_cast<int64_t>(attrs.lhs_contracting.size());
  Instr* left = Side(rewriter, match[x], attrs.lhs_batch, attrs.lhs_contracting, batch, wide);
  Instr* right =
      Side(rewriter, match[y], attrs.rhs_batch, attrs.rhs_contracting, batch + lhs_free, wide);
  Instr* product = rewriter.Make(Op::kMultiply, {left, right});
  if (IsReal(type)) product = rewriter.Make(Op::kAdd, {product, rewriter.Filled(wide, 0.0)});
  if (!narrow) return product;
  return rewriter.MakeShaped(Op::kConvert, wide.WithType(type), {product});
}

bool TypesAreAlike(const m::Match& match) {
  auto kind = [](const Instr* instr) { return KindOf(instr->shape().type()); };
  return kind(match[x]) == kind(match.root()) && kind(match[y]) == kind(match.root());
}

const RuleSet& DotRules() {
  static const RuleSet* rules = new RuleSet({
      {"dot.folds-transpose-left", "a transpose of the left side becomes dimension numbers",
       m::Dot(m::Bind(a, m::Transpose(x)), y),
       [](Rewriter& rewriter, const m::Match& match) -> Instr* {
         return FoldTranspose(rewriter, match, true);
       },
       nullptr,
       R"(x = f32[3,2] parameter(0)
          y = f32[3,4] parameter(1)
          t = f32[2,3] transpose(x), dimensions={1,0}
          ROOT d = f32[2,4] dot(t, y), lhs_contracting_dims={1}, rhs_contracting_dims={0})"},
      {"dot.folds-transpose-right", "a transpose of the right side becomes dimension numbers",
       m::Dot(y, m::Bind(a, m::Transpose(x))),
       [](Rewriter& rewriter, const m::Match& match) -> Instr* {
         return FoldTranspose(rewriter, match, false);
       },
       nullptr,
       R"(x = f32[4,3] parameter(0)
          y = f32[2,3] parameter(1)
          t = f32[3,4] transpose(x), dimensions={1,0}
          ROOT d = f32[2,4] dot(y, t), lhs_contracting_dims={1}, rhs_contracting_dims={0})"},
      {"dot.outer-product", "a dot that sums one term, or none, is a product", m::Dot(x, y),
       OuterProduct, TypesAreAlike,
       R"(x = f32[3,1] parameter(0)
          y = f32[1,4] parameter(1)
          ROOT d = f32[3,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0})"},
      {"dot.swaps-sides", "a transpose of the result is a dot of the sides exchanged",
       m::Transpose(m::Bind(a, m::Dot(x, y))), SwapSides,
       [](const m::Match& match) { return HasOneUser(match[a]); },
       R"(x = f32[2,3] parameter(0)
          y = f32[3,4] parameter(1)
          d = f32[2,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
          ROOT t = f32[4,2] transpose(d), dimensions={1,0})"},
  });
  return *rules;
}

}  // namespace

// Takes transposes around dots into their dimension numbers and writes dots that sum nothing as
// products. Every element is the same sum in the same order: no bit changes. A dot of two vectors
// stays one: as a reduce it would be summed in another precision.
Result<Changed> CanonicalizeDots(Module& module, PassContext& context) {
  Changed changed = Changed::kNo;
  for (const auto& computation : module.computations()) {
    TOK_TRY(Changed own, ApplyRules(*computation, DotRules(), context));
    changed |= own;
  }
  return changed;
}

}  // namespace tokamak
