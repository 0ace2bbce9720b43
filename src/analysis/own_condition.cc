#include "analysis/own_condition.h"

#include <map>
#include <set>
#include <utility>

#include "ir/compare.h"

namespace tokamak {
namespace {

// Whether a value of the condition and one of the body are the same function of the carried values.
class EqualValues {
 public:
  bool operator()(const Instr* x, const Instr* y) {
    if (x->op() == Op::kParameter || y->op() == Op::kParameter) {
      std::optional<size_t> number = ParameterNumber(x);
      return number && number == ParameterNumber(y);
    }
    auto [it, is_new] = known_.try_emplace({x, y}, false);
    if (!is_new) return it->second;
    bool equal = x->op() == y->op() && x->shape() == y->shape() &&
                 EqualAttrs(x->op(), x->attrs(), y->attrs()) &&
                 x->operand_count() == y->operand_count() && x->called().empty() &&
                 y->called().empty() && !x->info().Is(kSideEffect) && !x->info().Is(kRandom);
    for (size_t i = 0; equal && i < x->operand_count(); ++i)
      equal = (*this)(x->operand(i), y->operand(i));
    return known_[{x, y}] = equal;
  }

 private:
  std::map<std::pair<const Instr*, const Instr*>, bool> known_;
};

bool IsOr(const Computation& body) {
  const Instr* root = body.root();
  return root->op() == Op::kOr && root->operand(0)->op() == Op::kParameter &&
         root->operand(1)->op() == Op::kParameter && root->operand(0) != root->operand(1);
}

bool IsFalse(const Instr& value) {
  return value.op() == Op::kConstant && value.shape().IsScalar() &&
         value.attrs<ConstantAttrs>().literal.IntAt(0) == 0;
}

bool IsAny(const Instr& any) {
  return any.op() == Op::kReduce && any.operand_count() == 2 && any.captures() == 0 &&
         IsOr(*any.called(0)) && IsFalse(*any.operand(1));
}

Dims LongDims(const Shape& shape) {
  Dims dims = shape.dims();
  std::erase(dims, 1);
  return dims;
}

// A counter that only counts and whose final value is unused. It may keep counting where the others
// stay: the result does not depend on it.
bool IsOwnCount(const WhileLoop& loop, size_t i) {
  const Instr *now = loop.in_body(i), *next = loop.next(i);
  if (!now->shape().IsScalar() || next->op() != Op::kAdd || next->operand(0) != now ||
      next->operand(1)->op() != Op::kConstant || now->users().size() != 1 ||
      loop.instr->parent()->root() == loop.instr)
    return false;
  for (const Instr* user : loop.instr->users())
    if (user->op() != Op::kGetTupleElement ||
        user->attrs<TupleIndexAttrs>().index == static_cast<int64_t>(i))
      return false;
  return true;
}

// The symbolic value of a body expression where `holds` is false: false, true, the old carried
// value (self), or anything else.
class Ended {
 public:
  enum Kind : uint8_t { kFalse, kTrue, kSelf, kOther };

  Ended(const Instr& holds, const Instr& self, EqualValues& equal)
      : holds_(holds), self_(self), equal_(equal) {}

  Kind Of(const Instr& value, int depth = 0) {
    constexpr int kDeep = 4;  // nested logic ops that passes leave of a select of preds
    if (&value == &self_) return kSelf;
    if (IsHolds(value)) return kFalse;
    if (depth > kDeep) return kOther;
    switch (value.op()) {
      case Op::kSelect: {
        Kind chosen = Of(*value.operand(0), depth + 1);
        if (chosen != kFalse && chosen != kTrue) return kOther;
        return Of(*value.operand(chosen == kTrue ? 1 : 2), depth + 1);
      }
      case Op::kNot: {
        Kind of = Of(*value.operand(0), depth + 1);
        return of == kFalse ? kTrue : of == kTrue ? kFalse : kOther;
      }
      case Op::kAnd:
      case Op::kOr: {
        if (value.shape().type() != ElementType::kPred) return kOther;
        Kind decides = value.op() == Op::kAnd ? kFalse : kTrue;
        Kind leaves = value.op() == Op::kAnd ? kTrue : kFalse;
        Kind x = Of(*value.operand(0), depth + 1), y = Of(*value.operand(1), depth + 1);
        if (x == decides || y == decides) return decides;
        return x == leaves || x == y ? y : y == leaves ? x : kOther;
      }
      default:
        return kOther;
    }
  }

 private:
  // The predicate of the element, or of the row that contains it.
  bool IsHolds(const Instr& value) {
    const Instr* chosen = &value;
    const Dims& dims = holds_.shape().dims();
    while (chosen->op() == Op::kReshape && chosen->shape().dims() != dims &&
           LongDims(chosen->shape()) == LongDims(chosen->operand(0)->shape()))
      chosen = chosen->operand(0);
    if (chosen->op() == Op::kBroadcast && chosen->operand(0)->shape().dims() == dims &&
        chosen->attrs<DimensionsAttrs>().dimensions.size() == dims.size())
      chosen = chosen->operand(0);
    return chosen->shape().IsArray() && chosen->shape().dims() == dims &&
           chosen->shape().type() == ElementType::kPred && equal_(&holds_, chosen);
  }

  const Instr &holds_, &self_;
  EqualValues& equal_;
};

}  // namespace

const Instr* AnyOfCondition(const WhileLoop& loop) {
  const Instr* root = loop.condition->root();
  if (IsAny(*root)) return root;
  return root->op() == Op::kAnd && IsAny(*root->operand(0)) ? root->operand(0) : nullptr;
}

const Instr* CommonCondition(const WhileLoop& loop) {
  const Instr* root = loop.condition->root();
  return IsAny(*root) ? nullptr : root->operand(1);
}

const Instr* OwnCondition(const WhileLoop& loop) {
  const Instr* any = AnyOfCondition(loop);
  if (any == nullptr) return nullptr;
  const Instr* holds = any->operand(0);
  EqualValues equal;
  for (size_t i = 0; i < loop.size(); ++i) {
    if (loop.IsInvariant(i) || IsOwnCount(loop, i)) continue;
    if (Ended(*holds, *loop.in_body(i), equal).Of(*loop.next(i)) != Ended::kSelf) return nullptr;
  }
  return holds;
}

const Instr* ConditionOfPoint(const WhileLoop& loop, const std::vector<int64_t>& sizes) {
  const Instr* own = sizes.empty() ? nullptr : OwnCondition(loop);
  if (own == nullptr || own->shape().dims() != Dims(sizes.begin(), sizes.end())) return nullptr;
  // Axes are matched by size, so sizes must be distinct.
  std::set<int64_t> distinct(sizes.begin(), sizes.end());
  return distinct.size() == sizes.size() ? own : nullptr;
}

}  // namespace tokamak
