// Dynamic slices, gathers and scatters. Slice starts are clamped so that the whole slice is in
// bounds; constant starts are clamped here. A scatter skips windows that are out of bounds.

#include <algorithm>

#include "rewrite/rules/conditions.h"
#include "rewrite/rules/ranges.h"
#include "rewrite/rules/topics.h"

namespace tokamak {
namespace {

using m::a;
using m::x;
using m::y;

// Operands of dynamic-slice: array, starts; of dynamic-update-slice: array, update, starts.
size_t FirstStart(const Instr* instr) {
  return instr->op() == Op::kDynamicSlice ? 1 : 2;
}
const Shape& SliceShape(const Instr* instr) {
  return instr->op() == Op::kDynamicSlice ? instr->shape() : instr->operand(1)->shape();
}
// The start in dimension d, if known: it is a constant, or the clamp allows only one value.
std::optional<int64_t> StartOf(const Instr* instr, size_t d) {
  int64_t room = instr->operand(0)->shape().dim(d) - SliceShape(instr).dim(d);
  if (room == 0) return 0;
  const Instr* start = instr->operand(FirstStart(instr) + d);
  std::optional<IntRange> range = RangeOf(start);
  if (!range) return std::nullopt;
  int64_t low = std::clamp<int64_t>(range->low, 0, room),
          high = std::clamp<int64_t>(range->high, 0, room);
  return low == high ? std::optional(low) : std::nullopt;
}
bool HasScalarStarts(const Instr* instr) {
  size_t rank = instr->operand(0)->shape().dims().size();
  if (instr->operand_count() != FirstStart(instr) + rank) return false;
  return std::ranges::all_of(instr->operands().subspan(FirstStart(instr)),
                             [](const Instr* start) { return start->shape().IsScalar(); });
}
bool SameStarts(const Instr* one, const Instr* other) {
  return std::ranges::equal(one->operands().subspan(FirstStart(one)),
                            other->operands().subspan(FirstStart(other)));
}

// Writes known starts as constants.
Instr* WithKnownStarts(Editor& edit, const m::Match& match) {
  Instr* instr = match.root();
  std::vector<Instr*> operands(instr->operands().begin(), instr->operands().end());
  bool any = false;
  for (size_t d = 0; d < instr->operand(0)->shape().dims().size(); ++d) {
    Instr*& start = operands[FirstStart(instr) + d];
    std::optional<int64_t> known = StartOf(instr, d);
    if (!known || IntOf(start) == known) continue;
    start = IndexConstant(edit, start->shape().type(), *known);
    any = true;
  }
  return any ? edit.MakeLike(*instr, std::move(operands)) : nullptr;
}

// A scalar from an array of indices.
Instr* IndexAt(Editor& edit, Instr* indices, int64_t flat) {
  int64_t count = indices->shape().ElementCount();
  Instr* line = Reshaped(edit, indices, {count});
  if (count > 1) line = edit.Make(Op::kSlice, {line}, SliceAttrs{{flat}, {flat + 1}, {1}});
  return Reshaped(edit, line, {});
}

// Whether the gather reads a single slice.
bool TakesOneSlice(const m::Match& match) {
  const auto& attrs = match.root()->attrs<GatherAttrs>();
  if (!attrs.operand_batching_dims.empty() || match.shape().ElementCount() == 0) return false;
  auto vectors = static_cast<int64_t>(attrs.start_index_map.size());
  return vectors > 0 && match[y]->shape().ElementCount() == vectors;
}
Instr* SliceInsteadOfGather(Editor& edit, const m::Match& match) {
  const auto& attrs = match.root()->attrs<GatherAttrs>();
  ElementType type = match[y]->shape().type();
  std::vector<Instr*> operands = {match[x]};
  for (int64_t d = 0; d < match[x]->shape().rank(); ++d) {
    auto it = std::ranges::find(attrs.start_index_map, d);
    operands.push_back(it == attrs.start_index_map.end()
                           ? IndexConstant(edit, type, 0)
                           : IndexAt(edit, match[y], it - attrs.start_index_map.begin()));
  }
  Instr* slice =
      edit.Make(Op::kDynamicSlice, std::move(operands), DynamicSliceAttrs{attrs.slice_sizes});
  return Reshaped(edit, slice, match.shape().dims());
}

bool IsIntegerIndex(const Instr* indices) {
  return IsInteger(indices->shape().type());
}

// The position of the only update window in the operand, and its sizes there.
struct StaticWindow {
  Dims starts, sizes;
};

std::optional<StaticWindow> StaticWindowOf(const Instr& scatter) {
  const ScatterAttrs& attrs = scatter.attrs<ScatterAttrs>();
  const Shape &operand = scatter.operand(0)->shape(), &update = scatter.operand(2)->shape();
  const Dims& map = attrs.scatter_dims_to_operand_dims;
  const Instr* indices = scatter.operand(1);
  const Literal* splat = SplatOf(indices);
  if (splat == nullptr && indices->op() != Op::kConstant) return std::nullopt;
  if (indices->shape().ElementCount() != static_cast<int64_t>(map.size()) || map.empty())
    return std::nullopt;
  auto index = [&](int64_t i) {
    return splat != nullptr ? splat->IntAt(0) : indices->attrs<ConstantAttrs>().literal.IntAt(i);
  };
  if (!attrs.input_batching_dims.empty()) return std::nullopt;
  StaticWindow position;
  size_t window = 0;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    bool inserted = std::ranges::count(attrs.inserted_window_dims, d) > 0;
    int64_t size = 1;
    if (!inserted) size = update.dim(static_cast<size_t>(attrs.update_window_dims[window++]));
    auto found = std::ranges::find(map, d);
    int64_t start = found == map.end() ? 0 : index(found - map.begin());
    // A scatter skips an out-of-bounds window; a dynamic-update-slice would clamp it.
    if (start < 0 || size < 1 || start > operand.dim(static_cast<size_t>(d)) - size)
      return std::nullopt;
    position.starts.push_back(start);
    position.sizes.push_back(size);
  }
  return position;
}

// One window at a known position that overwrites the operand.
Instr* OneUpdate(Editor& edit, const m::Match& match) {
  const Instr* scatter = match.root();
  if (scatter->operand_count() != 3) return nullptr;
  const Computation& body = *scatter->called(0);
  if (body.root() != body.parameter(1)) return nullptr;
  if (!scatter->operand(2)->shape().IsArray()) return nullptr;
  std::optional<StaticWindow> position = StaticWindowOf(*scatter);
  if (!position) return nullptr;
  Shape block = Shape::Array(scatter->operand(2)->shape().type(), position->sizes);
  std::vector<Instr*> operands = {scatter->operand(0),
                                  edit.MakeShaped(Op::kReshape, block, {scatter->operand(2)})};
  for (int64_t start : position->starts)
    operands.push_back(edit.Constant(Literal::ScalarInt(ElementType::kS64, start)));
  return edit.Make(Op::kDynamicUpdateSlice, std::move(operands));
}

}  // namespace

// long: a table
std::span<const Rule> DynamicRules() {
  static constexpr Rule kRules[] = {
      {"dynamic-slice.known", "a dynamic slice at constant indices is a slice", m::DynamicSlice(),
       [](Editor& edit, const m::Match& match) {
         SliceAttrs attrs;
         for (size_t d = 0; d < match.shape().dims().size(); ++d) {
           attrs.starts.push_back(*StartOf(match.root(), d));
           attrs.limits.push_back(attrs.starts.back() + match.shape().dim(d));
           attrs.strides.push_back(1);
         }
         return edit.Make(Op::kSlice, {match.root()->operand(0)}, std::move(attrs));
       },
       [](const m::Match& match) {
         if (!HasScalarStarts(match.root())) return false;
         for (size_t d = 0; d < match.shape().dims().size(); ++d)
           if (!StartOf(match.root(), d)) return false;
         return true;
       },
       R"(x = f32[9,4] parameter(0)
          i = s32[] constant(7)
          j = s32[] parameter(1)
          ROOT s = f32[3,4] dynamic-slice(x, i, j), dynamic_slice_sizes={3,4})"},
      {"dynamic-slice.known-start", "a start index of a full-size slice is 0", m::DynamicSlice(),
       WithKnownStarts, [](const m::Match& match) { return HasScalarStarts(match.root()); },
       R"(x = f32[9,4] parameter(0)
          i = s32[] parameter(1)
          j = s32[] parameter(2)
          ROOT s = f32[3,4] dynamic-slice(x, i, j), dynamic_slice_sizes={3,4})"},
      {"dynamic-slice.of-update", "a slice of the update that was just written is the update",
       m::DynamicSlice(),
       [](Editor&, const m::Match& match) { return match.root()->operand(0)->operand(1); },
       [](const m::Match& match) {
         const Instr* update = match.root()->operand(0);
         return update->op() == Op::kDynamicUpdateSlice && !update->has_extras() &&
                SameStarts(match.root(), update) &&
                SameDims(update->operand(1)->shape(), match.shape());
       },
       R"(x = f32[9,4] parameter(0)
          u = f32[3,2] parameter(1)
          i = s32[] parameter(2)
          j = s32[] parameter(3)
          d = f32[9,4] dynamic-update-slice(x, u, i, j)
          ROOT s = f32[3,2] dynamic-slice(d, i, j), dynamic_slice_sizes={3,2})"},
      {"dynamic-slice.of-scalar", "a slice of a repeated scalar", m::DynamicSlice(),
       [](Editor& edit, const m::Match& match) {
         return edit.Broadcast(match.root()->operand(0)->operand(0), match.shape());
       },
       [](const m::Match& match) {
         const Instr* from = match.root()->operand(0);
         return from->op() == Op::kBroadcast && from->operand(0)->shape().IsScalar();
       },
       R"(x = f32[] parameter(0)
          b = f32[9] broadcast(x), dimensions={}
          i = s32[] parameter(1)
          ROOT s = f32[3] dynamic-slice(b, i), dynamic_slice_sizes={3})"},
      {"dynamic-update-slice.whole", "an update of the whole array is the update",
       m::DynamicUpdateSlice(),
       [](Editor&, const m::Match& match) { return match.root()->operand(1); },
       [](const m::Match& match) {
         return SameDims(match.root()->operand(1)->shape(), match.shape());
       },
       R"(x = f32[3,2] parameter(0)
          u = f32[3,2] parameter(1)
          i = s32[] parameter(2)
          ROOT d = f32[3,2] dynamic-update-slice(x, u, i, i))"},
      {"dynamic-update-slice.nothing", "nothing is written", m::DynamicUpdateSlice(),
       [](Editor&, const m::Match& match) { return match.root()->operand(0); },
       [](const m::Match& match) { return match.root()->operand(1)->shape().ElementCount() == 0; },
       R"(x = f32[3,2] parameter(0)
          u = f32[0,2] parameter(1)
          i = s32[] parameter(2)
          ROOT d = f32[3,2] dynamic-update-slice(x, u, i, i))"},
      {"dynamic-update-slice.known-start", "a start index of a full-size slice is 0",
       m::DynamicUpdateSlice(), WithKnownStarts,
       [](const m::Match& match) { return HasScalarStarts(match.root()); },
       R"(x = f32[9,4] parameter(0)
          u = f32[3,4] parameter(1)
          i = s32[] parameter(2)
          j = s32[] parameter(3)
          ROOT s = f32[9,4] dynamic-update-slice(x, u, i, j))"},
      {"gather.one", "a gather of one slice is a dynamic slice", m::Gather(x, y),
       SliceInsteadOfGather,
       [](const m::Match& match) { return IsIntegerIndex(match[y]) && TakesOneSlice(match); },
       R"(x = f32[9,4] parameter(0)
          i = s32[2] parameter(1)
          ROOT g = f32[3] gather(x, i), offset_dims={0}, collapsed_slice_dims={1}, start_index_map={1,0}, index_vector_dim=0, slice_sizes={3,1})"},
      {"gather.of-scalar", "a gather of a repeated scalar", m::Gather(m::Broadcast(x), y),
       [](Editor& edit, const m::Match& match) { return edit.Broadcast(match[x], match.shape()); },
       [](const m::Match& match) { return match[x]->shape().IsScalar(); },
       R"(x = f32[] parameter(0)
          b = f32[9] broadcast(x), dimensions={}
          i = s32[5,1] parameter(1)
          ROOT g = f32[5,2] gather(b, i), offset_dims={1}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1, slice_sizes={2})"},
      {"scatter.one-update",
       "a scatter of one window to constant indices is a dynamic-update-slice", m::Scatter(),
       OneUpdate, nullptr,
       R"(HloModule m

set {
  old = f32[] parameter(0)
  ROOT new = f32[] parameter(1)
}

ENTRY main {
  x = f32[5,6] parameter(0)
  i = s32[1] constant({4})
  u = f32[6] parameter(1)
  ROOT s = f32[5,6] scatter(x, i, u), update_window_dims={0}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=0, to_apply=set
})"},
  };
  return kRules;
}

}  // namespace tokamak
