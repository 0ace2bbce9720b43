#include "fusion/region_hash.h"

#include "ir/compare.h"
#include "support/hash.h"

namespace tokamak {

const RegionHasher::Own& RegionHasher::OwnOf(const Instr& instr) {
  Own& own = own_[&instr];
  if (own.known) return own;
  Hasher hasher;
  own.shape = instr.shape().Hash();
  hasher.Add(instr.op());
  hasher.Add(own.shape);
  hasher.Add(HashAttrs(instr.op(), instr.attrs()));
  for (const Computation* callee : instr.called()) hasher.Add(BodyHash(*callee));
  own.all = hasher.digest();
  own.known = true;
  return own;
}

uint64_t RegionHasher::Of(const Region& region) {
  Hasher hasher;
  numbers_.Begin();
  for (const Instr* input : region.inputs) {
    numbers_.Of(*input);
    hasher.Add(OwnOf(*input).shape);
  }
  for (const Instr* instr : region.instrs) {
    hasher.Add(OwnOf(*instr).all);
    for (const Instr* operand : instr->operands()) {
      // What is not known is an immediate constant, or what an update is written into.
      bool known = numbers_.Has(*operand);
      hasher.Add(known ? uint64_t{numbers_.Of(*operand)} : OwnOf(*operand).all);
    }
    numbers_.Of(*instr);
  }
  for (const Instr* root : region.roots) hasher.Add(numbers_.Of(*root));
  return hasher.digest();
}

}  // namespace tokamak
