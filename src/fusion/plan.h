#pragma once

// Fusion planning: which instructions of a computation run in which kernel. PlanComputation is the
// entry point; lowering calls it for the entry computation and each loop body and branch.
//
//   starting plans     one kernel per instruction; the baseline planner's plan (first_planner.h);
//                      the greedy plan, tier 0 (greedy.h)
//   search, tier 1     the cheapest starting plans are improved by moves (search.h, moves.h)
//   memory             moves until temporary arrays fit (fit_memory.h)
//   kernels            built once per distinct structure (kernel_memo.h)
//   launches           independent kernels that share one launch (horizontal.h)
//
// The greedy planner and the search change a CandidatePlan (candidate_plan.h): which values are
// stored and which of them one kernel computes. A move changes a few groups, so its gain is the
// cost of the regions it removes minus that of the regions it adds. The cost of a plan is the sum
// over its regions. Costs have two levels (region_costs.h): a quick estimate from instruction
// counts, which filters moves, and the cost model applied to the kernel that a generator builds.
// Both are cached by the structural hash of the region (region_hash.h), so equal layers of a model
// share them.
//
// Planning is deterministic: budgets count work, not time, and nothing depends on names or on the
// order of instructions in the program.

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cost/machine.h"
#include "explain/decision.h"
#include "fusion/pins.h"
#include "gen/generator.h"
#include "ir/ir.h"

namespace tokamak {

// A region and its kernel.
struct PlannedKernel {
  FusedRegion region;
  GeneratorKind kind{};
  BuiltKernel built;
};

// Planning time of a computation, and the predicted cost of the plans that were compared.
struct PlanningFacts {
  // CPU milliseconds of the planning thread: baseline planner, tier 0, tier 1, and building the
  // kernels of the chosen plan except those that the baseline planner had built.
  double first_ms = 0, greedy_ms = 0, search_ms = 0, build_ms = 0;
  // Predicted microseconds per run, from built kernels; 0 if not computed.
  double unfused_us = 0, first_us = 0, greedy_us = 0, chosen_us = 0;
  int64_t moves = 0, kernels_built = 0;  // enumerated; built to estimate costs

  double all_ms() const { return first_ms + greedy_ms + search_ms + build_ms; }
};

// The plan of one computation: which kernels compute which values. Any other value is an alias of
// another one (IsAlias), control flow, a library call (IsForLibrary) or a host step.
struct ComputationPlan {
  const Computation* computation = nullptr;
  std::vector<PlannedKernel> kernels;
  std::vector<std::vector<int>> launch_groups;  // kernels, by number, that share one launch
  InstrMap<int> kernel_of;                      // the kernel that stores a root; -1 if none
  InstrMap<bool> inside;                        // computed in kernels, never stored
  InstrMap<std::string> why_host;               // why a host step computes it; else empty
  PlanningFacts facts;

  explicit ComputationPlan(const Computation& of)
      : computation(&of), kernel_of(of, -1), inside(of, false), why_host(of) {}
};

// How fusion decisions are made.
enum class FusionMode : uint8_t {
  kNone,    // no fusion: one kernel per instruction
  kRules,   // XLA's fusion passes (2023, arXiv 2301.13062)
  kGreedy,  // tier 0: the move with the largest estimated gain first
  kSearch,  // tier 1: the best plan found within a budget
  kRandom,  // random legal moves, for tests
};

// "none", "rules", "greedy", "search" or "random"; nullopt for any other name.
std::optional<FusionMode> FusionModeNamed(std::string_view name);
std::string_view NameOf(FusionMode mode);

// Planning effort, which sets the budget of the search.
enum class Effort : uint8_t {
  kFast,     // tier 0 only
  kDefault,  // about a second for a few thousand instructions
  kMax,      // five times the default budget
};

// Which kernels share a launch (horizontal.h).
enum class HorizontalMode : uint8_t { kNone, kByCost, kAll };
// "none", "auto" or "all"; nullopt for any other name.
std::optional<HorizontalMode> HorizontalModeNamed(std::string_view name);

class PredeterminedFusions;
struct Cut;
using Cuts = std::unordered_map<const Computation*, Cut>;

struct PlanOptions {
  FusionMode mode = FusionMode::kSearch;
  Effort effort = Effort::kDefault;  // for kSearch only
  HorizontalMode horizontal = HorizontalMode::kNone;
  // Limit on the peak bytes of temporary arrays, for kGreedy and kSearch; 0 if unlimited.
  int64_t memory_limit = 0;
  const PredeterminedFusions* predetermined = nullptr;  // for kRules: the passes' fusions
  const Cuts* cuts = nullptr;  // an existing plan to rebuild; no decisions are made
  PinWords pin_words;          // constraints from options
  const Pins* pins = nullptr;  // all constraints; set by LowerModule
};

// Partitions a computation into regions and builds their kernels. Logs every decision.
ComputationPlan PlanComputation(const Computation& computation, const Machine& machine,
                                const PlanOptions& options, DecisionLog& log);

}  // namespace tokamak
