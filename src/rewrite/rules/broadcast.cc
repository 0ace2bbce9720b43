// Broadcasts, iotas, reverses and copies; transposes and reshapes of them.

#include <algorithm>

#include "rewrite/rules/conditions.h"
#include "rewrite/rules/topics.h"

namespace tokamak {
namespace {

using m::a;
using m::x;

int64_t IotaDimension(const Instr* iota) {
  return iota->attrs<IotaAttrs>().dimension;
}
Instr* MakeIota(Editor& edit, const m::Match& match, int64_t dimension) {
  return edit.MakeShaped(Op::kIota, match.shape().WithoutLayout(), {}, IotaAttrs{dimension});
}
Instr* MakeBroadcast(Editor& edit, const m::Match& match, Instr* of, Dims dims) {
  return edit.MakeShaped(Op::kBroadcast, match.shape().WithoutLayout(), {of},
                         DimensionsAttrs{std::move(dims)});
}

// The dimensions of `to` that correspond to the dimensions of `from` larger than 1, in order. Null
// unless `to` is `from` with dimensions of size 1 inserted or removed.
std::optional<Dims> KeptDimensions(const Dims& from, const Dims& to) {
  Dims broadcast_dims;
  size_t next = 0;
  for (int64_t size : from) {
    if (size == 1) {
      broadcast_dims.push_back(-1);
      continue;
    }
    while (next < to.size() && to[next] == 1) ++next;
    if (next == to.size() || to[next] != size) return std::nullopt;
    broadcast_dims.push_back(static_cast<int64_t>(next++));
  }
  while (next < to.size() && to[next] == 1) ++next;
  if (next != to.size()) return std::nullopt;
  return broadcast_dims;
}

// Dimensions of a broadcast's result that correspond to no dimension of its operand, or that expand
// a dimension of size 1.
bool IsRepeated(const Instr* broadcast, int64_t d) {
  const Dims& dims = DimensionsOf(broadcast);
  auto it = std::ranges::find(dims, d);
  if (it == dims.end()) return true;
  auto i = static_cast<size_t>(it - dims.begin());
  return broadcast->operand(0)->shape().dim(i) != SizeAt(broadcast->shape(), d);
}

// Removes dimensions of size 1 from the operand if a reshape would otherwise precede the broadcast.
Instr* WithoutOnes(Editor& edit, const m::Match& match) {
  const Shape& shape = match[x]->shape();
  const Dims& dims = DimensionsOf(match.root());
  Dims sizes, kept;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (shape.dim(i) == 1) continue;
    sizes.push_back(shape.dim(i));
    kept.push_back(dims[i]);
  }
  if (kept.size() == dims.size()) return nullptr;
  return MakeBroadcast(edit, match, Reshaped(edit, match[x], std::move(sizes)), std::move(kept));
}

}  // namespace

// long: a table
std::span<const Rule> BroadcastRules() {
  static constexpr Rule kRules[] = {
      {"broadcast.of-ones", "a broadcast of dimensions of size 1 drops them first", m::Broadcast(x),
       WithoutOnes,
       [](const m::Match& match) {
         const Dims& dims = match[x]->shape().dims();
         return std::ranges::count(dims, 1) > 0;
       },
       R"(x = f32[1,3] parameter(0)
          ROOT b = f32[2,3] broadcast(x), dimensions={0,1})"},
      {"broadcast.is-reshape", "a broadcast that repeats nothing is a reshape", m::Broadcast(x),
       [](Editor& edit, const m::Match& match) {
         return edit.MakeShaped(Op::kReshape, match.shape().WithoutLayout(), {match[x]});
       },
       [](const m::Match& match) {
         // A constant stays a broadcast, the canonical form of all splats.
         return match[x]->op() != Op::kConstant && IsIncreasing(DimensionsOf(match.root())) &&
                match[x]->shape().ElementCount() == match.shape().ElementCount() &&
                match.shape().ElementCount() > 0;
       },
       R"(x = f32[6] parameter(0)
          ROOT b = f32[1,6,1] broadcast(x), dimensions={1})"},
      {"broadcast.iota", "a broadcast of an iota is an iota", m::Broadcast(m::Bind(a, m::Iota())),
       [](Editor& edit, const m::Match& match) {
         auto d = static_cast<size_t>(IotaDimension(match[a]));
         return MakeIota(edit, match, DimensionsOf(match.root())[d]);
       },
       [](const m::Match& match) {
         auto d = static_cast<size_t>(IotaDimension(match[a]));
         return match[a]->shape().dim(d) == SizeAt(match.shape(), DimensionsOf(match.root())[d]);
       },
       R"(i = s32[6] iota(), iota_dimension=0
          ROOT b = s32[4,6] broadcast(i), dimensions={1})"},
      {"reshape.of-broadcast", "a reshape of a repeated scalar", m::Reshape(m::Broadcast(x)),
       [](Editor& edit, const m::Match& match) { return edit.Broadcast(match[x], match.shape()); },
       [](const m::Match& match) { return match[x]->shape().IsScalar(); },
       R"(x = f32[] parameter(0)
          b = f32[2,3] broadcast(x), dimensions={}
          ROOT r = f32[6] reshape(b))"},
      {"reshape.of-broadcast-ones",
       "a reshape of a broadcast that adds or removes dimensions of size 1",
       m::Reshape(m::Bind(a, m::Broadcast(x))),
       [](Editor& edit, const m::Match& match) -> Instr* {
         std::optional<Dims> broadcast_dims =
             KeptDimensions(match[a]->shape().dims(), match.shape().dims());
         if (!broadcast_dims) return nullptr;
         Dims dims;
         for (int64_t d : DimensionsOf(match[a]))
           dims.push_back((*broadcast_dims)[static_cast<size_t>(d)]);
         if (Contains(dims, -1) || !IsIncreasing(dims)) return nullptr;
         return MakeBroadcast(edit, match, match[x], std::move(dims));
       },
       nullptr,
       R"(x = f32[3] parameter(0)
          b = f32[2,1,3] broadcast(x), dimensions={2}
          ROOT r = f32[2,3,1] reshape(b))"},
      {"transpose.of-broadcast", "a transpose of a broadcast",
       m::Transpose(m::Bind(a, m::Broadcast(x))),
       [](Editor& edit, const m::Match& match) -> Instr* {
         const Dims& permutation = DimensionsOf(match.root());
         Dims dims;
         for (int64_t d : DimensionsOf(match[a]))
           dims.push_back(std::ranges::find(permutation, d) - permutation.begin());
         if (!IsIncreasing(dims)) return nullptr;
         return MakeBroadcast(edit, match, match[x], std::move(dims));
       },
       nullptr,
       R"(x = f32[3] parameter(0)
          b = f32[2,3] broadcast(x), dimensions={1}
          ROOT t = f32[3,2] transpose(b), dimensions={1,0})"},
      {"reverse.of-broadcast", "a reverse of a broadcast dimension is the broadcast",
       m::Reverse(m::Bind(a, m::Broadcast(x))),
       [](Editor& edit, const m::Match& match) -> Instr* {
         Dims left;
         for (int64_t d : DimensionsOf(match.root()))
           if (!IsRepeated(match[a], d)) left.push_back(d);
         if (left.size() == DimensionsOf(match.root()).size()) return nullptr;
         if (left.empty()) return match[a];
         return edit.Make(Op::kReverse, {match[a]}, DimensionsAttrs{std::move(left)});
       },
       nullptr,
       R"(x = f32[3] parameter(0)
          b = f32[2,3] broadcast(x), dimensions={1}
          ROOT t = f32[2,3] reverse(b), dimensions={0,1})"},
  };
  return kRules;
}

std::span<const Rule> IotaRules() {
  static constexpr Rule kRules[] = {
      {"iota.one", "an iota along a dimension of size 1 is 0", m::Iota(), m::Zero(),
       [](const m::Match& match) {
         return SizeAt(match.shape(), IotaDimension(match.root())) == 1;
       },
       R"(ROOT i = s32[4,1] iota(), iota_dimension=1)"},
      {"reshape.iota", "a reshape of an iota that adds or removes dimensions of size 1",
       m::Reshape(m::Bind(a, m::Iota())),
       [](Editor& edit, const m::Match& match) -> Instr* {
         std::optional<Dims> broadcast_dims =
             KeptDimensions(match[a]->shape().dims(), match.shape().dims());
         if (!broadcast_dims) return nullptr;
         int64_t d = (*broadcast_dims)[static_cast<size_t>(IotaDimension(match[a]))];
         return d < 0 ? nullptr : MakeIota(edit, match, d);
       },
       nullptr,
       R"(i = s32[6] iota(), iota_dimension=0
          ROOT r = s32[1,6] reshape(i))"},
      {"transpose.iota", "a transpose of an iota is an iota", m::Transpose(m::Bind(a, m::Iota())),
       [](Editor& edit, const m::Match& match) {
         const Dims& permutation = DimensionsOf(match.root());
         return MakeIota(
             edit, match,
             std::ranges::find(permutation, IotaDimension(match[a])) - permutation.begin());
       },
       nullptr,
       R"(i = s32[4,6] iota(), iota_dimension=0
          ROOT t = s32[6,4] transpose(i), dimensions={1,0})"},
      {"slice.iota", "a slice of an iota from its start is an iota",
       m::Slice(m::Bind(a, m::Iota())),
       [](Editor& edit, const m::Match& match) {
         return MakeIota(edit, match, IotaDimension(match[a]));
       },
       [](const m::Match& match) {
         auto d = static_cast<size_t>(IotaDimension(match[a]));
         const auto& attrs = match.root()->attrs<SliceAttrs>();
         return attrs.starts[d] == 0 && attrs.strides[d] == 1;
       },
       R"(i = s32[4,6] iota(), iota_dimension=1
          ROOT t = s32[2,3] slice(i), slice={[1:3], [0:3]})"},
  };
  return kRules;
}

std::span<const Rule> ElementOrderRules() {
  static constexpr Rule kRules[] = {
      {"reverse.one", "a reverse of dimensions of size 1 is its operand", m::Reverse(x),
       [](Editor& edit, const m::Match& match) -> Instr* {
         Dims left;
         for (int64_t d : DimensionsOf(match.root()))
           if (SizeAt(match.shape(), d) > 1) left.push_back(d);
         if (left.empty()) return match[x];
         if (left.size() == DimensionsOf(match.root()).size()) return nullptr;
         return edit.Make(Op::kReverse, {match[x]}, DimensionsAttrs{std::move(left)});
       },
       nullptr,
       R"(x = f32[1,3,4] parameter(0)
          ROOT t = f32[1,3,4] reverse(x), dimensions={0,2})"},
      {"reverse.composes", "a reverse of a reverse", m::Reverse(m::Bind(a, m::Reverse(x))),
       [](Editor& edit, const m::Match& match) -> Instr* {
         const Dims &outer = DimensionsOf(match.root()), &inner = DimensionsOf(match[a]);
         Dims once;
         for (int64_t d = 0; d < match.shape().rank(); ++d)
           if (Contains(outer, d) != Contains(inner, d)) once.push_back(d);
         if (once.empty()) return match[x];
         return edit.Make(Op::kReverse, {match[x]}, DimensionsAttrs{std::move(once)});
       },
       nullptr,
       R"(x = f32[2,3,4] parameter(0)
          r = f32[2,3,4] reverse(x), dimensions={0,1}
          ROOT t = f32[2,3,4] reverse(r), dimensions={1,2})"},
      {"transpose.only-ones", "a transpose that only moves dimensions of size 1 is a reshape",
       m::Transpose(x),
       [](Editor& edit, const m::Match& match) {
         return edit.MakeShaped(Op::kReshape, match.shape().WithoutLayout(), {match[x]});
       },
       [](const m::Match& match) {
         Dims moved;
         for (int64_t d : DimensionsOf(match.root()))
           if (SizeAt(match[x]->shape(), d) != 1) moved.push_back(d);
         return IsIncreasing(moved) && !IsIncreasing(DimensionsOf(match.root()));
       },
       R"(x = f32[2,1,3] parameter(0)
          ROOT t = f32[1,2,3] transpose(x), dimensions={1,0,2})"},
      {"copy.same", "a copy in the same layout", m::Copy(x), x, nullptr,
       R"(x = f32[2,3] parameter(0)
          ROOT c = f32[2,3] copy(x))"},
      {"get-dimension-size.known", "the size of a static dimension is a constant",
       m::GetDimensionSize(x),
       [](Editor& edit, const m::Match& match) {
         int64_t d = match.root()->attrs<DimensionAttrs>().dimension;
         return FilledInt(edit, match, SizeAt(match[x]->shape(), d));
       },
       [](const m::Match& match) { return IsStaticArray(match[x]); },
       R"(x = f32[2,3] parameter(0)
          ROOT c = s32[] get-dimension-size(x), dimensions={1})"},
  };
  return kRules;
}

}  // namespace tokamak
