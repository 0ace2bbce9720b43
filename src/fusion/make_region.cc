#include "fusion/make_region.h"

#include <algorithm>

#include "explain/decision.h"
#include "fusion/instr_predicates.h"

namespace tokamak {

FusedRegion MakeRegion(const std::vector<const Instr*>& instrs,
                       const std::vector<const Instr*>& roots, const InstrMap<size_t>& positions) {
  FusedRegion done;
  done.computation = instrs[0]->parent();
  done.instrs = instrs;
  // A get-tuple-element of a tuple from outside the region is an input.
  std::erase_if(done.instrs, [&](const Instr* instr) {
    return instr->op() == Op::kGetTupleElement &&
           std::find(instrs.begin(), instrs.end(), instr->operand(0)) == instrs.end();
  });
  auto before = [&](const Instr* x, const Instr* y) { return positions[x] < positions[y]; };
  std::sort(done.instrs.begin(), done.instrs.end(), before);
  done.roots = roots;
  std::sort(done.roots.begin(), done.roots.end(), before);
  done.inputs = InputsOf(done.instrs);
  // An update does not read the array that it updates: that is not an input.
  if (!std::any_of(done.instrs.begin(), done.instrs.end(),
                   [](const Instr* instr) { return IsPartialUpdate(*instr); }))
    return done;
  std::erase_if(done.inputs, [&](const Instr* input) {
    for (const Instr* instr : done.instrs)
      for (size_t i = 0; i < instr->operand_count(); ++i)
        if (instr->operand(i) == input && !(IsPartialUpdate(*instr) && i == 0)) return false;
    return true;
  });
  return done;
}

std::string KernelNameOf(const FusedRegion& region) {
  std::string name;
  for (char c : LabelOf(*region.roots[0])) name += isalnum(c) != 0 ? c : '_';
  return name;
}

}  // namespace tokamak
