#include "gen/contract_regions.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <vector>

#include "gen/contract.h"
#include "gen/roots.h"

namespace tokamak {
namespace {

// The instructions of the region that the values depend on, not following the operands of
// `without`.
std::unordered_set<const Instr*> DependenciesOf(const FusedRegion& region,
                                                std::vector<const Instr*> open,
                                                const Instr* without) {
  std::unordered_set<const Instr*> inside(region.instrs.begin(), region.instrs.end()), found;
  while (!open.empty()) {
    const Instr* instr = open.back();
    open.pop_back();
    if (instr == without || !inside.contains(instr) || !found.insert(instr).second) continue;
    for (const Instr* operand : instr->operands()) open.push_back(operand);
  }
  return found;
}

FusedRegion SubRegion(const FusedRegion& region, const std::unordered_set<const Instr*>& which) {
  FusedRegion part;
  part.computation = region.computation;
  for (const Instr* instr : region.instrs)
    if (which.contains(instr)) part.instrs.push_back(instr);
  for (const Instr* root : region.roots)
    if (which.contains(root)) part.roots.push_back(root);
  part.inputs = InputsOf(part.instrs);
  return part;
}

// The number of equal column ranges that roots combine, such as the gates of a recurrent cell: 1 if
// roots have as many elements as the dot, 0 if they have another size.
int64_t ColumnGroups(const ContractRegions& parts) {
  // Column groups. Chosen: an LSTM has 4.
  constexpr int64_t kMaxColumnGroups = 8;
  std::optional<int64_t> count;
  int64_t elements = parts.dot->shape().ElementCount();
  for (const Instr* root : parts.rest.roots) {
    int64_t own = root->shape().IsArray() ? DomainOf(*root).ElementCount() : 0;
    if (own == 0) return 0;
    int64_t of_root = elements / own;
    bool even = of_root * own == elements;
    if (!even || of_root > kMaxColumnGroups || count.value_or(of_root) != of_root) return 0;
    count = of_root;
  }
  return parts.IsChain() && count != 1 ? 0 : count.value_or(0);
}

}  // namespace

bool HasReduce(const FusedRegion& region) {
  return std::any_of(region.instrs.begin(), region.instrs.end(),
                     [](const Instr* instr) { return instr->op() == Op::kReduce; });
}

std::string FindContractRegions(const FusedRegion& region, const Machine& machine,
                                ContractRegions& parts) {
  for (const Instr* instr : region.instrs)
    if (instr->op() == Op::kDot) parts.dot = instr;
  if (parts.dot == nullptr) return "it has no contraction";
  const Instr* left = parts.dot->operand(0);
  parts.rest = region;
  FusedRegion rows = SubRegion(region, DependenciesOf(region, {left}, nullptr));
  if (HasReduce(rows)) {
    std::vector<const Instr*> results;
    for (const Instr* root : region.roots)
      if (std::find(rows.roots.begin(), rows.roots.end(), root) == rows.roots.end())
        results.push_back(root);
    parts.rows = std::move(rows);
    parts.rest = SubRegion(region, DependenciesOf(region, std::move(results), left));
    parts.left_is_root =
        std::find(parts.rows.roots.begin(), parts.rows.roots.end(), left) != parts.rows.roots.end();
    if (!parts.left_is_root) parts.rows.roots.push_back(left);
  }
  for (const Instr* instr : region.instrs) {
    if (instr->op() != Op::kDot || instr == parts.dot) continue;
    if (parts.inner != nullptr || !parts.IsChain() || !CanUseContract(*instr, machine) ||
        std::find(parts.rest.instrs.begin(), parts.rest.instrs.end(), instr) !=
            parts.rest.instrs.end())
      return "it has a second contraction";
    parts.inner = instr;
  }
  if (!HasReduce(parts.rest)) parts.columns = ColumnGroups(parts);
  return parts.columns > 0 ? "" : "a root has another number of elements than the contraction";
}

}  // namespace tokamak
