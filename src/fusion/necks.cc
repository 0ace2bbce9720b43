#include "fusion/necks.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace tokamak {

std::vector<const Instr*> NecksBehind(const Region& region, const Instr& input) {
  std::unordered_map<const Instr*, size_t> places;
  for (size_t i = 0; i < region.instrs.size(); ++i) places.emplace(region.instrs[i], i);
  // The last place so far that uses something behind the input.
  size_t last = 0;
  std::unordered_set<const Instr*> behind;
  auto reach = [&](const Instr& instr) {
    behind.insert(&instr);
    for (const Instr* user : instr.users())
      if (auto it = places.find(user); it != places.end()) last = std::max(last, it->second);
  };
  reach(input);
  std::vector<const Instr*> necks;
  for (size_t i = 0; i < region.instrs.size(); ++i) {
    const Instr* instr = region.instrs[i];
    if (std::none_of(instr->operands().begin(), instr->operands().end(),
                     [&](const Instr* operand) { return behind.contains(operand); }))
      continue;
    if (std::find(region.roots.begin(), region.roots.end(), instr) != region.roots.end()) break;
    if (i >= last) necks.push_back(instr);
    reach(*instr);
  }
  return necks;
}

}  // namespace tokamak
