#include <algorithm>

#include "passes/passes.h"
#include "rewrite/rules.h"

namespace tokamak {
namespace {

using m::a;
using m::x;
using m::y;

// Component i of the only index vector, as a scalar.
Instr* Component(Rewriter& rewriter, Instr* indices, int64_t i, int64_t count) {
  ElementType type = indices->shape().type();
  Instr* flat = rewriter.MakeShaped(Op::kReshape, Shape::Array(type, {count}), {indices});
  if (count > 1) flat = rewriter.Make(Op::kSlice, {flat}, SliceAttrs{{i}, {i + 1}, {1}});
  return rewriter.MakeShaped(Op::kReshape, Shape::Scalar(type), {flat});
}

// One index vector: a block at run-time indices, clamped alike.
Instr* OneBlock(Rewriter& rewriter, const m::Match& match) {
  const GatherAttrs& attrs = match.root()->attrs<GatherAttrs>();
  int64_t count = static_cast<int64_t>(attrs.start_index_map.size());
  if (match[y]->shape().ElementCount() != count || count == 0) return nullptr;
  if (!attrs.operand_batching_dims.empty() || match.shape().ElementCount() == 0) return nullptr;
  std::vector<Instr*> operands = {match[x]};
  for (int64_t d = 0; d < match[x]->shape().rank(); ++d) {
    auto found = std::ranges::find(attrs.start_index_map, d);
    if (found == attrs.start_index_map.end()) {
      operands.push_back(rewriter.Constant(Literal::ScalarInt(match[y]->shape().type(), 0)));
    } else {
      int64_t i = found - attrs.start_index_map.begin();
      operands.push_back(Component(rewriter, match[y], i, count));
    }
  }
  Instr* block =
      rewriter.Make(Op::kDynamicSlice, std::move(operands), DynamicSliceAttrs{attrs.slice_sizes});
  return rewriter.MakeShaped(Op::kReshape, match.shape().WithoutLayout(), {block});
}

// Where the only window of updates lies in the operand, and its sizes there.
struct Place {
  Dims starts, sizes;
};

std::optional<Place> PlaceOf(const Instr& scatter, const Literal& indices) {
  const ScatterAttrs& attrs = scatter.attrs<ScatterAttrs>();
  const Shape &operand = scatter.operand(0)->shape(), &update = scatter.operand(2)->shape();
  const Dims& map = attrs.scatter_dims_to_operand_dims;
  if (indices.shape().ElementCount() != static_cast<int64_t>(map.size()) || map.empty())
    return std::nullopt;
  if (!attrs.input_batching_dims.empty()) return std::nullopt;
  Place place;
  size_t window = 0;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    bool inserted = std::ranges::count(attrs.inserted_window_dims, d) > 0;
    int64_t size = 1;
    if (!inserted) size = update.dim(static_cast<size_t>(attrs.update_window_dims[window++]));
    auto found = std::ranges::find(map, d);
    int64_t start = found == map.end() ? 0 : indices.IntAt(found - map.begin());
    // A window that does not lie inside is skipped; a dynamic-update-slice would move it.
    if (start < 0 || size < 1 || start > operand.dim(static_cast<size_t>(d)) - size)
      return std::nullopt;
    place.starts.push_back(start);
    place.sizes.push_back(size);
  }
  return place;
}

// One window at a known place, which replaces what is there.
Instr* OneUpdate(Rewriter& rewriter, const m::Match& match) {
  const Instr* scatter = match.root();
  if (scatter->operand_count() != 3) return nullptr;
  const Computation& body = *scatter->called(0);
  if (body.root() != body.parameter(1)) return nullptr;
  Instr* indices = scatter->operand(1);
  if (indices->op() == Op::kBroadcast && indices->operand(0)->shape().IsScalar() &&
      indices->shape().ElementCount() == 1)
    indices = indices->operand(0);
  if (indices->op() != Op::kConstant || !scatter->operand(2)->shape().IsArray()) return nullptr;
  std::optional<Place> place = PlaceOf(*scatter, indices->attrs<ConstantAttrs>().literal);
  if (!place) return nullptr;
  Shape block = Shape::Array(scatter->operand(2)->shape().type(), place->sizes);
  std::vector<Instr*> operands = {scatter->operand(0),
                                  rewriter.MakeShaped(Op::kReshape, block, {scatter->operand(2)})};
  for (int64_t start : place->starts)
    operands.push_back(rewriter.Constant(Literal::ScalarInt(ElementType::kS64, start)));
  return rewriter.Make(Op::kDynamicUpdateSlice, std::move(operands));
}

const RuleSet& GatherRules() {
  static const RuleSet* rules = new RuleSet({
      {"gather.one-block", "a gather of one block is a dynamic slice", m::Gather(x, y), OneBlock,
       nullptr, ""},
      {"scatter.one-update", "a scatter of one window to a known place is an update", m::Scatter(),
       OneUpdate, nullptr, ""},
  });
  return *rules;
}

}  // namespace

// Gathers of a single block become dynamic slices, and scatters of a single window whose place is
// known to lie inside become dynamic updates.
Result<Changed> SimplifyGathers(Module& module, PassContext& context) {
  Changed changed = Changed::kNo;
  for (const auto& computation : module.computations()) {
    TOK_TRY(Changed own, ApplyRules(*computation, GatherRules(), context));
    changed |= own;
  }
  return changed;
}

}  // namespace tokamak
