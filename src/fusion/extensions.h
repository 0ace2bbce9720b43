#pragma once

// What plugins and policies contribute to planning and lowering (docs/plugins.md). The driver
// implements the interface; the planner knows nothing of shared libraries or callbacks.

#include <optional>
#include <string>
#include <string_view>

#include "cost/work.h"
#include "explain/decision.h"
#include "gen/generator.h"

namespace tokamak {

// The facts of a move for a policy. Costs are estimates, except where kernels have been built.
struct MoveFacts {
  std::string_view rule;
  const Instr* subject = nullptr;
  const Instr* other = nullptr;
  // Instructions of the kernel that computes the subject, and of the other ones that are replaced.
  std::vector<const Instr*> producer = {}, consumers = {};
  double before_us = 0, after_us = 0, saved_bytes = 0;
  int kernels_before = 0, kernels_after = 0;
  double registers = 0;     // of the largest kernel after the move; 0: unknown
  size_t instructions = 0;  // of the largest kernel after the move
};

enum class Opinion : uint8_t { kNone, kAccept, kVeto, kWeight };

struct PolicyAnswer {
  Opinion opinion = Opinion::kNone;
  double weight = 1;
  std::string policy = {};  // its name
};

// A step that could run next. Unset instr: none.
struct StepFacts {
  const Instr* instr = nullptr;
  std::string_view kind;  // "kernel", "library", "loop", "conditional", "host" or "alias"
  std::string name;
  std::vector<const Instr*> instrs = {};
  double result_bytes = 0, released_bytes = 0;
  int position = 0, ready = 0;
};

struct StepPriority {
  double value = 0;
  std::string policy = {};  // the one that decided; empty: none had an opinion
};

// The note of a kernel (Kernel::notes) that a plugin's generator built, before the generator's
// name.
inline constexpr std::string_view kGeneratorNote = "generator: ";

// Called by one thread per compilation.
class PlannerExtensions {
 public:
  virtual ~PlannerExtensions() = default;

  virtual bool HasFusionPolicy() const = 0;
  virtual PolicyAnswer Decide(const MoveFacts& move) const = 0;

  virtual bool HasOrderPolicy() const = 0;
  virtual StepPriority PriorityOf(const StepFacts& step) const = 0;

  virtual bool HasCostHook() const = 0;
  // The modeled cost of a kernel, corrected. `hook`: receives the name of the hook that changed it;
  // may be null.
  virtual CostEstimate Corrected(const CostEstimate& modeled, const Work& work,
                                 const Kernel& kernel, const FusedRegion& region,
                                 GeneratorKind kind, std::string* hook) const = 0;

  virtual bool HasGenerator() const = 0;
  // The cheapest kernel of a plugin's generator for the region, if it costs less than `own`, the
  // kernel of Tokamak's generator (null: there is none). It has a kGeneratorNote.
  virtual std::optional<BuiltKernel> Generate(const FusedRegion& region, const BuiltKernel* own,
                                              GeneratorKind kind) const = 0;

  // Adds the decisions about kernels of a finished plan, and failures of callbacks.
  virtual void LogTo(DecisionLog& log) const = 0;
};

}  // namespace tokamak
