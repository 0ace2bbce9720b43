// Slices and pads, and moving slices through other ops.

#include <algorithm>

#include "rewrite/rules/conditions.h"
#include "rewrite/rules/topics.h"

namespace tokamak {
namespace {

using m::a;
using m::x;
using m::y;

const SliceAttrs& SliceOf(const Instr* slice) {
  return slice->attrs<SliceAttrs>();
}
const PadAttrs& PadOf(const Instr* pad) {
  return pad->attrs<PadAttrs>();
}
bool AllZero(const Dims& dims) {
  return std::ranges::count(dims, 0) == static_cast<int64_t>(dims.size());
}
bool AllBetween(const Dims& dims, int64_t low, int64_t high) {
  return std::ranges::all_of(dims, [=](int64_t d) { return d >= low && d <= high; });
}

Instr* SliceOfSlice(Editor& edit, const m::Match& match) {
  const SliceAttrs &outer = SliceOf(match.root()), &inner = SliceOf(match[a]);
  SliceAttrs both;
  for (size_t d = 0; d < outer.starts.size(); ++d) {
    int64_t size = match.shape().dim(d);
    int64_t start = inner.starts[d] + outer.starts[d] * inner.strides[d];
    int64_t stride = inner.strides[d] * outer.strides[d];
    both.starts.push_back(start);
    both.strides.push_back(size <= 1 ? 1 : stride);
    both.limits.push_back(size == 0 ? start : start + (size - 1) * stride + 1);
  }
  return edit.Make(Op::kSlice, {match[x]}, std::move(both));
}

// Slices the operand along its own dimensions and shrinks the repeated ones.
Instr* SliceOfBroadcast(Editor& edit, const m::Match& match) {
  const SliceAttrs& outer = SliceOf(match.root());
  const Dims& dims = DimensionsOf(match[a]);
  SliceAttrs inner;
  bool cuts = false;
  for (size_t i = 0; i < dims.size(); ++i) {
    auto d = static_cast<size_t>(dims[i]);
    int64_t size = match[x]->shape().dim(i);
    bool whole = size == 1 && match[a]->shape().dim(d) != 1;
    inner.starts.push_back(whole ? 0 : outer.starts[d]);
    inner.limits.push_back(whole ? 1 : outer.limits[d]);
    inner.strides.push_back(whole ? 1 : outer.strides[d]);
    cuts = cuts || (!whole && match.shape().dim(d) != size);
  }
  Instr* cut = cuts ? edit.Make(Op::kSlice, {match[x]}, std::move(inner)) : match[x];
  return edit.MakeShaped(Op::kBroadcast, match.shape().WithoutLayout(), {cut},
                         DimensionsAttrs{dims});
}

// The slice in the coordinates of the padded operand; null unless it lies within. No interior
// padding.
std::optional<SliceAttrs> WithinPadded(const m::Match& match) {
  SliceAttrs moved = SliceOf(match.root());
  const PadAttrs& pad = PadOf(match[a]);
  if (!AllZero(pad.interior)) return std::nullopt;
  for (size_t d = 0; d < moved.starts.size(); ++d) {
    moved.starts[d] -= pad.low[d];
    moved.limits[d] -= pad.low[d];
    if (moved.starts[d] < 0 || moved.limits[d] > match[x]->shape().dim(d)) return std::nullopt;
  }
  return moved;
}

}  // namespace

// long: a table
std::span<const Rule> SliceRules() {
  static constexpr Rule kRules[] = {
      {"slice.whole", "a slice of everything", m::Slice(x), x,
       [](const m::Match& match) { return SameDims(match[x]->shape(), match.shape()); },
       R"(x = f32[2,3] parameter(0)
          ROOT s = f32[2,3] slice(x), slice={[0:2], [0:3]})"},
      {"slice.composes", "a slice of a slice is one", m::Slice(m::Bind(a, m::Slice(x))),
       SliceOfSlice, nullptr,
       R"(x = f32[20,9] parameter(0)
          a = f32[6,7] slice(x), slice={[1:18:3], [1:8]}
          ROOT s = f32[2,3] slice(a), slice={[2:5:2], [1:6:2]})"},
      {"slice.of-broadcast", "a slice of a broadcast is a broadcast of a slice",
       m::Slice(m::Bind(a, m::Broadcast(x))), SliceOfBroadcast, nullptr,
       R"(x = f32[9] parameter(0)
          a = f32[6,9] broadcast(x), dimensions={1}
          ROOT s = f32[2,4] slice(a), slice={[2:5:2], [1:9:2]})"},
      {"slice.of-pad", "a slice of a pad that cuts the padding off",
       m::Slice(m::Bind(a, m::Pad(x, y))),
       [](Editor& edit, const m::Match& match) {
         return edit.Make(Op::kSlice, {match[x]}, *WithinPadded(match));
       },
       [](const m::Match& match) { return WithinPadded(match).has_value(); },
       R"(x = f32[9] parameter(0)
          y = f32[] parameter(1)
          a = f32[13] pad(x, y), padding=2_2
          ROOT s = f32[8] slice(a), slice={[2:10]})"},
      {"slice.of-reverse", "a slice of a reverse is a reverse of a slice",
       m::Slice(m::Bind(a, m::Reverse(x))),
       [](Editor& edit, const m::Match& match) {
         SliceAttrs attrs = SliceOf(match.root());
         for (int64_t dimension : DimensionsOf(match[a])) {
           auto d = static_cast<size_t>(dimension);
           int64_t size = match[x]->shape().dim(d), count = match.shape().dim(d);
           int64_t last = attrs.starts[d] + std::max<int64_t>(count - 1, 0) * attrs.strides[d];
           int64_t first = attrs.starts[d];
           attrs.starts[d] = count == 0 ? 0 : size - 1 - last;
           attrs.limits[d] = count == 0 ? 0 : size - first;
         }
         Instr* cut = edit.Make(Op::kSlice, {match[x]}, std::move(attrs));
         return edit.Make(Op::kReverse, {cut}, DimensionsAttrs{DimensionsOf(match[a])});
       },
       [](const m::Match& match) { return HasOneUser(match[a]); },
       R"(x = f32[9,4] parameter(0)
          a = f32[9,4] reverse(x), dimensions={0}
          ROOT s = f32[3,2] slice(a), slice={[1:8:3], [1:3]})"},
      {"slice.of-transpose", "a slice of a transpose is a transpose of a slice",
       m::Slice(m::Bind(a, m::Transpose(x))),
       [](Editor& edit, const m::Match& match) {
         const SliceAttrs& outer = SliceOf(match.root());
         const Dims& permutation = DimensionsOf(match[a]);
         SliceAttrs attrs = outer;
         for (size_t d = 0; d < permutation.size(); ++d) {
           auto from = static_cast<size_t>(permutation[d]);
           attrs.starts[from] = outer.starts[d];
           attrs.limits[from] = outer.limits[d];
           attrs.strides[from] = outer.strides[d];
         }
         Instr* cut = edit.Make(Op::kSlice, {match[x]}, std::move(attrs));
         return edit.Make(Op::kTranspose, {cut}, DimensionsAttrs{permutation});
       },
       [](const m::Match& match) { return HasOneUser(match[a]); },
       R"(x = f32[5,4] parameter(0)
          a = f32[4,5] transpose(x), dimensions={1,0}
          ROOT s = f32[2,2] slice(a), slice={[1:3], [0:4:2]})"},
  };
  return kRules;
}

std::span<const Rule> PadRules() {
  static constexpr Rule kRules[] = {
      {"pad.nothing", "a pad without padding is its operand", m::Pad(x, y), x,
       [](const m::Match& match) {
         const PadAttrs& pad = PadOf(match.root());
         bool inside = false;  // padding between existing neighbours
         for (size_t d = 0; d < pad.interior.size(); ++d)
           inside = inside || (pad.interior[d] != 0 && match[x]->shape().dim(d) > 1);
         return AllZero(pad.low) && AllZero(pad.high) && !inside;
       },
       R"(x = f32[9] parameter(0)
          y = f32[] parameter(1)
          ROOT p = f32[9] pad(x, y), padding=0_0)"},
      {"pad.composes", "a pad of a pad with the same value", m::Pad(m::Bind(a, m::Pad(x, y)), y),
       [](Editor& edit, const m::Match& match) {
         PadAttrs both = PadOf(match.root());
         const PadAttrs& inner = PadOf(match[a]);
         for (size_t d = 0; d < both.low.size(); ++d) {
           both.low[d] += inner.low[d];
           both.high[d] += inner.high[d];
         }
         both.interior = inner.interior;
         return edit.Make(Op::kPad, {match[x], match[y]}, std::move(both));
       },
       [](const m::Match& match) {
         const PadAttrs &outer = PadOf(match.root()), &inner = PadOf(match[a]);
         // Chosen: sums of two such paddings stay within 64 bits.
         constexpr int64_t kMost = int64_t{1} << 50;
         return AllZero(outer.interior) && AllBetween(outer.low, 0, kMost) &&
                AllBetween(outer.high, 0, kMost) && AllBetween(inner.low, 0, kMost) &&
                AllBetween(inner.high, 0, kMost);
       },
       R"(x = f32[9] parameter(0)
          y = f32[] parameter(1)
          a = f32[19] pad(x, y), padding=1_1_1
          ROOT p = f32[22] pad(a, y), padding=1_2)"},
      {"pad.cuts", "a pad with negative padding is a slice", m::Pad(x, y),
       [](Editor& edit, const m::Match& match) {
         const PadAttrs& pad = PadOf(match.root());
         SliceAttrs slice;
         for (size_t d = 0; d < pad.low.size(); ++d) {
           slice.starts.push_back(-pad.low[d]);
           slice.limits.push_back(match[x]->shape().dim(d) + pad.high[d]);
           slice.strides.push_back(1);
         }
         return edit.Make(Op::kSlice, {match[x]}, std::move(slice));
       },
       [](const m::Match& match) {
         const PadAttrs& pad = PadOf(match.root());
         return AllZero(pad.interior) && AllBetween(pad.low, INT32_MIN, 0) &&
                AllBetween(pad.high, INT32_MIN, 0) && match.shape().ElementCount() > 0;
       },
       R"(x = f32[9] parameter(0)
          y = f32[] parameter(1)
          ROOT p = f32[6] pad(x, y), padding=-1_-2)"},
      {"pad.empty", "a pad of an empty array is the padding value", m::Pad(x, y),
       [](Editor& edit, const m::Match& match) { return edit.Broadcast(match[y], match.shape()); },
       [](const m::Match& match) { return match[x]->shape().ElementCount() == 0; },
       R"(x = f32[0] parameter(0)
          y = f32[] parameter(1)
          ROOT p = f32[5] pad(x, y), padding=2_3)"},
  };
  return kRules;
}

}  // namespace tokamak
