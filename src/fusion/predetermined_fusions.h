#pragma once

#include <unordered_map>
#include <vector>

#include "fusion/cut.h"
#include "ir/ir.h"
#include "rewrite/pass.h"

namespace tokamak {

// Predetermined fusions of a module: by Tokamak's version of XLA's fusion passes (2023, arXiv
// 2301.13062) or by XLA itself (an HLO dump). The planner uses them unchanged. The pass
// inline-fusions has replaced each fusion by its body and tagged the instructions.
class PredeterminedFusions {
 public:
  // The module and the tags must outlive it and must not change.
  PredeterminedFusions(const Module& module, const FusionTags& tags);

  // The instructions of a fusion are one region. Those of a horizontal fusion are several regions
  // that share a launch. Every other instruction that needs a kernel is its own region.
  Cut CutOf(const Computation& computation, const Machine& machine) const;

 private:
  FusionTag TagOf(const Instr& instr) const;

  std::unordered_map<const Computation*, const std::vector<FusionTag>*> tags_;
};

}  // namespace tokamak
