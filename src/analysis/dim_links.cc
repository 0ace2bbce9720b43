// Builds the dimension classes of a loop body in three steps:
//
//   1. Depends   which values depend on a followed array: forward data flow, to a fixed point
//   2. JoinAll   parameters of body and condition, and next value of a carried array: one class
//   3. Link      each instruction joins or mixes the dimensions of its operands and results, by op
//
// Only operands that depend on a followed array link anything: all other values are available at
// every point. An op without a case of its own mixes all dimensions that it changes, which is
// always safe. Classes are a union-find with path halving; `mixed_` is valid at the root of a class
// only. Step 1 is linear per sweep, the others almost linear.

#include "analysis/dim_links.h"

#include <algorithm>
#include <optional>

#include "analysis/own_condition.h"

namespace tokamak {
namespace {

bool Contains(const Dims& dims, size_t d) {
  return std::find(dims.begin(), dims.end(), static_cast<int64_t>(d)) != dims.end();
}

size_t PartCount(const Shape& shape) {
  return shape.IsTuple() ? shape.elements().size() : 1;
}
const Shape& PartOf(const Shape& shape, size_t part) {
  return shape.IsTuple() ? shape.elements()[part] : shape;
}
size_t RankOf(const Shape& shape) {
  return shape.IsArray() ? shape.dims().size() : 0;
}

bool IsLoopOrBranch(const Instr& instr) {
  return instr.op() == Op::kWhile || instr.op() == Op::kConditional || instr.op() == Op::kCall;
}

// The argument for a parameter of a called computation.
const Instr& ArgumentOf(const Instr& call, size_t computation, size_t parameter) {
  if (call.op() != Op::kConditional) return *call.operand(parameter);
  size_t first = 1;
  for (size_t i = 0; i < computation; ++i) first += call.called(i)->parameters().size();
  return *call.operand(first + parameter);
}

}  // namespace

DimLinks::DimLinks(const WhileLoop& loop, const std::set<const Instr*>& moves) {
  AddComputation(*loop.body);
  AddComputation(*loop.condition);
  bool changed = false;
  for (const Instr* parameter : moves) MarkDepends(*parameter, 0, changed);
  for (size_t i = 0; i < loop.size(); ++i)
    if (moves.contains(loop.in_body(i))) MarkDepends(*loop.in_condition(i), 0, changed);
  do {
    changed = false;
    for (const Computation* computation : computations_) Follow(*computation, changed);
  } while (changed);
  for (size_t i = 0; i < loop.size(); ++i) {
    if (!moves.contains(loop.in_body(i))) continue;
    JoinAll(*loop.in_body(i), 0, *loop.in_condition(i), 0);
    // A value that does not depend on carried arrays is available at every point.
    if (Depends(*loop.next(i))) JoinAll(*loop.in_body(i), 0, *loop.next(i), 0);
  }
  // If each point has its own condition, the any-reduction over all points is not evaluated and
  // links nothing.
  std::set<const Instr*> unasked;
  auto ask = [&](const WhileLoop& asked) {
    if (OwnCondition(asked) != nullptr) unasked.insert(AnyOfCondition(asked));
  };
  ask(loop);
  for (const Computation* computation : computations_)
    for (Instr* instr : computation->Callers())
      if (std::optional<WhileLoop> inner = LoopOf(instr)) ask(*inner);
  for (const Computation* computation : computations_)
    for (const Instr* instr : computation->PostOrder())
      if (!unasked.contains(instr)) Link(*instr);
  // Two dimensions of one array in the same class: the array is combined with its own transpose.
  for (const Instr* parameter : moves)
    for (size_t d = 0; d < parameter->shape().dims().size(); ++d)
      for (size_t e = 0; e < d; ++e)
        if (ClassOf(*parameter, d) == ClassOf(*parameter, e)) {
          looked_at_ = parameter;
          Mix(*parameter, d);
        }
}

void DimLinks::AddComputation(const Computation& computation) {
  if (std::find(computations_.begin(), computations_.end(), &computation) != computations_.end())
    return;
  computations_.push_back(&computation);
  for (const Instr* instr : computation.Callers())
    if (IsLoopOrBranch(*instr))
      for (const Computation* called : instr->called()) AddComputation(*called);
}

bool DimLinks::Depends(const Instr& value, size_t part) const {
  if (value.op() == Op::kGetTupleElement)
    return Depends(*value.operand(0), static_cast<size_t>(value.attrs<TupleIndexAttrs>().index));
  if (value.op() == Op::kTuple) return Depends(*value.operand(part));
  return depends_.contains({&value, part});
}

void DimLinks::MarkDepends(const Instr& value, size_t part, bool& changed) {
  if (depends_.emplace(&value, part).second) changed = true;
}

void DimLinks::Follow(const Computation& computation, bool& changed) {
  for (const Instr* instr : computation.PostOrder()) {
    if (instr->op() == Op::kTuple || instr->op() == Op::kGetTupleElement) continue;
    if (IsLoopOrBranch(*instr)) {
      FollowCalls(*instr, changed);
      continue;
    }
    bool depends = std::ranges::any_of(instr->operands(),
                                       [&](const Instr* operand) { return Depends(*operand); });
    if (!depends) continue;
    for (size_t p = 0; p < PartCount(instr->shape()); ++p) MarkDepends(*instr, p, changed);
  }
}

// A result of a conditional also depends on its predicate, because another branch has another
// value.
void DimLinks::FollowCalls(const Instr& instr, bool& changed) {
  bool is_loop = instr.op() == Op::kWhile;
  for (size_t c = 0; c < instr.called().size(); ++c) {
    const Computation& called = *instr.called(c);
    for (size_t p = 0; p < called.parameters().size(); ++p) {
      // A loop also passes the results of its body to the next iteration.
      if (Depends(ArgumentOf(instr, c, p)) || (is_loop && Depends(*instr.called(1)->root(), p)))
        MarkDepends(*called.parameter(p), 0, changed);
    }
    for (size_t p = 0; p < PartCount(instr.shape()); ++p) {
      bool depends = is_loop ? Depends(*instr.called(1)->parameter(p)) : Depends(*called.root(), p);
      if (instr.op() == Op::kConditional) depends = depends || Depends(*instr.operand(0));
      if (depends) MarkDepends(instr, p, changed);
    }
  }
}

size_t DimLinks::Root(size_t node) {
  while (parents_[node] != node) {
    parents_[node] = parents_[parents_[node]];
    node = parents_[node];
  }
  return node;
}

size_t DimLinks::ClassOf(const Instr& value, size_t dim, size_t part) {
  // An element of a tuple is the value itself.
  if (value.op() == Op::kGetTupleElement)
    return ClassOf(*value.operand(0), dim,
                   static_cast<size_t>(value.attrs<TupleIndexAttrs>().index));
  if (value.op() == Op::kTuple) return ClassOf(*value.operand(part), dim);
  auto [it, is_new] = first_.try_emplace(&value);
  if (is_new) {
    for (size_t p = 0; p < PartCount(value.shape()); ++p) {
      it->second.push_back(parents_.size());
      for (size_t d = 0; d < RankOf(PartOf(value.shape(), p)); ++d) {
        parents_.push_back(parents_.size());
        mixed_.push_back(nullptr);
      }
    }
  }
  return Root(it->second[part] + dim);
}

// A class that is joined with a mixed one is mixed; one culprit is enough for the message.
void DimLinks::Join(const Instr& x, size_t x_dim, size_t x_part, const Instr& y, size_t y_dim,
                    size_t y_part) {
  size_t one = ClassOf(x, x_dim, x_part), other = ClassOf(y, y_dim, y_part);
  if (one == other) return;
  parents_[other] = one;
  if (mixed_[one] == nullptr) mixed_[one] = mixed_[other];
}

void DimLinks::JoinAll(const Instr& x, size_t x_part, const Instr& y, size_t y_part) {
  auto rank_of = [](const Instr& value, size_t part) {
    return RankOf(PartOf(value.shape(), part));
  };
  for (size_t d = 0; d < std::min(rank_of(x, x_part), rank_of(y, y_part)); ++d)
    Join(x, d, x_part, y, d, y_part);
}

void DimLinks::Mix(const Instr& value, size_t dim) {
  mixed_[ClassOf(value, dim)] = looked_at_;
}

void DimLinks::MixAll(const Instr& value) {
  for (size_t p = 0; p < PartCount(value.shape()); ++p)
    for (size_t d = 0; d < RankOf(PartOf(value.shape(), p)); ++d)
      mixed_[ClassOf(value, d, p)] = looked_at_;
}

void DimLinks::Same(const Instr& instr, size_t i, size_t from, size_t to) {
  const Instr& operand = *instr.operand(i);
  if (!Depends(operand) || operand.shape().dim(from) == 1) return;
  for (size_t part = 0; part < PartCount(instr.shape()); ++part)
    Join(operand, from, 0, instr, to, part);
}

// The default case: an elementwise op links equal dimensions; any other op mixes all dimensions of
// its operands and results.
void DimLinks::Link(const Instr& instr) {
  looked_at_ = &instr;
  switch (instr.op()) {
    case Op::kParameter:
    case Op::kTuple:
    case Op::kGetTupleElement:
      return;
    case Op::kReshape:
    case Op::kBitcast:
      return LinkReshape(instr);
    case Op::kBroadcast: {
      const Dims& dimensions = instr.attrs<DimensionsAttrs>().dimensions;
      for (size_t i = 0; i < dimensions.size(); ++i)
        Same(instr, 0, i, static_cast<size_t>(dimensions[i]));
      return;
    }
    case Op::kTranspose: {
      const Dims& permutation = instr.attrs<DimensionsAttrs>().dimensions;
      for (size_t i = 0; i < permutation.size(); ++i)
        Same(instr, 0, static_cast<size_t>(permutation[i]), i);
      return;
    }
    case Op::kReverse:
    case Op::kSlice:
    case Op::kPad:
    case Op::kConcatenate:
    case Op::kDynamicSlice:
    case Op::kDynamicUpdateSlice:
    case Op::kSort:
      return LinkSlice(instr);
    case Op::kGather:
      return LinkGather(instr);
    case Op::kBitcastConvert:
      return LinkBits(instr);
    case Op::kDot:
      return LinkDot(instr);
    case Op::kReduce:
    case Op::kReduceWindow:
      return LinkReduce(instr);
    case Op::kWhile:
    case Op::kConditional:
    case Op::kCall:
      return LinkCalls(instr);
    default:
      break;
  }
  bool same_shape = instr.info().Is(kElementwise) || instr.op() == Op::kCopy ||
                    instr.op() == Op::kOptimizationBarrier;
  for (size_t i = 0; i < instr.operand_count(); ++i) {
    const Instr& operand = *instr.operand(i);
    if (!Depends(operand) || !operand.shape().IsArray()) continue;
    bool same =
        same_shape && instr.shape().IsArray() && operand.shape().dims() == instr.shape().dims();
    for (size_t d = 0; d < RankOf(operand.shape()); ++d) {
      if (same)
        Same(instr, i, d, d);
      else if (operand.shape().dim(d) > 1)
        Mix(operand, d);
    }
    if (!same && operand.shape().ElementCount() > 1) MixAll(instr);
  }
}

// Splits both shapes into minimal groups of dimensions with equal element counts. A group of one
// dimension on both sides preserves it; others mix.
void DimLinks::LinkReshape(const Instr& instr) {
  const Instr& operand = *instr.operand(0);
  const Dims &from = operand.shape().dims(), &to = instr.shape().dims();
  size_t i = 0, k = 0;
  while (i < from.size() || k < to.size()) {
    std::vector<size_t> left, right;
    int64_t x = 1, y = 1;
    do {
      if (k >= to.size() || (i < from.size() && x <= y)) {
        if (i >= from.size()) break;
        x *= from[i];
        if (from[i] != 1) left.push_back(i);
        ++i;
      } else {
        y *= to[k];
        if (to[k] != 1) right.push_back(k);
        ++k;
      }
    } while (x != y);
    if (left.size() == 1 && right.size() == 1) {
      Same(instr, 0, left[0], right[0]);
      continue;
    }
    if (!Depends(operand)) continue;
    for (size_t d : left) Mix(operand, d);
    for (size_t d : right) Mix(instr, d);
  }
}

// Ops that access part of a dimension mix it; dimensions that they access as a whole are preserved.
void DimLinks::LinkSlice(const Instr& instr) {
  auto is_whole = [&](size_t i, size_t d) {
    const Instr& operand = *instr.operand(i);
    switch (instr.op()) {
      case Op::kReverse:
        return !Contains(instr.attrs<DimensionsAttrs>().dimensions, d);
      case Op::kConcatenate:
        return static_cast<int64_t>(d) != instr.attrs<DimensionAttrs>().dimension;
      case Op::kSort: {
        int64_t along = instr.attrs<SortAttrs>().dimension;
        return static_cast<int64_t>(d) != (along < 0 ? along + operand.shape().rank() : along);
      }
      case Op::kPad: {
        const PadAttrs& pad = instr.attrs<PadAttrs>();
        return pad.low[d] == 0 && pad.high[d] == 0 &&
               (d >= pad.interior.size() || pad.interior[d] == 0);
      }
      case Op::kDynamicUpdateSlice:
        return instr.operand(1)->shape().dim(d) == instr.shape().dim(d);
      default:
        return operand.shape().dim(d) == instr.shape().dim(d);
    }
  };
  size_t arrays = instr.op() == Op::kConcatenate          ? instr.operand_count()
                  : instr.op() == Op::kSort               ? instr.operand_count() - instr.captures()
                  : instr.op() == Op::kDynamicUpdateSlice ? 2
                                                          : 1;
  for (size_t i = 0; i < instr.operand_count(); ++i) {
    const Instr& operand = *instr.operand(i);
    if (!Depends(operand)) continue;
    for (size_t d = 0; d < RankOf(operand.shape()); ++d) {
      if (i >= arrays) {
        Mix(operand, d);
        continue;
      }
      Same(instr, i, d, d);
      if (is_whole(i, d)) continue;
      Mix(operand, d);
      for (size_t p = 0; p < PartCount(instr.shape()); ++p)
        mixed_[ClassOf(instr, d, p)] = looked_at_;
    }
  }
}

// If widths differ, the last dimension of one of the two counts the pieces of one element.
void DimLinks::LinkBits(const Instr& instr) {
  if (!Depends(*instr.operand(0))) return;
  size_t from = instr.operand(0)->shape().dims().size(), to = instr.shape().dims().size();
  for (size_t d = 0; d < std::min(from, to); ++d) Same(instr, 0, d, d);
  if (from > to) Mix(*instr.operand(0), to);
}

// Batch dimensions of the result follow the indices, offset dimensions the operand. A dimension
// that the gather indexes or slices is mixed.
void DimLinks::LinkGather(const Instr& instr) {
  const GatherAttrs& attrs = instr.attrs<GatherAttrs>();
  const Instr &operand = *instr.operand(0), &indices = *instr.operand(1);
  std::vector<size_t> offset, batch;  // dimensions of the result
  for (size_t d = 0; d < instr.shape().dims().size(); ++d)
    (Contains(attrs.offset_dims, d) ? offset : batch).push_back(d);
  auto vector_dim = static_cast<size_t>(attrs.index_vector_dim);
  auto batch_of = [&](size_t d) { return batch[d > vector_dim ? d - 1 : d]; };
  if (Depends(indices))
    for (size_t d = 0; d < indices.shape().dims().size(); ++d) {
      if (d == vector_dim)
        Mix(indices, d);
      else
        Same(instr, 1, d, batch_of(d));
    }
  if (!Depends(operand)) return;
  size_t next = 0;
  for (size_t d = 0; d < operand.shape().dims().size(); ++d) {
    auto at = std::find(attrs.operand_batching_dims.begin(), attrs.operand_batching_dims.end(),
                        static_cast<int64_t>(d));
    if (at != attrs.operand_batching_dims.end()) {
      auto which = static_cast<size_t>(at - attrs.operand_batching_dims.begin());
      Same(instr, 0, d, batch_of(static_cast<size_t>(attrs.start_indices_batching_dims[which])));
    } else if (Contains(attrs.collapsed_slice_dims, d)) {
      Mix(operand, d);
    } else {
      Same(instr, 0, d, offset[next]);
      if (attrs.slice_sizes[d] != operand.shape().dim(d)) {
        Mix(operand, d);
        Mix(instr, offset[next]);
      }
      ++next;
    }
  }
}

// The result has batch dimensions, then free dimensions of lhs, then those of rhs.
void DimLinks::LinkDot(const Instr& instr) {
  const DotAttrs& attrs = instr.attrs<DotAttrs>();
  size_t next = attrs.lhs_batch.size();
  for (size_t side : {0, 1}) {
    const Dims& batch = side == 0 ? attrs.lhs_batch : attrs.rhs_batch;
    const Dims& contracting = side == 0 ? attrs.lhs_contracting : attrs.rhs_contracting;
    for (size_t i = 0; i < batch.size(); ++i) Same(instr, side, static_cast<size_t>(batch[i]), i);
    for (size_t d = 0; d < instr.operand(side)->shape().dims().size(); ++d) {
      if (Contains(batch, d)) continue;
      if (!Contains(contracting, d))
        Same(instr, side, d, next++);
      else if (Depends(*instr.operand(side)))
        Mix(*instr.operand(side), d);
    }
  }
}

void DimLinks::LinkReduce(const Instr& instr) {
  bool window = instr.op() == Op::kReduceWindow;
  for (size_t i = 0; i < instr.operand_count(); ++i) {
    const Instr& operand = *instr.operand(i);
    if (!Depends(operand) || operand.shape().IsScalar()) continue;
    for (size_t d = 0, to = 0; d < operand.shape().dims().size(); ++d) {
      if (window) {
        const WindowDim& w = instr.attrs<WindowAttrs>().window[d];
        Same(instr, i, d, d);
        if (w.size != 1 || w.stride != 1 || w.pad_low != 0 || w.pad_high != 0 ||
            w.base_dilation != 1)
          Mix(operand, d);
      } else if (Contains(instr.attrs<DimensionsAttrs>().dimensions, d)) {
        Mix(operand, d);
      } else {
        Same(instr, i, d, to++);
      }
    }
  }
}

// Arguments and results of a call are linked to parameters and roots of the callee.
void DimLinks::LinkCalls(const Instr& instr) {
  for (size_t c = 0; c < instr.called().size(); ++c) {
    const Computation& called = *instr.called(c);
    for (size_t p = 0; p < called.parameters().size(); ++p) {
      const Instr& argument = ArgumentOf(instr, c, p);
      if (Depends(argument)) JoinAll(argument, 0, *called.parameter(p), 0);
    }
    if (instr.op() == Op::kWhile && c == 0) {  // the condition returns a scalar
      for (size_t p = 0; p < called.parameters().size(); ++p)
        JoinAll(*called.parameter(p), 0, *instr.called(1)->parameter(p), 0);
      continue;
    }
    const Instr& root = *called.root();
    for (size_t p = 0; p < PartCount(instr.shape()); ++p) {
      if (instr.op() == Op::kWhile) {
        JoinAll(*called.parameter(p), 0, instr, p);
        if (Depends(root, p)) JoinAll(*called.parameter(p), 0, root, p);
      } else if (Depends(root, p)) {
        JoinAll(root, p, instr, p);
      }
    }
  }
}

}  // namespace tokamak
