#pragma once

// Fusion planning: which instructions of a computation run in which kernel. PlanComputation is the
// entry point; lowering calls it for the entry computation and for each loop body and branch.
//
// The words of this folder, from the smallest thing to the largest:
//
//   stored value   an array that a kernel writes to memory. All other values of a kernel exist
//                  only while it runs, in registers or local arrays (gen/generator.h).
//   fusion group   the stored values that one kernel computes. They are the roots of the group
//                  (FusionGroup, candidate_plan.h).
//   region         the instructions that a group executes: its roots and all that they depend on,
//                  back to its inputs (FusedRegion, gen/region.h). Inputs are values that other
//                  groups store or that are outside kernels; the array into which a partial update
//                  (IsPartialUpdate, instr_predicates.h) writes is not one. Regions may overlap: an
//                  instruction in several regions is computed in each of them.
//   kernel         the code that a kernel generator (gen/generator.h) builds for a region.
//   launch group   kernels that share one launch (horizontal fusion, horizontal.h).
//   unit           a node of the dependence graph of a plan, for scheduling (unit_graph.h): a
//                  kernel, or an instruction outside kernels.
//   host step      an instruction that no kernel can compute. The reference interpreter evaluates
//                  it on the CPU, also if the target is a GPU.
//   rule           the name of a kind of decision in the log, such as fusion.vertical. Each kind of
//                  move (moves.h) has its own; other decisions have rules too, such as fusion.pin.
//                  The fusion mode "rules" (FusionMode::kXlaPasses) is unrelated: its name means
//                  XLA's heuristics.
//
// An instruction is outside kernels if it is a parameter, a constant array with more than one
// distinct value (not a scalar or splat; IsMemoryConstant, instr_predicates.h), control flow, a
// library call or a host step. An alias of other values (IsAlias, instr_predicates.h), such as a
// tuple, is outside kernels too if no region contains it.
//
// Planning has these stages:
//
//   starting plans     the plan of the baseline planner (baseline_planner.h); the greedy plan, tier
//                      0 (greedy.h); the unfused plan, one kernel per instruction
//   search, tier 1     moves improve the cheapest starting plan, the second cheapest unless it is
//                      far behind, and any that still costs less than the result (search.h,
//                      moves.h). The cheapest result is kept; it costs no more than any start
//   memory             moves reduce temporary memory until it fits the limit (fit_memory.h)
//   kernels            the kernels of the chosen plan are built (kernel_partition.h), once per
//                      distinct region (kernel_cache.h)
//   schedules          the schedules of the kernels are compared (choose_schedules.h)
//   launches           independent kernels are combined into launch groups (horizontal.h)
//
// The objective is the modeled cost of the plan: the sum of the predicted microseconds of its
// kernels, each including its launch overhead. Library calls, control flow and host steps are the
// same in all plans of a computation and are not counted. Memory matters only through the limit.
//
// The greedy planner and the search change a CandidatePlan (candidate_plan.h). A move changes a few
// groups, so its gain is the cost of the regions that it removes minus that of the regions that it
// adds. EvaluatedMove::IsWorthwhile (evaluated_move.h) decides whether the gain is large enough.
//
// Costs have two levels (region_costs.h):
//
//   estimate       the work is counted from the instructions (region_work.h), without building a
//                  kernel. The greedy planner uses estimates alone; the search uses them to discard
//                  moves.
//   modeled cost   the work is counted from the IR of the kernel that a generator builds.
//
// Both apply the cost model (EstimateCost, cost/work.h) to the counted work. Nothing is run or
// measured for either. Modeled costs are cached by the structural hash of the region
// (region_hash.h), so identical layers of a model share them. Estimates are cached in the same way
// if the hash is known anyway.
//
// Planning is deterministic: budgets count built kernel IR, not time. Nothing depends on names or,
// except for the order of side effects, on the order of instructions in the program.
//
// Functions whose name starts with "Why" return the reason why something is impossible, as text for
// the decision log. An empty text means that it is possible.

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cost/machine.h"
#include "explain/decision.h"
#include "fusion/constraints.h"
#include "fusion/kernel_partition.h"
#include "fusion/schedule_choice.h"
#include "gen/generator.h"
#include "ir/ir.h"

namespace tokamak {

class PlannerExtensions;  // extensions.h

// A region and its kernel.
struct PlannedKernel {
  FusedRegion region;
  GeneratorKind kind{};  // the kernel generator that builds it
  BuiltKernel built;
};

// Planning time of a computation, and the modeled costs of the plans that were compared.
struct PlanningStats {
  // CPU milliseconds of the planning thread.
  double baseline_ms = 0;  // baseline planner, including the kernels that it builds
  double greedy_ms = 0;    // tier 0
  double search_ms = 0;    // tier 1
  double build_ms = 0;     // kernels of the chosen plan that the baseline planner had not built
  double schedule_ms = 0;  // comparison of schedules
  // Modeled cost of one execution in microseconds; 0 if not computed. The starting plans, and the
  // result of the search with its schedules and launch groups, which costs no more than any of
  // them. unfused_us: or a lower bound above the others.
  double unfused_us = 0, baseline_us = 0, greedy_us = 0, chosen_us = 0;
  int64_t moves_enumerated = 0;
  int64_t kernels_built_for_costs = 0;
};

// The plan of one computation: which kernels compute which values. Any other value is outside
// kernels (see above), except immediates, which are embedded in the code of kernels. UsesLibrary
// (gen/library/dot.h) and UsesRuntimeFunction (gen/library/sorts.h) say which instructions
// are library calls.
struct ComputationPlan {
  const Computation* computation = nullptr;
  std::vector<PlannedKernel> kernels;
  // Indices into `kernels` of those that share one launch. A kernel in no launch group has a launch
  // of its own; no group has fewer than two kernels.
  std::vector<std::vector<int>> launch_groups;
  InstrMap<int> kernel_of;                 // index of the kernel that stores the value; -1 if none
  InstrMap<bool> is_internal;              // kernels compute the value, but none stores it
  InstrMap<std::string> host_step_reason;  // why the value is a host step; empty if it is not one
  PlanningStats stats;

  explicit ComputationPlan(const Computation& planned)
      : computation(&planned),
        kernel_of(planned, -1),
        is_internal(planned, false),
        host_step_reason(planned) {}
};

// Adds a kernel, which stores its roots, to the plan. Its other instructions become internal unless
// another kernel stores them.
void AddKernel(ComputationPlan& plan, PlannedKernel kernel);

// How fusion decisions are made.
enum class FusionMode : uint8_t {
  kNone,       // no fusion: one kernel per instruction
  kXlaPasses,  // "rules": passes that follow XLA's heuristics have formed the fusions before
               // planning (existing_partition); without them, the baseline planner
  kGreedy,     // tier 0: the move with the largest estimated gain first
  kSearch,     // tier 1: the cheapest plan found within a budget
  kRandom,     // random legal moves, for tests
};

// "none", "rules" (kXlaPasses), "greedy", "search" or "random"; nullopt for any other name.
std::optional<FusionMode> FusionModeFromName(std::string_view name);
std::string_view NameOf(FusionMode mode);

// Planning effort, which sets the budget of the search.
enum class Effort : uint8_t {
  kFast,     // no search: the same plan as FusionMode::kGreedy
  kDefault,  // the default budget (see below)
  kMax,      // kMaxEffortFactor times the default budget
};

// The default budget of the search, in kernel IR values (RegionCosts::build_effort): kMinBudget, or
// kBudgetPerInstr per instruction of the computation if that is more. Hand-tuned: 1000
// values take some 2 ms, including all other work of the search, so kMinBudget is about 0.3 s.
// Planning times are in docs/results/planning.md.
inline constexpr int64_t kMinBudget = 150'000, kBudgetPerInstr = 20, kMaxEffortFactor = 5;

// Which kernels share a launch (horizontal.h).
enum class HorizontalMode : uint8_t {
  kNone,
  kAuto,  // those that save enough (horizontal.h); only for kGreedy and kSearch
  kAll,   // for tests: all that may
};
// "none", "auto" or "all"; nullopt for any other name.
std::optional<HorizontalMode> HorizontalModeFromName(std::string_view name);

// An existing partition determines the kernels; otherwise a planner does, chosen by `mode`.
struct PlanOptions {
  FusionMode mode = FusionMode::kSearch;
  Effort effort = Effort::kDefault;  // for kSearch only
  HorizontalMode horizontal = HorizontalMode::kNone;
  // Limit on the peak bytes of temporary arrays, for kGreedy and kSearch; 0 if unlimited.
  int64_t memory_limit = 0;
  // Kernels that were decided before, by a stored plan or by passes (kXlaPasses): no planner runs.
  // Computations that it lacks are planned.
  const ModulePartition* existing_partition = nullptr;
  // Whether `constraints` change the existing partition. A stored plan is rebuilt as it is.
  bool constrain_existing = false;
  // The user's options. The planner does not read them: LowerModule combines them with the
  // constraints in the program and sets `constraints`.
  ConstraintOptions constraint_options = {};
  const FusionConstraints* constraints = nullptr;  // may be null
  // Policies, generators and the cost hook of plugins (extensions.h); may be null.
  const PlannerExtensions* extensions = nullptr;
  ScheduleOptions schedules;
};

// Covers a computation with regions and builds their kernels. Logs every decision.
ComputationPlan PlanComputation(const Computation& computation, const Machine& machine,
                                const PlanOptions& options, DecisionLog& log);

}  // namespace tokamak
