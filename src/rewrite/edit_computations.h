#pragma once

#include "ir/ir.h"
#include "rewrite/pass.h"

namespace tokamak {

// Calls edit(computation), which says whether it changed it, for the computations that are there at
// the beginning, and puts those that changed in order.
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
