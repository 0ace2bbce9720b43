#include <utility>

#include "rewrite/normal/rules.h"

namespace tokamak {
namespace {

Instr* SimplifyReduce(const Site& site) {
  if (site.operands.size() != 2) return nullptr;
  if (!site.x()->shape().HasDynamicDims() && site.x()->shape().ElementCount() == 0)
    return SplatOf(site.graph, site.y(), site.shape);
  if (!site.attrs.As<DimensionsAttrs>().dimensions.empty()) return nullptr;
  // A reduction over no dimension is one application of the body, which must be a binary op to be
  // expressed as such.
  const Instr* root = site.called[0]->root();
  bool binary = root->operand_count() == 2 && root->operand(0)->op() == Op::kParameter &&
                root->operand(1)->op() == Op::kParameter && root->operand(0) != root->operand(1);
  if (!binary || !IsCommutative(root->op())) return nullptr;
  return site.graph.Make(root->op(), site.shape,
                         {site.x(), SplatOf(site.graph, site.y(), site.shape)}, root->attrs());
}

// HLO splits and concatenates along one dimension, with one block per member of the group. If
// StableHLO concatenates along another dimension, the blocks are moved there.
Instr* SimplifyAllToAll(const Site& site) {
  CollectiveAttrs attrs = site.attrs.As<CollectiveAttrs>();
  bool array = site.operands.size() == 1 && site.shape.IsArray() && attrs.dimensions.size() == 1;
  if (!array || site.shape.HasDynamicDims() || attrs.split_count <= 0) return nullptr;
  int64_t split = attrs.dimensions[0], join = attrs.concat_dimension;
  int64_t count = std::exchange(attrs.split_count, 0);
  attrs.concat_dimension = 0;
  Instr* exchanged = site.graph.Make(Op::kAllToAll, site.x()->shape(), {site.x()}, attrs);
  if (split == join) return exchanged;

  Dims dims = site.x()->shape().dims();
  dims[static_cast<size_t>(split)] /= count;
  dims.insert(dims.begin() + split, count);
  Instr* parts = site.graph.Make(Op::kReshape, site.shape.WithDims(dims), {exchanged});
  Dims order, moved;
  for (int64_t d = 0; d < static_cast<int64_t>(dims.size()); ++d) {
    if (d == split) continue;
    if ((d > split ? d - 1 : d) == join) order.push_back(split);
    order.push_back(d);
  }
  for (int64_t d : order) moved.push_back(dims[static_cast<size_t>(d)]);
  Instr* turned =
      site.graph.Make(Op::kTranspose, site.shape.WithDims(moved), {parts}, DimensionsAttrs{order});
  return site.graph.Make(Op::kReshape, site.shape, {turned});
}

// HLO text omits the first API version, and layouts are not compared.
Instr* SimplifyCustomCall(const Site& site) {
  CustomCallAttrs attrs = site.attrs.As<CustomCallAttrs>();
  if (attrs.api_version == CustomCallApi::kOriginal)
    attrs.api_version = CustomCallApi::kUnspecified;
  attrs.operand_layouts.reset();
  attrs.result_layouts.reset();
  attrs.operand_layout_constraints.reset();
  if (attrs == site.attrs.As<CustomCallAttrs>()) return nullptr;
  return site.graph.Intern(site.op, site.shape, {site.operands.begin(), site.operands.end()}, attrs,
                           {site.called.begin(), site.called.end()});
}

}  // namespace

Instr* SimplifyAggregate(const Site& site) {
  switch (site.op) {
    case Op::kReduce:
      return SimplifyReduce(site);
    case Op::kAllToAll:
      return SimplifyAllToAll(site);
    case Op::kCustomCall:
      return SimplifyCustomCall(site);
    default:
      return nullptr;
  }
}

}  // namespace tokamak
