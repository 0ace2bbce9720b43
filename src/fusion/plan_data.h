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

// A plan as data: all that a compilation needs to make the same kernels again without a search.
// Written and read as JSON; users, tuners and caches exchange plans in this form and in no other.

namespace tokamak {

struct PlanData {
  // A kernel: instructions by name, those whose values are stored among them.
  struct Kernel {
    std::string generator;  // for readers: Build finds it again
    std::vector<std::string> instrs, roots;
  };
  // A computation that runs by itself: the entry, bodies of loops and branches.
  struct Part {
    std::string computation;
    std::vector<Kernel> kernels;
    std::vector<std::vector<int>> packs;  // kernels, by number, that run as one launch
  };

  std::string target;   // "host", "h200"
  std::string program;  // of the module that was planned: a digest of its structure
  Pipeline passes;      // that made it
  std::vector<Pass> skip_passes;
  FusionMode fusion = FusionMode::kSearch;  // that planned it: some passes ask
  bool strict = false;
  std::vector<Part> parts;
};

// A digest of a module's structure that plans are bound to.
std::string PlanDigest(const Module& module);

// Fills in the parts: the cuts with instructions by name.
void AddParts(PlanData& plan, const Module& module, const Cuts& cuts);
// The other way. TK6107 where the plan is of another program.
Result<Cuts> CutsOf(const PlanData& plan, const Module& module);

std::string ToJson(const PlanData& plan);
// TK6107 when the text is no plan: `file` is named.
Result<PlanData> PlanFromJson(std::string_view text, const std::string& file);

}  // namespace tokamak
