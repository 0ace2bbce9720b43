#pragma once

#include <unordered_map>
#include <vector>

#include "fusion/cut.h"
#include "ir/ir.h"
#include "rewrite/pass.h"

namespace tokamak {

// Fusions that somebody made of a module: the passes of the paper's compiler, or XLA. The planner
// takes them as they are. Their bodies were put in their place (inline-fusions).
class GivenFusions {
 public:
  // Both must outlive it, and the module must not have changed since.
  GivenFusions(const Module& module, const FusionTags& tags);

  // The instructions of one fusion are one region, of a horizontal one several that are a pack;
  // every other that a kernel has to make is a region of its own.
  Cut CutOf(const Computation& computation, const Machine& machine) const;

 private:
  FusionTag TagOf(const Instr& instr) const;

  std::unordered_map<const Computation*, const std::vector<FusionTag>*> tags_;
};

}  // namespace tokamak
