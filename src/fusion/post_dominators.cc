#include "fusion/post_dominators.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace tokamak {

std::vector<const Instr*> PostDominatorsOf(const FusedRegion& region, const Instr& input) {
  std::unordered_map<const Instr*, size_t> positions;
  for (size_t i = 0; i < region.instrs.size(); ++i) positions.emplace(region.instrs[i], i);
  // The last position so far that uses a value derived from the input.
  size_t last = 0;
  std::unordered_set<const Instr*> behind;
  auto reach = [&](const Instr& instr) {
    behind.insert(&instr);
    for (const Instr* user : instr.users())
      if (auto it = positions.find(user); it != positions.end()) last = std::max(last, it->second);
  };
  reach(input);
  std::vector<const Instr*> post_dominators;
  for (size_t i = 0; i < region.instrs.size(); ++i) {
    const Instr* instr = region.instrs[i];
    if (std::none_of(instr->operands().begin(), instr->operands().end(),
                     [&](const Instr* operand) { return behind.contains(operand); }))
      continue;
    if (std::find(region.roots.begin(), region.roots.end(), instr) != region.roots.end()) break;
    if (i >= last) post_dominators.push_back(instr);
    reach(*instr);
  }
  return post_dominators;
}

}  // namespace tokamak
