#include "gen/online_sum_exp.h"

#include <unordered_set>

namespace tokamak {
namespace {

// Whether `instr` is computed elementwise from `from` in a few steps.
bool ComesFrom(const Instr& instr, const Instr& from) {
  // Instructions visited. Chosen: a softmax has fewer between its reductions; it bounds the search.
  constexpr size_t kMaxBetween = 16;
  std::unordered_set<const Instr*> seen = {&instr};
  std::vector<const Instr*> open = {&instr};
  while (!open.empty() && seen.size() < kMaxBetween) {
    const Instr& next = *open.back();
    open.pop_back();
    if (&next == &from) return true;
    if (!next.info().Is(kElementwise) && next.op() != Op::kReshape) continue;
    for (const Instr* operand : next.operands())
      if (seen.insert(operand).second) open.push_back(operand);
  }
  return false;
}

bool ReducesBy(const Reducer& reducer, Op op) {
  return reducer.ops == std::vector{op} && reducer.can_reassociate &&
         reducer.instr->captures() == 0;
}

}  // namespace

std::optional<OnlineSumExp> OnlineSumExpOf(const Reducer& sum, const Reducer& max_reducer) {
  if (!ReducesBy(sum, Op::kAdd) || !ReducesBy(max_reducer, Op::kMaximum) ||
      sum.reduced_dims != max_reducer.reduced_dims)
    return std::nullopt;
  ElementType type = sum.type(0);
  if (type != ElementType::kF32 && type != ElementType::kF64) return std::nullopt;
  const Instr& exponential = *sum.instr->operand(0);
  if (exponential.op() != Op::kExp || exponential.operand(0)->op() != Op::kSubtract)
    return std::nullopt;
  const Instr &x = *exponential.operand(0)->operand(0),
              &broadcast = *exponential.operand(0)->operand(1);
  bool along = broadcast.op() == Op::kBroadcast &&
               broadcast.attrs<DimensionsAttrs>().dimensions == sum.kept_dims;
  if (!along || max_reducer.instr->operand(0) != &x ||
      !ComesFrom(*broadcast.operand(0), *max_reducer.instr))
    return std::nullopt;
  return OnlineSumExp{&exponential, &x, broadcast.operand(0)};
}

}  // namespace tokamak
