#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fusion/cut.h"
#include "fusion/plan.h"
#include "ir/ir.h"
#include "rewrite/pipeline.h"
#include "support/result.h"

// A serializable plan: everything a compilation needs to build the same kernels without a search.
// The JSON form is the only exchange format for users, tuners and caches.

namespace tokamak {

struct PlanData {
  // A kernel, as the names of its instructions and of those among them that it stores (roots).
  struct Kernel {
    std::string generator;  // informative only: BuildCut chooses the generator again
    std::vector<std::string> instrs, roots;
  };
  // A computation that is planned separately: the entry, a loop body or a branch.
  struct Part {
    std::string computation;
    std::vector<Kernel> kernels;
    std::vector<std::vector<int>> launch_groups;  // kernels, by number, that share one launch
  };

  std::string target;   // "host", "h200"
  std::string program;  // digest of the structure of the planned module
  Pipeline passes;      // the passes that ran before planning
  std::vector<Pass> skip_passes;
  FusionMode fusion = FusionMode::kSearch;  // the mode it was planned with; passes depend on it
  bool strict = false;
  std::vector<Part> parts;
};

// A digest of a module's structure. A plan applies only to a module with the same digest.
std::string PlanDigest(const Module& module);

// Adds the cuts to the plan, with instructions by name.
void AddParts(PlanData& plan, const Module& module, const Cuts& cuts);
// The inverse of AddParts. Returns TK6107 if the plan belongs to another program.
Result<Cuts> CutsOf(const PlanData& plan, const Module& module);

std::string ToJson(const PlanData& plan);
// Returns TK6107, with the name `file`, if the text is not a plan.
Result<PlanData> PlanFromJson(std::string_view text, const std::string& file);

}  // namespace tokamak
