#include "analysis/running_computations.h"

#include <unordered_set>

namespace tokamak {

std::vector<Computation*> RunningComputations(const Module& module) {
  std::vector<Computation*> running;
  std::unordered_set<const Computation*> seen;
  auto add = [&](Computation* computation) {
    if (seen.insert(computation).second) running.push_back(computation);
  };
  if (module.entry() != nullptr) add(module.entry());
  for (size_t i = 0; i < running.size(); ++i) {
    for (const Instr* caller : running[i]->Callers()) {
      if (!RunsComputations(caller->op())) continue;
      for (Computation* callee : caller->called()) add(callee);
    }
  }
  return running;
}

}  // namespace tokamak
