#include "analysis/own_condition.h"

#include <map>
#include <set>
#include <utility>

#include "ir/compare.h"

namespace tokamak {
namespace {

// Compares values of the condition with values of the body, as functions of what is carried.
class Alike {
 public:
  bool operator()(const Instr* x, const Instr* y) {
    if (x->op() == Op::kParameter || y->op() == Op::kParameter) {
      std::optional<size_t> number = ParameterNumber(x);
      return number && number == ParameterNumber(y);
    }
    auto [it, is_new] = known_.try_emplace({x, y}, false);
    if (!is_new) return it->second;
    bool alike = x->op() == y->op() && x->shape() == y->shape() &&
                 EqualAttrs(x->op(), x->attrs(), y->attrs()) &&
                 x->operand_count() == y->operand_count() && x->called().empty() &&
                 y->called().empty() && !x->info().Is(kSideEffect) && !x->info().Is(kRandom);
    for (size_t i = 0; alike && i < x->operand_count(); ++i)
      alike = (*this)(x->operand(i), y->operand(i));
    return known_[{x, y}] = alike;
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

}  // namespace

const Instr* OwnCondition(const WhileLoop& loop) {
  const Instr* any = loop.condition->root();
  if (any->op() != Op::kReduce || any->operand_count() != 2 || any->captures() > 0 ||
      !IsOr(*any->called(0)) || !IsFalse(*any->operand(1)))
    return nullptr;
  const Instr* holds = any->operand(0);
  Alike alike;
  for (size_t i = 0; i < loop.size(); ++i) {
    if (loop.IsInvariant(i)) continue;
    const Instr* next = loop.next(i);
    if (next->op() != Op::kSelect || next->operand(2) != loop.in_body(i)) return nullptr;
    // The pred of an element, or of the row that it is in.
    const Instr* chosen = next->operand(0);
    if (chosen->op() == Op::kBroadcast) {
      const Dims& dims = chosen->attrs<DimensionsAttrs>().dimensions;
      if (chosen->operand(0)->shape().dims() == holds->shape().dims() &&
          dims.size() == holds->shape().dims().size())
        chosen = chosen->operand(0);
    }
    if (chosen->shape().dims() != holds->shape().dims() || !alike(holds, chosen)) return nullptr;
  }
  return holds;
}

const Instr* ConditionOfPlace(const WhileLoop& loop, const std::vector<int64_t>& sizes) {
  const Instr* own = sizes.empty() ? nullptr : OwnCondition(loop);
  if (own == nullptr || own->shape().dims() != Dims(sizes.begin(), sizes.end())) return nullptr;
  // Axes are told apart by their sizes.
  std::set<int64_t> distinct(sizes.begin(), sizes.end());
  return distinct.size() == sizes.size() ? own : nullptr;
}

}  // namespace tokamak
