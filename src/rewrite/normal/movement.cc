// Constants, iotas and data movement.

#include <algorithm>
#include <numeric>

#include "rewrite/normal/rules.h"

namespace tokamak {
namespace {

Instr* SimplifyConstant(const Site& site) {
  const Literal& literal = site.attrs.As<ConstantAttrs>().literal;
  if (!site.shape.IsArray() || site.shape.IsScalar() || site.shape.quant() != nullptr)
    return nullptr;
  bool one = literal.is_splat() || site.shape.ElementCount() == 1;
  if (!one) return nullptr;
  Literal scalar = Literal::Array(Shape::Scalar(literal.type()), literal.data());
  return SplatOf(site.graph, site.graph.Constant(scalar), site.shape);
}

Instr* SimplifyIota(const Site& site) {
  int64_t dimension = site.attrs.As<IotaAttrs>().dimension;
  int64_t size = site.shape.dim(static_cast<size_t>(dimension));
  if (size == 1)
    return SplatOf(site.graph, site.graph.Constant(Literal::ScalarInt(site.shape.type(), 0)),
                   site.shape);
  if (site.shape.rank() == 1) return nullptr;
  Instr* line = site.graph.Make(Op::kIota, site.shape.WithDims({size}), {}, IotaAttrs{0});
  return site.graph.Make(Op::kBroadcast, site.shape, {line}, DimensionsAttrs{{dimension}});
}

Dims DimsWithoutOnes(const Dims& dims) {
  Dims kept;
  for (int64_t d : dims)
    if (d != 1) kept.push_back(d);
  return kept;
}

Instr* SimplifyReshape(const Site& site) {
  Instr* x = site.x();
  if (x->shape().dims() == site.shape.dims()) return x;
  if (x->op() == Op::kReshape) return site.graph.Make(Op::kReshape, site.shape, {x->operand(0)});
  if (x->shape().IsScalar()) return SplatOf(site.graph, x, site.shape);
  if (!site.shape.IsScalar() && !site.shape.HasDynamicDims() && site.shape.ElementCount() == 1) {
    Instr* scalar = site.graph.Make(Op::kReshape, site.shape.WithDims({}), {x});
    return SplatOf(site.graph, scalar, site.shape);
  }
  if (x->op() == Op::kBroadcast && x->operand(0)->shape().IsScalar())
    return SplatOf(site.graph, x->operand(0), site.shape);
  // A reshape of a broadcast that only adds or drops dimensions of size 1 is a broadcast.
  if (x->op() == Op::kBroadcast &&
      DimsWithoutOnes(x->shape().dims()) == DimsWithoutOnes(site.shape.dims())) {
    const Dims& source = x->attrs<DimensionsAttrs>().dimensions;
    Dims moved;  // the new index of each dimension of x, -1 for dropped ones
    std::vector<int64_t> to(static_cast<size_t>(x->shape().rank()), -1);
    size_t at = 0;
    for (size_t i = 0; i < to.size(); ++i) {
      if (x->shape().dim(i) == 1) continue;
      while (site.shape.dim(at) == 1) ++at;
      to[i] = static_cast<int64_t>(at++);
    }
    for (int64_t d : source) moved.push_back(to[static_cast<size_t>(d)]);
    if (std::ranges::find(moved, -1) == moved.end())
      return site.graph.Make(Op::kBroadcast, site.shape, {x->operand(0)}, DimensionsAttrs{moved});
  }
  return nullptr;
}

// Normal form: the operand is not a broadcast, has no dimension of size 1, and its dimensions
// ascend in the result.
Instr* SimplifyBroadcast(const Site& site) {
  Instr* x = site.x();
  const Dims& dimensions = site.attrs.As<DimensionsAttrs>().dimensions;
  if (x->shape().HasDynamicDims() || site.shape.HasDynamicDims()) return nullptr;
  if (x->shape().IsScalar()) return SplatOf(site.graph, x, site.shape);
  if (x->op() == Op::kBroadcast) {
    Dims composed;
    for (int64_t d : x->attrs<DimensionsAttrs>().dimensions)
      composed.push_back(dimensions[static_cast<size_t>(d)]);
    return site.graph.Make(Op::kBroadcast, site.shape, {x->operand(0)}, DimensionsAttrs{composed});
  }
  // Dimensions of size 1 carry no information and are dropped from the operand.
  if (std::ranges::find(x->shape().dims(), 1) != x->shape().dims().end()) {
    Dims kept;
    for (size_t i = 0; i < dimensions.size(); ++i)
      if (x->shape().dim(i) != 1) kept.push_back(dimensions[i]);
    Instr* squeezed =
        site.graph.Make(Op::kReshape, x->shape().WithDims(DimsWithoutOnes(x->shape().dims())), {x});
    return site.graph.Make(Op::kBroadcast, site.shape, {squeezed}, DimensionsAttrs{kept});
  }
  if (!std::is_sorted(dimensions.begin(), dimensions.end())) {
    Dims order(dimensions.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](int64_t i) { return dimensions[static_cast<size_t>(i)]; });
    Dims sizes, sorted;
    for (int64_t i : order) {
      sizes.push_back(x->shape().dim(static_cast<size_t>(i)));
      sorted.push_back(dimensions[static_cast<size_t>(i)]);
    }
    Instr* turned =
        site.graph.Make(Op::kTranspose, x->shape().WithDims(sizes), {x}, DimensionsAttrs{order});
    return site.graph.Make(Op::kBroadcast, site.shape, {turned}, DimensionsAttrs{sorted});
  }
  if (x->shape().ElementCount() == site.shape.ElementCount() && !x->shape().IsScalar())
    return site.graph.Make(Op::kReshape, site.shape, {x});
  if (site.shape.IsScalar()) return x;
  return nullptr;
}

// Dimensions of size 1 are removed before the transpose and restored after it; `moved` is the
// permutation of the others.
Instr* TransposeWithoutOnes(const Site& site, const Dims& moved) {
  Dims rank_of(static_cast<size_t>(site.x()->shape().rank()), 0);
  int64_t next = 0;
  for (size_t i = 0; i < rank_of.size(); ++i)
    if (site.x()->shape().dim(i) != 1) rank_of[i] = next++;
  Dims permutation;
  for (int64_t d : moved) permutation.push_back(rank_of[static_cast<size_t>(d)]);
  Instr* squeezed = site.graph.Make(
      Op::kReshape, site.shape.WithDims(DimsWithoutOnes(site.x()->shape().dims())), {site.x()});
  Instr* turned =
      site.graph.Make(Op::kTranspose, site.shape.WithDims(DimsWithoutOnes(site.shape.dims())),
                      {squeezed}, DimensionsAttrs{permutation});
  return site.graph.Make(Op::kReshape, site.shape, {turned});
}

Instr* SimplifyTranspose(const Site& site) {
  Instr* x = site.x();
  const Dims& permutation = site.attrs.As<DimensionsAttrs>().dimensions;
  if (x->op() == Op::kBroadcast && x->operand(0)->shape().IsScalar())
    return SplatOf(site.graph, x->operand(0), site.shape);
  Dims moved;  // the order of the dimensions larger than 1
  for (int64_t d : permutation)
    if (x->shape().dim(static_cast<size_t>(d)) != 1) moved.push_back(d);
  if (std::is_sorted(moved.begin(), moved.end()))
    return site.graph.Make(Op::kReshape, site.shape, {x});
  if (moved.size() < permutation.size()) return TransposeWithoutOnes(site, moved);
  if (x->op() == Op::kTranspose) {
    Dims composed;
    for (int64_t d : permutation)
      composed.push_back(x->attrs<DimensionsAttrs>().dimensions[static_cast<size_t>(d)]);
    return site.graph.Make(Op::kTranspose, site.shape, {x->operand(0)}, DimensionsAttrs{composed});
  }
  if (x->op() == Op::kBroadcast) {
    std::vector<int64_t> inverse(permutation.size());
    for (size_t i = 0; i < permutation.size(); ++i)
      inverse[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
    Dims composed;
    for (int64_t d : x->attrs<DimensionsAttrs>().dimensions)
      composed.push_back(inverse[static_cast<size_t>(d)]);
    return site.graph.Make(Op::kBroadcast, site.shape, {x->operand(0)}, DimensionsAttrs{composed});
  }
  return nullptr;
}

// A slice of a concatenate reads only the operands it overlaps.
Instr* SliceOfConcatenate(const Site& site) {
  size_t along = static_cast<size_t>(site.x()->attrs<DimensionAttrs>().dimension);
  SliceAttrs attrs = site.attrs.As<SliceAttrs>();
  std::vector<Instr*> met;
  int64_t begin = 0, skipped = 0, total = 0;
  for (Instr* part : site.x()->operands()) {
    int64_t size = part->shape().dim(along), end = begin + size;
    if (begin < attrs.limits[along] && end > attrs.starts[along]) {
      if (met.empty()) skipped = begin;
      met.push_back(part);
      total += size;
    }
    begin = end;
  }
  if (met.empty() || met.size() == site.x()->operand_count()) return nullptr;
  attrs.starts[along] -= skipped;
  attrs.limits[along] -= skipped;
  Dims dims = site.x()->shape().dims();
  dims[along] = total;
  Instr* fewer = met.size() == 1
                     ? met[0]
                     : site.graph.Make(Op::kConcatenate, site.x()->shape().WithDims(dims), met,
                                       site.x()->attrs());
  return site.graph.Make(Op::kSlice, site.shape, {fewer}, attrs);
}

Instr* SimplifyReverse(const Site& site) {
  Dims turned;  // reversing a dimension of size 1 does nothing
  const Dims& dimensions = site.attrs.As<DimensionsAttrs>().dimensions;
  for (int64_t d : dimensions)
    if (site.shape.dim(static_cast<size_t>(d)) != 1) turned.push_back(d);
  if (turned.empty()) return site.x();
  if (turned.size() == dimensions.size()) return nullptr;
  return site.graph.Make(Op::kReverse, site.shape, {site.x()}, DimensionsAttrs{turned});
}

Instr* SimplifySlice(const Site& site) {
  Instr* x = site.x();
  if (x->shape().dims() == site.shape.dims()) return x;
  if (x->op() == Op::kBroadcast && x->operand(0)->shape().IsScalar())
    return SplatOf(site.graph, x->operand(0), site.shape);
  if (x->op() == Op::kConcatenate) return SliceOfConcatenate(site);
  if (x->op() != Op::kSlice) return nullptr;
  const SliceAttrs& outer = site.attrs.As<SliceAttrs>();
  const SliceAttrs& inner = x->attrs<SliceAttrs>();
  SliceAttrs both;
  for (size_t i = 0; i < outer.starts.size(); ++i) {
    int64_t stride = inner.strides[i];
    both.starts.push_back(inner.starts[i] + outer.starts[i] * stride);
    both.strides.push_back(stride * outer.strides[i]);
    both.limits.push_back(std::min(inner.limits[i], inner.starts[i] + outer.limits[i] * stride));
  }
  return site.graph.Make(Op::kSlice, site.shape, {x->operand(0)}, both);
}

// Several limits of a strided slice are equivalent; the canonical one is the last index read, plus
// one.
Instr* TightenSlice(const Site& site) {
  SliceAttrs attrs = site.attrs.As<SliceAttrs>();
  for (size_t i = 0; i < attrs.starts.size(); ++i) {
    if (site.shape.dim(i) == kDynamic) return nullptr;
    int64_t size = site.shape.dim(i);
    if (size <= 1) attrs.strides[i] = 1;
    attrs.limits[i] =
        size == 0 ? attrs.starts[i] : attrs.starts[i] + (size - 1) * attrs.strides[i] + 1;
  }
  if (attrs == site.attrs.As<SliceAttrs>()) return nullptr;
  return site.graph.Make(Op::kSlice, site.shape, {site.x()}, attrs);
}

Instr* SimplifyDynamicSlice(const Site& site) {
  SliceAttrs attrs;
  for (size_t i = 1; i < site.operands.size(); ++i) {
    const Literal* index = ScalarOf(site.operands[i]);
    if (index == nullptr || site.shape.dim(i - 1) == kDynamic) return nullptr;
    int64_t size = site.shape.dim(i - 1);
    int64_t start = std::clamp<int64_t>(index->IntAt(0), 0, site.x()->shape().dim(i - 1) - size);
    attrs.starts.push_back(start);
    attrs.limits.push_back(start + size);
    attrs.strides.push_back(1);
  }
  return site.graph.Make(Op::kSlice, site.shape, {site.x()}, attrs);
}

Instr* SimplifyConcatenate(const Site& site) {
  size_t dimension = static_cast<size_t>(site.attrs.As<DimensionAttrs>().dimension);
  std::vector<Instr*> parts;
  for (Instr* part : site.operands) {
    bool nested = part->op() == Op::kConcatenate &&
                  static_cast<size_t>(part->attrs<DimensionAttrs>().dimension) == dimension;
    if (nested) {
      parts.insert(parts.end(), part->operands().begin(), part->operands().end());
    } else if (part->shape().dim(dimension) != 0) {
      parts.push_back(part);
    }
  }
  if (parts.size() == 1) return parts[0];
  if (parts.empty() || std::ranges::equal(parts, site.operands)) return nullptr;
  return site.graph.Make(Op::kConcatenate, site.shape, parts, site.attrs);
}

Instr* SimplifyPad(const Site& site) {
  if (!site.x()->shape().HasDynamicDims() && site.x()->shape().ElementCount() == 0)
    return SplatOf(site.graph, site.y(), site.shape);
  return site.x()->shape().dims() == site.shape.dims() &&
                 std::ranges::all_of(site.attrs.As<PadAttrs>().low,
                                     [](int64_t v) { return v == 0; }) &&
                 std::ranges::all_of(site.attrs.As<PadAttrs>().interior,
                                     [](int64_t v) { return v == 0; })
             ? site.x()
             : nullptr;
}

}  // namespace

Instr* SimplifyMovement(const Site& site) {
  switch (site.op) {
    case Op::kConstant:
      return SimplifyConstant(site);
    case Op::kIota:
      return SimplifyIota(site);
    case Op::kReshape:
      return SimplifyReshape(site);
    case Op::kBroadcast:
      return SimplifyBroadcast(site);
    case Op::kTranspose:
      return SimplifyTranspose(site);
    case Op::kReverse:
      return SimplifyReverse(site);
    case Op::kSlice:
      if (Instr* simpler = SimplifySlice(site)) return simpler;
      return TightenSlice(site);
    case Op::kDynamicUpdateSlice:  // an update of size zero
      return !site.y()->shape().HasDynamicDims() && site.y()->shape().ElementCount() == 0 ? site.x()
                                                                                          : nullptr;
    case Op::kDynamicSlice:
      return SimplifyDynamicSlice(site);
    case Op::kConcatenate:
      return SimplifyConcatenate(site);
    case Op::kPad:
      return SimplifyPad(site);
    case Op::kCopy:
    case Op::kShardingConstraint:
    case Op::kReshard:
    case Op::kPropagationBarrier:
    case Op::kDomain:
      return site.x();
    default:
      return nullptr;
  }
}

}  // namespace tokamak
