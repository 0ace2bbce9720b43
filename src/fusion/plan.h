#pragma once

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

// A region that became a kernel.
struct PlannedKernel {
  Region region;
  RegionKind kind{};
  BuiltKernel built;
};

// What planning a computation took, and what its kernels take by each plan that was looked at.
struct PlanningFacts {
  // Milliseconds that the thread worked: by the first planner, tier 0, tier 1, and of making the
  // kernels of the plan that was taken, but for those that the first planner had made.
  double first_ms = 0, greedy_ms = 0, search_ms = 0, build_ms = 0;
  // Microseconds a call, predicted from kernels; 0: nobody asked.
  double unfused_us = 0, first_us = 0, greedy_us = 0, taken_us = 0;
  int64_t moves = 0, kernels_built = 0;  // looked at, priced

  double all_ms() const { return first_ms + greedy_ms + search_ms + build_ms; }
};

// How one computation runs: which of its values kernels make. All others are the same bytes as
// another value (IsAlias), control flow, a library's (IsForLibrary), or a host step.
struct ComputationPlan {
  const Computation* computation = nullptr;
  std::vector<PlannedKernel> kernels;
  std::vector<std::vector<int>> packs;  // kernels, by number, that run as one launch
  InstrMap<int> kernel_of;              // of a root: the kernel that makes it; else -1
  InstrMap<bool> inside;                // exists only inside of kernels
  InstrMap<std::string> why_host;
  PlanningFacts facts;

  explicit ComputationPlan(const Computation& of)
      : computation(&of), kernel_of(of, -1), inside(of, false), why_host(of) {}
};

// Who decides what goes into one kernel.
enum class FusionMode : uint8_t {
  kNone,    // nobody: a kernel for each instruction
  kRules,   // the passes of the paper's compiler, which make fusions of the module
  kGreedy,  // the best step first, by price
  kSearch,  // the best plan that is found in the time given
  kRandom,  // nobody: any moves that are legal, for tests
};

// "none", "rules", "greedy", "search" or "random"; of any other word nothing.
std::optional<FusionMode> FusionModeNamed(std::string_view name);
std::string_view NameOf(FusionMode mode);

// How much planning is worth.
enum class Effort : uint8_t {
  kFast,     // tier 0 alone
  kDefault,  // a second, about, of a program of some thousand instructions
  kMax,      // several times that
};

// Which kernels run as one launch (packs.h).
enum class PackMode : uint8_t { kNone, kPriced, kAll };
// "none", "auto" or "all"; of any other word nothing.
std::optional<PackMode> PackModeNamed(std::string_view name);

class GivenFusions;
struct Cut;
using Cuts = std::unordered_map<const Computation*, Cut>;

struct PlanOptions {
  FusionMode mode = FusionMode::kSearch;
  Effort effort = Effort::kDefault;  // of kSearch
  PackMode packs = PackMode::kNone;
  // Bytes that the temporary arrays of a plan may take at a time, of kGreedy and kSearch; 0: as
  // many as they like.
  int64_t memory_limit = 0;
  const GivenFusions* given = nullptr;  // of kRules: those that the passes made
  const Cuts* cuts = nullptr;           // a plan that was made before: nothing is decided
  PinWords pin_words;                   // what options say of single instructions
  const Pins* pins = nullptr;           // that, and what the program says; LowerModule reads them
};

// Cuts a computation into regions and builds their kernels. Every judgement is a record.
ComputationPlan PlanComputation(const Computation& computation, const Machine& machine,
                                const PlanOptions& options, DecisionLog& log);

}  // namespace tokamak
