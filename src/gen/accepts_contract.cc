// The contract generator takes a product, whatever makes its operands element by element, and what
// follows from its results at the same places. Whether that is so is seen without code; of folds,
// chains and what moves results it is left open.

#include <algorithm>
#include <unordered_set>

#include "gen/accepts_rows.h"
#include "gen/contract.h"

namespace tokamak {
namespace {

// More than the values that the emitter makes for an op and each operation of its formula, at all
// the places where panels and results are made; and how many are no matter.
constexpr int64_t kContractNodesOfOp = 8, kContractNodesOfFlop = 12, kContractPlaces = 8,
                  kContractFewNodes = 6000;

// Elements of it are made of elements of its operands, wherever they are needed.
bool IsByElement(const Instr& instr) {
  switch (instr.op()) {
    case Op::kMap:
      return false;
    case Op::kIota:
    case Op::kBroadcast:
    case Op::kReshape:
    case Op::kTranspose:
    case Op::kSlice:
    case Op::kCopy:
      return true;
    default:
      return instr.info().Is(kElementwise);
  }
}

bool IsRoot(const Region& region, const Instr* instr) {
  return std::find(region.roots.begin(), region.roots.end(), instr) != region.roots.end();
}

// Whether results are needed just where they are made: `instr` follows from them.
bool IsAtItsPlace(const Region& region, const Instr& instr, const Instr& dot) {
  const Dims& dims = dot.shape().dims();
  if (instr.op() == Op::kTranspose) {
    // Whole rows of results are written elsewhere.
    const Dims& order = instr.attrs<DimensionsAttrs>().dimensions;
    bool rows = !order.empty() && order.back() + 1 == static_cast<int64_t>(order.size());
    return rows && IsRoot(region, &instr) && instr.operand(0)->shape().dims() == dims;
  }
  return instr.info().Is(kElementwise) && instr.op() != Op::kMap && instr.shape().dims() == dims;
}

}  // namespace

Accepts AcceptsContract(const Region& region, const Machine& machine) {
  const Instr* dot = nullptr;
  int64_t nodes = 0;
  std::unordered_set<const Instr*> behind;
  for (const Instr* instr : region.instrs) {
    nodes += kContractNodesOfOp + kContractNodesOfFlop * instr->info().flops_per_element;
    if (instr->op() == Op::kDot) {
      if (dot != nullptr || !IsForContract(*instr, machine)) return Accepts::kAskByBuilding;
      dot = instr;
      behind.insert(instr);
      continue;
    }
    if (!instr->shape().IsArray() || !IsByElement(*instr)) return Accepts::kAskByBuilding;
    bool follows = std::any_of(instr->operands().begin(), instr->operands().end(),
                               [&](const Instr* operand) { return behind.contains(operand); });
    if (!follows) continue;
    behind.insert(instr);
    if (!IsAtItsPlace(region, *instr, *dot)) return Accepts::kAskByBuilding;
  }
  if (dot == nullptr || nodes * kContractPlaces > kContractFewNodes) return Accepts::kAskByBuilding;
  // What others need of a root that is moved is made at another place.
  for (const Instr* instr : region.instrs)
    for (const Instr* operand : instr->operands())
      if (operand->op() == Op::kTranspose && behind.contains(operand))
        return Accepts::kAskByBuilding;
  bool same = std::all_of(region.roots.begin(), region.roots.end(), [&](const Instr* root) {
    return root->shape().ElementCount() == dot->shape().ElementCount();
  });
  return same ? Accepts::kYes : Accepts::kNo;
}

}  // namespace tokamak
