// Builds the dimension classes of a loop body in three steps:
//
//   1. Depends   which values depend on a followed array: forward data flow, to a fixed point
//   2. JoinAll   parameters of body and condition, and next value of a carried array: one class
//   3. Link      each instruction joins or mixes the dimensions of its operands and results, by
//                their index maps
//
// Only operands that depend on a followed array link anything: all other values are available at
// every point. An op without an index map mixes all dimensions that it changes, which is always
// safe. Classes are a union-find with path halving; `mixed_` is valid at the root of a class only.
// Step 1 is linear per sweep, the others almost linear.

#include "analysis/dim_links.h"

#include <algorithm>
#include <optional>

#include "analysis/index_map.h"
#include "analysis/own_condition.h"

namespace tokamak {
namespace {

size_t PartCount(const Shape& shape) {
  return shape.IsTuple() ? shape.elements().size() : 1;
}
const Shape& PartOf(const Shape& shape, size_t part) {
  return shape.IsTuple() ? shape.elements()[part] : shape;
}
size_t RankOf(const Shape& shape) {
  return shape.IsArray() ? shape.dims().size() : 0;
}

// A point cannot compute one element of these ops alone, whatever their index maps are.
bool IsComputedWhole(Op op) {
  return op == Op::kScatter || op == Op::kScan || op == Op::kConvolution;
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
    if (RunsComputations(instr->op()))
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
    if (RunsComputations(instr->op())) {
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

void DimLinks::MixResult(const Instr& instr, size_t dim) {
  for (size_t part = 0; part < PartCount(instr.shape()); ++part)
    mixed_[ClassOf(instr, dim, part)] = looked_at_;
}

void DimLinks::Link(const Instr& instr) {
  looked_at_ = &instr;
  if (instr.op() == Op::kTuple || instr.op() == Op::kGetTupleElement) return;
  if (RunsComputations(instr.op())) return LinkCalls(instr);
  for (size_t i = 0; i < instr.operand_count(); ++i)
    if (instr.operand(i)->shape().IsArray() && Depends(*instr.operand(i))) LinkOperand(instr, i);
}

// A dimension that is read at the index of a dimension of the result is joined with it. Both are
// mixed if it is read at other indices, too.
void DimLinks::LinkOperand(const Instr& instr, size_t i) {
  const Instr& operand = *instr.operand(i);
  const Dims& dims = operand.shape().dims();
  std::optional<IndexMap> map;
  if (!IsComputedWhole(instr.op())) map = IndexMapOf(instr, i);
  if (!map) {
    for (size_t d = 0; d < dims.size(); ++d)
      if (dims[d] > 1) Mix(operand, d);
    if (operand.shape().ElementCount() > 1) MixAll(instr);
    return;
  }
  for (size_t d = 0; d < dims.size(); ++d) {
    bool same = map->SameDim(d, dims[d]).has_value();
    for (const IndexTerm& term : map->TermsOf(map->dims[d])) {
      if (term.variable >= map->result_rank) continue;
      for (size_t part = 0; dims[d] > 1 && part < PartCount(instr.shape()); ++part)
        Join(operand, d, 0, instr, term.variable, part);
      if (!same) MixResult(instr, term.variable);
    }
    if (!same) Mix(operand, d);
  }
  for (const IndexExpr& guard : map->guards)
    for (const IndexTerm& term : map->TermsOf(guard))
      if (term.variable < map->result_rank && !map->AlwaysHolds(guard))
        MixResult(instr, term.variable);
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
