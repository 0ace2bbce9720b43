// Predicts without generating code whether the contract generator accepts a region: a dot,
// elementwise producers of its operands, and elementwise consumers of its results at the same
// indices. For reductions, chains and roots that move results it answers kUnknown.

#include <algorithm>
#include <unordered_set>

#include "analysis/index_map.h"
#include "gen/accepts_rows.h"
#include "gen/contract.h"

namespace tokamak {
namespace {

// Upper bounds on kernel values per op, per operation of its formula, and on the copies of the
// element code (panels and results); below the last one the size does not matter. Chosen: together
// they stay below kMaxNodes (element.cc), so a region that is accepted here builds.
constexpr int64_t kContractNodesOfOp = 8, kContractNodesOfFlop = 12, kContractCopies = 8,
                  kContractFewNodes = 6000;

// Whether each element of the result is computed from one element of each operand, at any index.
bool IsByElement(const Instr& instr) {
  if (instr.op() == Op::kMap) return false;
  if (instr.op() == Op::kIota || instr.info().Is(kElementwise)) return true;
  if (!instr.info().Is(kDataMovement) || instr.operand_count() != 1) return false;
  std::optional<IndexMap> map = IndexMapOf(instr, 0);
  return map && map->ReadsOneFixedElement();
}

bool IsRoot(const FusedRegion& region, const Instr* instr) {
  return std::find(region.roots.begin(), region.roots.end(), instr) != region.roots.end();
}

// Whether `instr`, a user of the results, reads them at the index where they are computed.
bool IsReadElementwise(const FusedRegion& region, const Instr& instr, const Instr& dot) {
  const Dims& dims = dot.shape().dims();
  if (instr.op() == Op::kTranspose) {
    // A transpose that moves whole rows of results.
    const Dims& order = instr.attrs<DimensionsAttrs>().dimensions;
    bool rows = !order.empty() && order.back() + 1 == static_cast<int64_t>(order.size());
    return rows && IsRoot(region, &instr) && instr.operand(0)->shape().dims() == dims;
  }
  return instr.info().Is(kElementwise) && instr.op() != Op::kMap && instr.shape().dims() == dims;
}

}  // namespace

Accepts AcceptsContract(const FusedRegion& region, const Machine& machine) {
  const Instr* dot = nullptr;
  int64_t nodes = 0;
  std::unordered_set<const Instr*> behind;
  for (const Instr* instr : region.instrs) {
    nodes += kContractNodesOfOp + kContractNodesOfFlop * instr->info().flops_per_element;
    if (instr->op() == Op::kDot) {
      if (dot != nullptr || !CanUseContract(*instr, machine)) return Accepts::kUnknown;
      dot = instr;
      behind.insert(instr);
      continue;
    }
    if (!instr->shape().IsArray() || !IsByElement(*instr)) return Accepts::kUnknown;
    bool follows = std::any_of(instr->operands().begin(), instr->operands().end(),
                               [&](const Instr* operand) { return behind.contains(operand); });
    if (!follows) continue;
    behind.insert(instr);
    if (!IsReadElementwise(region, *instr, *dot)) return Accepts::kUnknown;
  }
  if (dot == nullptr || nodes * kContractCopies > kContractFewNodes) return Accepts::kUnknown;
  // Other users of a transposed root would need it at another index.
  for (const Instr* instr : region.instrs)
    for (const Instr* operand : instr->operands())
      if (operand->op() == Op::kTranspose && behind.contains(operand)) return Accepts::kUnknown;
  bool same = std::all_of(region.roots.begin(), region.roots.end(), [&](const Instr* root) {
    return root->shape().ElementCount() == dot->shape().ElementCount();
  });
  return same ? Accepts::kYes : Accepts::kNo;
}

}  // namespace tokamak
