#include "rewrite/normal/needs.h"

#include <numeric>

#include "analysis/effects.h"

namespace tokamak {
namespace {

using Set = std::set<size_t>;

Set AllUpTo(size_t count) {
  Set all;
  for (size_t i = 0; i < count; ++i) all.insert(i);
  return all;
}

class LiveElementsFinder {
 public:
  LiveElementsFinder(const Module& module, LoopNeeds& needs) : effects_(module), needs_(needs) {}

  // The parameters that these elements of the root (or any side effect) depend on.
  Set Visit(const Computation& computation, const Set& root_elements) {
    InstrMap<bool> live(computation, false);
    std::unordered_map<const Instr*, Set> used;  // elements of a while that are extracted
    const Instr* root = computation.root();
    if (root->op() == Op::kTuple) {
      for (size_t i : root_elements) live[root->operand(i)] = true;
    } else {
      live[root] = true;
    }
    std::vector<Instr*> order = computation.PostOrder();
    Set parameters;
    for (size_t i = order.size(); i-- > 0;) {
      const Instr* instr = order[i];
      if (effects_.Of(*instr)) live[instr] = true;
      if (!live[instr]) continue;
      if (instr->op() == Op::kParameter) {
        parameters.insert(static_cast<size_t>(instr->attrs<ParameterAttrs>().number));
      }
      for (size_t operand : LiveOperands(*instr, used[instr])) live[instr->operand(operand)] = true;
      if (instr->op() == Op::kGetTupleElement)
        used[instr->operand(0)].insert(static_cast<size_t>(instr->attrs<TupleIndexAttrs>().index));
    }
    return parameters;
  }

 private:
  Set LiveOperands(const Instr& instr, const Set& used) {
    if (instr.op() == Op::kConditional) {
      for (const Computation* branch : instr.called())
        Visit(*branch, AllUpTo(branch->root()->operand_count()));
    }
    if (instr.op() != Op::kWhile) return AllUpTo(instr.operand_count());
    Set needed = instr.shape().IsTuple() ? used : Set{0};
    Set by_condition = Visit(*instr.called(0), {});
    needed.insert(by_condition.begin(), by_condition.end());
    for (size_t before = SIZE_MAX; before != needed.size();) {
      before = needed.size();
      Set by_body = Visit(*instr.called(1), needed);
      needed.insert(by_body.begin(), by_body.end());
    }
    needs_[&instr] = needed;
    return needed;
  }

  Effects effects_;
  LoopNeeds& needs_;
};

}  // namespace

LoopNeeds FindLoopNeeds(const Module& module) {
  LoopNeeds needs;
  if (const Computation* entry = module.entry())
    LiveElementsFinder(module, needs).Visit(*entry, AllUpTo(entry->root()->operand_count()));
  return needs;
}

}  // namespace tokamak
