#include "driver/lower_module.h"

#include "driver/check_pins.h"
#include "driver/kernel_codes.h"
#include "fusion/batch_indices.h"
#include "fusion/block_products.h"
#include "fusion/contraction.h"
#include "fusion/deep_products.h"
#include "fusion/expand_convolutions.h"
#include "fusion/expand_ops.h"
#include "fusion/expand_random.h"
#include "fusion/given.h"
#include "fusion/hoist_products.h"
#include "fusion/prepare_scans.h"
#include "fusion/row_products.h"
#include "fusion/scatter_places.h"
#include "fusion/scatter_selects.h"
#include "fusion/share_rounds.h"
#include "fusion/shifted_sums.h"
#include "fusion/short_dimensions.h"
#include "fusion/sink_sums.h"
#include "fusion/sort_scatters.h"
#include "fusion/sorts.h"
#include "fusion/split_convolutions.h"
#include "fusion/split_reductions.h"
#include "fusion/split_rounds.h"
#include "fusion/split_scatters.h"
#include "passes/passes.h"
#include "runtime/host_memory.h"
#include "runtime/matrix_product.h"

namespace tokamak {
namespace {

// As users pin it.
Result<LoweredProgram> LowerPinned(const Module& module, const LowerOptions& options,
                                   DecisionLog& log) {
  if (!options.plan.pinned) return Lower(module, options, log);
  TOK_TRY(Pins pins, Pins::Read(module, options.plan.pin_words));
  if (pins.empty()) return Lower(module, options, log);
  LowerOptions with = options;
  with.plan.pins = &pins;
  TOK_TRY(LoweredProgram program, Lower(module, with, log));
  TOK_RETURN_IF_ERROR(CheckPins(program, module, pins, log));
  return program;
}

}  // namespace

Result<LoweredProgram> LowerModule(Module& module, const LowerOptions& options, DecisionLog& log,
                                   const PaperOptions& paper) {
  bool ours = options.plan.mode != FusionMode::kRules && options.plan.mode != FusionMode::kNone;
  ExpandOps(module, log);
  ExpandConvolutions(module, options.machine, log);
  if (ours) {
    HoistProducts(module, log);
    if (!options.strict) SinkSums(module, log);
  }
  FoldDeepProducts(module, options.machine, log);
  PrepareContractions(module, options.machine, log);
  if (ours) BlockProducts(module, options.machine, log);
  ExpandRandom(module, log);
  BatchIndices(module, log);
  SelectScatters(module, log);
  SortScatters(module, log, options.machine);
  PrepareSorts(module, log, options.machine);
  PrepareScans(module, log, options.machine);
  SplitWindows(module, log);
  SplitScatters(module, log, options.machine);
  PlaceScatters(module, log, options.machine);
  if (!options.strict) FoldRowProducts(module, options.machine, log);
  UnrollShortDimensions(module, log, options.machine);
  if (ours && !options.strict) SplitShiftedSums(module, log, options.machine);
  SplitReductions(module, log, options.machine);
  if (ours) {
    ShareRounds(module, log, options.machine);
    SplitRounds(module, log, options.machine, options.chunk_rounds);
  }
  if (options.plan.mode != FusionMode::kRules) return LowerPinned(module, options, log);
  PassContext context(log, {}, {.lifted = paper.lifted});
  PipelineOptions pipeline;
  pipeline.skip = paper.skip;
  TOK_TRY([[maybe_unused]] std::vector<PassRun> runs,
          RunPasses(module, kPaperPipeline, context, pipeline));
  GivenFusions given = GivenFusions::Dissolve(module);
  LowerOptions with = options;
  with.plan.given = &given;
  return LowerPinned(module, with, log);
}

Result<LoweredProgram> LowerForHost(Module& module, LowerOptions options, DecisionLog& log,
                                    const PaperOptions& paper) {
  options.machine = HostMachine();
  if (options.plan.memory_limit == 0)
    options.plan.memory_limit = static_cast<int64_t>(HostMemory());
  SplitConvolutions(module, options.machine, log);
  ExpandConvolutions(module, options.machine, log);  // they are contractions, then
  options.machine.matrix_library = HasContractions(module, options.machine) && HasMatrixLibrary();
  return LowerModule(module, options, log, paper);
}

}  // namespace tokamak
