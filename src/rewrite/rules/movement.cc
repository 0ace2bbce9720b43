// Ops that only move elements: transposes, reshapes and similar.

#include <algorithm>

#include "rewrite/rules/conditions.h"
#include "rewrite/rules/topics.h"

namespace tokamak {
namespace {

using m::a;
using m::x;

bool IsIdentity(const Dims& permutation) {
  return std::ranges::is_sorted(permutation);
}

// Dimension i of the result is dimension inner[outer[i]] of the inner op's operand.
Dims Compose(const Dims& outer, const Dims& inner) {
  Dims both;
  for (int64_t d : outer) both.push_back(inner[static_cast<size_t>(d)]);
  return both;
}

}  // namespace

std::span<const Rule> MovementRules() {
  static constexpr Rule kRules[] = {
      {"constant.splat", "a constant of equal elements is a scalar, broadcast", m::Constant(),
       [](Editor& edit, const m::Match& match) -> Instr* {
         return edit.Filled(match.shape(), match.root()->attrs<ConstantAttrs>().literal);
       },
       [](const m::Match& match) {
         return match.shape().IsArray() && match.shape().rank() > 0 &&
                SplatOf(match.root()) != nullptr;
       },
       R"(x = f32[4] parameter(0)
          c = f32[4] constant({2, 2, 2, 2})
          ROOT r = f32[4] add(x, c))"},
      {"transpose.identity", "an identity transpose is its operand", m::Transpose(x), x,
       [](const m::Match& match) { return IsIdentity(DimensionsOf(match.root())); },
       R"(x = f32[2,3] parameter(0)
          ROOT t = f32[2,3] transpose(x), dimensions={0,1})"},
      {"transpose.composes", "a transpose of a transpose is one, or none",
       m::Transpose(m::Bind(a, m::Transpose(x))),
       [](Editor& edit, const m::Match& match) -> Instr* {
         Dims both = Compose(DimensionsOf(match.root()), DimensionsOf(match[a]));
         if (IsIdentity(both)) return match[x];
         return edit.Make(Op::kTranspose, {match[x]}, DimensionsAttrs{std::move(both)});
       },
       nullptr,
       R"(x = f32[2,3,4] parameter(0)
          t = f32[4,2,3] transpose(x), dimensions={2,0,1}
          ROOT u = f32[3,4,2] transpose(t), dimensions={2,0,1})"},
      {"reshape.same", "a reshape to the shape that it has already", m::Reshape(x), x,
       [](const m::Match& match) { return match[x]->shape() == match.shape(); },
       R"(x = f32[2,3] parameter(0)
          ROOT r = f32[2,3] reshape(x))"},
      {"reshape.composes", "a reshape of a reshape is one", m::Reshape(m::Reshape(x)),
       [](Editor& edit, const m::Match& match) -> Instr* {
         return edit.MakeShaped(Op::kReshape, match.shape().WithoutLayout(), {match[x]});
       },
       nullptr,
       R"(x = f32[2,3] parameter(0)
          r = f32[6] reshape(x)
          ROOT s = f32[3,2] reshape(r))"},
      {"broadcast.same", "a broadcast to the shape that it has already", m::Broadcast(x), x,
       [](const m::Match& match) {
         return match[x]->shape() == match.shape() && IsIdentity(DimensionsOf(match.root()));
       },
       R"(x = f32[2,3] parameter(0)
          ROOT b = f32[2,3] broadcast(x), dimensions={0,1})"},
      {"broadcast.composes", "a broadcast of a broadcast is one",
       m::Broadcast(m::Bind(a, m::Broadcast(x))),
       [](Editor& edit, const m::Match& match) -> Instr* {
         // Dimension i of x is dimension inner[i] of the first result, hence outer[inner[i]] of the
         // second.
         Dims both = Compose(DimensionsOf(match[a]), DimensionsOf(match.root()));
         return edit.MakeShaped(Op::kBroadcast, match.shape().WithoutLayout(), {match[x]},
                                DimensionsAttrs{std::move(both)});
       },
       nullptr,
       R"(x = f32[3] parameter(0)
          a = f32[3,2] broadcast(x), dimensions={0}
          ROOT b = f32[4,3,2] broadcast(a), dimensions={1,2})"},
  };
  return kRules;
}

}  // namespace tokamak
