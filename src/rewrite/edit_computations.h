#pragma once

#include "ir/ir.h"
#include "rewrite/pass.h"

namespace tokamak {

// Calls edit(computation), which returns whether it changed anything, for each computation that
// exists at the start. Then restores topological order in the changed ones.
template <typename Edit>
Changed EditComputations(Module& module, Edit&& edit) {
  Changed changed = Changed::kNo;
  for (size_t i = 0, count = module.computations().size(); i < count; ++i) {
    Computation& computation = *module.computations()[i];
    if (!edit(computation)) continue;
    computation.PutInOrder();
    changed = Changed::kYes;
  }
  return changed;
}

}  // namespace tokamak
