#include "gen/shifted_sum.h"

#include <unordered_set>

namespace tokamak {
namespace {

// Whether a few steps lead from it to `from`, each element by element.
bool ComesFrom(const Instr& instr, const Instr& from) {
  constexpr size_t kLookAt = 16;
  std::unordered_set<const Instr*> seen = {&instr};
  std::vector<const Instr*> open = {&instr};
  while (!open.empty() && seen.size() < kLookAt) {
    const Instr& next = *open.back();
    open.pop_back();
    if (&next == &from) return true;
    if (!next.info().Is(kElementwise) && next.op() != Op::kReshape) continue;
    for (const Instr* operand : next.operands())
      if (seen.insert(operand).second) open.push_back(operand);
  }
  return false;
}

bool FoldsBy(const Reducer& reducer, Op op) {
  return reducer.op == op && reducer.any_order && reducer.instr->captures() == 0;
}

}  // namespace

std::optional<ShiftedSum> ShiftedSumOf(const Reducer& sum, const Reducer& greatest) {
  if (!FoldsBy(sum, Op::kAdd) || !FoldsBy(greatest, Op::kMaximum) ||
      sum.reduced != greatest.reduced)
    return std::nullopt;
  ElementType type = sum.type(0);
  if (type != ElementType::kF32 && type != ElementType::kF64) return std::nullopt;
  const Instr& exponential = *sum.instr->operand(0);
  if (exponential.op() != Op::kExp || exponential.operand(0)->op() != Op::kSubtract)
    return std::nullopt;
  const Instr &x = *exponential.operand(0)->operand(0),
              &spread = *exponential.operand(0)->operand(1);
  bool along =
      spread.op() == Op::kBroadcast && spread.attrs<DimensionsAttrs>().dimensions == sum.kept;
  if (!along || greatest.instr->operand(0) != &x || !ComesFrom(*spread.operand(0), *greatest.instr))
    return std::nullopt;
  return ShiftedSum{&exponential, &x, spread.operand(0)};
}

}  // namespace tokamak
