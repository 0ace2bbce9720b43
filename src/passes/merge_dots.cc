#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "ir/compare.h"
#include "passes/passes.h"
#include "rewrite/editor.h"
#include "rewrite/replace.h"

namespace tokamak {
namespace {

// The dimension of one side of a dot that is concatenated, and its index in the result.
struct Joint {
  int64_t side = 0, result = 0;
};

// The last free dimension of side 0 or 1; null if all are batch or contracting dimensions.
std::optional<Joint> JointOf(const Instr& dot, size_t side) {
  const DotAttrs& attrs = dot.attrs<DotAttrs>();
  auto last_free = [&](size_t s, int64_t& count) {
    const Dims& batch = s == 0 ? attrs.lhs_batch : attrs.rhs_batch;
    const Dims& summed = s == 0 ? attrs.lhs_contracting : attrs.rhs_contracting;
    int64_t last = -1;
    for (int64_t d = 0; d < dot.operand(s)->shape().rank(); ++d) {
      if (std::ranges::count(batch, d) + std::ranges::count(summed, d) > 0) continue;
      last = d;
      ++count;
    }
    return last;
  };
  int64_t left = 0, right = 0;
  int64_t last_left = last_free(0, left), last_right = last_free(1, right);
  int64_t batch = static_cast<int64_t>(attrs.lhs_batch.size());
  Joint joint{side == 0 ? last_left : last_right, batch + left + (side == 0 ? 0 : right) - 1};
  if (joint.side < 0) return std::nullopt;
  return joint;
}

// The length of the longest dependence path to each instruction. Two instructions with equal depth
// do not depend on each other, so merging them creates no cycle, however many groups are merged.
InstrMap<int64_t> Depths(const Computation& computation, const std::vector<Instr*>& order) {
  InstrMap<int64_t> depths(computation);
  for (const Instr* instr : order) {
    int64_t depth = 0;
    for (const Instr* operand : instr->operands()) depth = std::max(depth, depths[operand] + 1);
    for (const Instr* before : instr->extras().control_predecessors)
      depth = std::max(depth, depths[before] + 1);
    depths[instr] = depth;
  }
  return depths;
}

bool IsMergeable(const Instr& instr) {
  if (instr.op() != Op::kDot || !CanReplace(instr, instr)) return false;
  if (instr.has_extras() && instr.extras().sharding) return false;
  return IsOrdinary(instr) && instr.shape().layout() == nullptr;
}

// Whether two dots that share the other side differ only in the size of the joint dimension.
bool Match(const Instr& first, const Instr& second, size_t side, const Joint& joint) {
  if (first.shape().type() != second.shape().type()) return false;
  if (!(first.attrs<DotAttrs>() == second.attrs<DotAttrs>())) return false;
  const Shape &a = first.operand(side)->shape(), &b = second.operand(side)->shape();
  if (a.type() != b.type() || a.rank() != b.rank()) return false;
  for (int64_t d = 0; d < a.rank(); ++d)
    if (d != joint.side && a.dim(static_cast<size_t>(d)) != b.dim(static_cast<size_t>(d)))
      return false;
  return true;
}

struct DotGroup {
  size_t side = 0;  // the side that differs
  Joint joint;
  std::vector<Instr*> dots;
};

// Compares the bytes that the concatenation copies with the reads and the kernel launch saved.
bool Pays(const DotGroup& group, const PassLimits& limits, std::string& because) {
  int64_t copied = 0, others = static_cast<int64_t>(group.dots.size()) - 1;
  for (const Instr* dot : group.dots) copied += 2 * dot->operand(group.side)->shape().ByteSize();
  int64_t saved = others * group.dots[0]->operand(1 - group.side)->shape().ByteSize();
  int64_t limit = saved + others * limits.merged_dot_bytes;
  because = fmt::format("{} bytes copied, {} saved, {} allowed", copied, saved, limit);
  return copied <= limit;
}

Changed Merge(const DotGroup& group, PassContext& context) {
  std::string because;
  if (!Pays(group, context.limits, because)) {
    context.Rejected("dots.does-not-pay", *group.dots[0], group.dots[1], because);
    return Changed::kNo;
  }
  Instr* first = group.dots[0];
  Editor edit = Editor::Beside(*first);
  Dims side_dims = first->operand(group.side)->shape().dims(), dims = first->shape().dims();
  auto side_at = static_cast<size_t>(group.joint.side),
       at = static_cast<size_t>(group.joint.result);
  side_dims[side_at] = dims[at] = 0;
  std::vector<Instr*> parts;
  for (const Instr* dot : group.dots) {
    parts.push_back(dot->operand(group.side));
    side_dims[side_at] += parts.back()->shape().dim(side_at);
  }
  dims[at] = side_dims[side_at];
  Instr* joined = edit.Make(Op::kConcatenate, Shape::Array(parts[0]->shape().type(), side_dims),
                            parts, DimensionAttrs{group.joint.side});
  std::vector<Instr*> operands = {joined, joined};
  operands[1 - group.side] = first->operand(1 - group.side);
  Instr* merged = edit.Make(Op::kDot, first->shape().WithDims(dims), operands, first->attrs());
  int64_t start = 0;
  for (Instr* dot : group.dots) {
    Dims starts(dims.size(), 0), limits = dims, strides(dims.size(), 1);
    starts[at] = start;
    start += dot->shape().dim(at);
    limits[at] = start;
    MergeOrigins(joined, *dot);
    MergeOrigins(merged, *dot);
    Instr* slice = Editor::Beside(*dot).Make(
        Op::kSlice, dot->shape(), {merged},
        SliceAttrs{std::move(starts), std::move(limits), std::move(strides)});
    context.Accepted("dots.share-an-operand", *dot, merged, because);
    ReplaceBy(dot, slice, true);
    RemoveUnused(dot);
  }
  return Changed::kYes;
}

Changed MergeIn(Computation& computation, PassContext& context) {
  if (computation.CountOf(Op::kDot) < 2) return Changed::kNo;
  std::vector<Instr*> order = computation.PostOrder();
  InstrMap<int64_t> depths = Depths(computation, order);
  // By shared operand, differing side and depth, in order of first occurrence.
  std::map<std::tuple<InstrId, size_t, int64_t>, size_t> index;
  std::vector<DotGroup> groups;
  for (Instr* instr : order) {
    if (!IsMergeable(*instr) || instr->operand(0) == instr->operand(1)) continue;
    for (size_t side : {size_t{1}, size_t{0}}) {
      std::optional<Joint> joint = JointOf(*instr, side);
      if (!joint) continue;
      auto key = std::tuple(instr->operand(1 - side)->id(), side, depths[instr]);
      auto [found, is_new] = index.emplace(key, groups.size());
      if (is_new) groups.push_back({side, *joint, {}});
      DotGroup& group = groups[found->second];
      if (group.dots.empty() || Match(*group.dots[0], *instr, side, group.joint))
        group.dots.push_back(instr);
    }
  }
  Changed changed = Changed::kNo;
  for (DotGroup& group : groups) {
    std::erase_if(group.dots, [](const Instr* dot) { return dot->is_removed(); });
    if (group.dots.size() >= 2) changed |= Merge(group, context);
  }
  return changed;
}

}  // namespace

// Merges dots that share an operand: concatenates the other operands and slices the result, if the
// copies cost less than the merge saves. Every element is the same sum, so it is bit-exact.
Result<Changed> MergeDots(Module& module, PassContext& context) {
  Changed changed = Changed::kNo;
  for (const auto& computation : module.computations()) changed |= MergeIn(*computation, context);
  return changed;
}

}  // namespace tokamak
