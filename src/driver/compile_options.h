#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "explain/rules.h"
#include "fusion/pins.h"
#include "fusion/plan.h"
#include "fusion/plan_data.h"
#include "rewrite/pipeline.h"

// What a caller may ask of a compilation. Frontends parse their own spelling (named_options.h,
// fusion_options.h) into these types once; nothing behind them reads option texts.

namespace tokamak {

struct CompileOptions {
  int64_t num_replicas = 1, num_partitions = 1;
  std::string backend;  // "": the best that is built
  bool strict = false;  // every value as the program states it, no rewrite that may change bits
  Pipeline passes = {std::begin(kDefaultPipeline), std::end(kDefaultPipeline)};
  std::vector<Pass> skip_passes;
  FusionMode fusion = FusionMode::kSearch;
  Effort effort = Effort::kDefault;  // what planning may take
  LiftedRules lifted;                // rules of FusionMode::kRules that do not apply
  PinWords pins;
  bool pinned = true;  // users are heard; else neither `pins` nor the program are
  // A plan that was made before: its kernels are built, and nothing is decided. The module, the
  // passes and the target must be those that it was made for.
  std::shared_ptr<const PlanData> plan;
  std::optional<PackMode> packs;  // nothing: where it pays on a GPU, none on a CPU
  bool verified = false;          // this build has verified an equal module before
  std::string dump_dir;  // where the program is written before and after compilation; "": nowhere
  // An instruction that only the interpreter could do is an error (TK4005); not for interp itself.
  bool require_kernels = false;
  // What TOKAMAK_CHECK asks for, too: every kernel is compared with the interpreter when it runs;
  // bytes that hold no value are made NaN (in builds with assertions by default).
  bool check_kernels = false;
#ifdef NDEBUG
  bool check_memory = false;
#else
  bool check_memory = true;
#endif
  bool persistent = true;  // loops may become one launch of a GPU
  bool short_chunks =
      false;                 // whole-loop kernels do few iterations a launch (TOKAMAK_CHECK=chunks)
  int64_t memory_limit = 0;  // bytes of temporary arrays; 0: what the target has
  // For tests (TOKAMAK_CHECK=codegen-crash, codegen-crash:2 ...): what the code generation of the
  // first kernel does, without "codegen-".
  std::string codegen_fault;
  int64_t spoil_kernel = -1;  // for tests: this one writes a wrong number
  // For tests: constants of the entry, and what a function @inputs gives it, become arguments
  // (hoist-constants). Compilation would else compute the whole program.
  bool hoist = false;
  bool refuse =
      false;  // for tests (TOKAMAK_CHECK=refuse): as if a GPU took single instructions only
  bool faults = false;  // for tests (TOKAMAK_CHECK=fault): a GPU's kernels get wrong addresses
};

}  // namespace tokamak
