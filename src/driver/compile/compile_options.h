#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "explain/rules.h"
#include "fusion/constraints.h"
#include "fusion/plan.h"
#include "fusion/serialized_plan.h"
#include "rewrite/pass.h"
#include "rewrite/pipeline.h"

// Options of a compilation. Each frontend parses its own spelling (named_options.h,
// fusion_options.h) into these types once; code below the frontends reads no option texts.

namespace tokamak {

struct UserRule;

// Failures that tests can inject into code generation, in the order of cpu::InjectedFault without
// its first enumerator (no fault).
inline constexpr std::array<std::string_view, 4> kCodegenFaults = {"crash", "abort", "fatal",
                                                                   "endless"};

struct CompileOptions {
  int64_t num_replicas = 1, num_partitions = 1;
  std::string backend;  // empty: the best that is built
  bool strict = false;  // reference semantics for every value; no rewrite that may change bits
  Pipeline passes = {std::begin(kDefaultPipeline), std::end(kDefaultPipeline)};
  std::vector<Pass> skip_passes;
  FusionMode fusion = FusionMode::kSearch;
  Effort effort = Effort::kDefault;  // time budget of planning
  LiftedRules lifted;                // disabled rules of FusionMode::kXlaPasses
  // The fusions of FusionMode::kXlaPasses, in place of those that its passes would form; null: the
  // passes form them. Receives the module that is ready to be divided into kernels.
  FusionTags (*fusion_tags)(const Module& module) = nullptr;
  ConstraintOptions constraints;
  ScheduleOptions schedules;
  // Apply `constraints`, those in the program, and forced schedules.
  bool apply_constraints = true;
  // An existing plan: its kernels are built and no decision is made. The module, the passes and the
  // target must be those that it was made for.
  std::shared_ptr<const SerializedPlan> plan;
  std::optional<HorizontalMode> horizontal;  // unset: where it pays on a GPU, none on a CPU
  bool user_rules = true;                    // apply rules of users (user_rules.h) ...
  std::vector<std::shared_ptr<const UserRule>> rules;  // these besides the active ones
  bool verified = false;  // this build has already verified an equal module
  std::string dump_dir;   // directory for the program before and after compilation; empty: no dump
  // Instructions without a kernel are an error (TK4005). No effect on the interp backend.
  bool require_kernels = false;
  // check_kernels: compares every kernel with the interpreter at run time. check_memory: fills
  // bytes that hold no value with NaN (on by default in builds with assertions). TOKAMAK_CHECK sets
  // both.
  bool check_kernels = false;
#ifdef NDEBUG
  bool check_memory = false;
#else
  bool check_memory = true;
#endif
  bool persistent = true;     // loops may become persistent kernels on a GPU
  bool short_chunks = false;  // whole-loop kernels run few iterations per launch
                              // (TOKAMAK_CHECK=chunks)
  int64_t memory_limit = 0;   // bytes of temporary arrays; 0: the target's memory
  // Plugins (docs/plugins.md). strict_plugins: a failure of one is an error. check_plugins: the
  // interpreter compares values before and after each of their passes.
  bool strict_plugins = false, check_plugins = false;
  // For tests (TOKAMAK_CHECK=codegen-crash, codegen-crash:2 ...): the failure injected into the
  // code generation of the first kernel, without the prefix "codegen-".
  std::string codegen_fault;    // one of kCodegenFaults, optionally with a number of attempts
  int64_t corrupt_kernel = -1;  // for tests: index of a kernel that writes one wrong value
  // For tests: turns constants of the entry and the results of a function @inputs into arguments
  // (pass hoist-constants). Otherwise constant folding would evaluate the whole program.
  bool hoist = false;
  bool reject_launches =
      false;  // for tests (TOKAMAK_CHECK=reject): the GPU rejects multi-instruction launches
  bool faults = false;  // for tests (TOKAMAK_CHECK=fault): GPU kernels get invalid addresses
};

}  // namespace tokamak
