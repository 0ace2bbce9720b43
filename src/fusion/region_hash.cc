#include "fusion/region_hash.h"

#include <unordered_map>

#include "ir/compare.h"
#include "support/hash.h"

namespace tokamak {

uint64_t StructuralHash(const Region& region) {
  Hasher hasher;
  std::unordered_map<const Instr*, size_t> numbers;
  for (const Instr* input : region.inputs) {
    numbers.emplace(input, numbers.size());
    hasher.Add(input->shape().Hash());
  }
  for (const Instr* instr : region.instrs) {
    hasher.Add(instr->op());
    hasher.Add(instr->shape().Hash());
    hasher.Add(HashAttrs(instr->op(), instr->attrs()));
    for (const Instr* operand : instr->operands()) {
      auto it = numbers.find(operand);
      // An immediate constant, or what an update is written into.
      bool known = it != numbers.end();
      hasher.Add(known ? it->second : HashAttrs(operand->op(), operand->attrs()));
    }
    for (const Computation* callee : instr->called()) hasher.Add(BodyHash(*callee));
    numbers.emplace(instr, numbers.size());
  }
  for (const Instr* root : region.roots) hasher.Add(numbers[root]);
  return hasher.digest();
}

}  // namespace tokamak
