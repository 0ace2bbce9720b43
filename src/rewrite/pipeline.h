#pragma once

// Pass pipelines. A pipeline is data: a list of passes, some of them in fix-point groups. Its text
// form is "inline,dce,(simplify,cse)*". passes.def states which facts a pass requires, establishes
// and invalidates. Pipelines in the sources are checked at compile time, pipelines that a user
// types when they are parsed.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rewrite/pass.h"

namespace tokamak {

// Facts that may hold for a module between two passes.
enum Fact : uint32_t {
  kCallsInlined = 1 << 0,   // no call or fusion remains except those kept by the limits
  kNoInnerTuples = 1 << 1,  // loops, conditionals and calls take arrays; tuples exist only at the
                            // boundaries of computations and as the operand of get-tuple-element
  kOpsExpanded = 1 << 2,    // no quantized value remains that can be an integer
  kConvolutionsExpanded = 1 << 3,  // no convolution remains except library calls
  kScansFormed = 1 << 4,           // no cumulative window remains
  // These hold until a pass has legalized such instructions for the target. Passes that add such
  // instructions require the fact.
  kMayAddDots = 1 << 5,
  kMayAddSorts = 1 << 6,
  kMayAddScans = 1 << 7,
  kMayAddReductions = 1 << 8,
  kMayEditLoops = 1 << 9,
};
// Facts that hold for every parsed program.
inline constexpr uint32_t kAtStart =
    kMayAddDots | kMayAddSorts | kMayAddScans | kMayAddReductions | kMayEditLoops;

// Properties of a pass besides facts and targets.
enum PassFlag : uint8_t {
  kMayRound = 1,       // may change values by rounding; all other passes are bit-exact
  kNotStrict = 2,      // does not run under PassOptions::strict
  kPlanned = 4,        // runs only if PassTarget::is_planned
  kAddsArguments = 8,  // runs only with PassOptions::added: the program cannot run without the
                       // added values
};

enum class Pass : uint8_t {
#define TOK_PASS(id, ...) k##id,
#include "rewrite/passes.def"
};

struct PassInfo {
  std::string_view name;
  uint8_t targets, flags;
  uint32_t needs, establishes, breaks;
  std::string_view meaning;
};

inline constexpr std::array kPasses = {
#define TOK_PASS(id, name, targets, flags, needs, establishes, breaks, meaning) \
  PassInfo{name, targets, flags, needs, establishes, breaks, meaning},
#include "rewrite/passes.def"
};

constexpr const PassInfo& InfoOf(Pass pass) {
  return kPasses[static_cast<size_t>(pass)];
}
std::optional<Pass> PassFromName(std::string_view name);
// "cpu", "gpu", "cpu, gpu" or "any", then the flags: "any; may round; not strict".
std::string PredicateOf(const PassInfo& info);

// Passes that may change values by rounding, within the limits of docs/numerics.md: on ordinary
// inputs by no more than `run --expect` allows.
constexpr bool MayRound(Pass pass) {
  return (InfoOf(pass).flags & kMayRound) != 0;
}
constexpr bool IsFor(Pass pass, TargetKind kind) {
  return InfoOf(pass).targets == kNoTarget || (InfoOf(pass).targets & kind) != 0;
}

// One pass of a pipeline. Adjacent steps with the same nonzero `group` are repeated together until
// an iteration changes nothing.
struct Step {
  Pass pass{};
  uint8_t group = 0;
  constexpr bool operator==(const Step&) const = default;
};
using Pipeline = std::vector<Step>;

// The index of the first step whose requirements are not met; steps.size() if there is none. Facts
// that a group invalidates are missing in its second iteration.
constexpr size_t FirstUnsound(std::span<const Step> steps, uint32_t known = kAtStart) {
  for (size_t begin = 0; begin < steps.size();) {
    size_t end = begin + 1;
    while (steps[begin].group != 0 && end < steps.size() && steps[end].group == steps[begin].group)
      ++end;
    for (int iteration = 0; iteration < (steps[begin].group != 0 ? 2 : 1); ++iteration) {
      for (size_t i = begin; i < end; ++i) {
        const PassInfo& info = InfoOf(steps[i].pass);
        if ((known & info.needs) != info.needs) return i;
        known = (known & ~info.breaks) | info.establishes;
      }
    }
    begin = end;
  }
  return steps.size();
}
constexpr bool IsSound(std::span<const Step> steps) {
  return FirstUnsound(steps) == steps.size();
}
// Whether a pipeline for a kind of target is sound after kDefaultPipeline or a user's pipeline,
// which may establish no facts, and whether it contains only passes for that kind.
constexpr bool IsSoundFor(std::span<const Step> steps, TargetKind kind) {
  for (const Step& step : steps)
    if (!IsFor(step.pass, kind)) return false;
  return IsSound(steps);
}

// `Compile` runs this first if CompileOptions::hoist is set.
inline constexpr Step kHoistPipeline[] = {{Pass::kHoistConstants}};
static_assert(IsSound(kHoistPipeline));

// `Compile` runs this next: executables take and return arrays.
inline constexpr Step kEntryPipeline[] = {{Pass::kFlattenEntry}};
static_assert(IsSound(kEntryPipeline));

// `Compile` runs this next; also the default of `tokamak opt`.
inline constexpr Step kDefaultPipeline[] = {
    {Pass::kReadLibraryCalls},
    {Pass::kRecognizeRandom},
    {Pass::kInline},
    {Pass::kFlattenTuples},
    {Pass::kDce},
    {Pass::kApplyRegisteredRules},  // as the user wrote the program
    {Pass::kRecognizeRandom},
    {Pass::kRecognizeFunctions},
    {Pass::kExpandComposites},
    {Pass::kRecognizeScans},
    {Pass::kSimplify, 1},
    {Pass::kRemoveNarrowingPairs, 1},
    {Pass::kFoldConstants, 1},
    {Pass::kCse, 1},
    {Pass::kSimplifyConditionals, 1},
    {Pass::kSimplifyLoops, 1},
    {Pass::kDce, 1},
    {Pass::kApplyRegisteredRules},  // simplified
    {Pass::kReroll, 2},
    {Pass::kSimplify, 2},
    {Pass::kCse, 2},
    {Pass::kSimplifyLoops, 2},
    {Pass::kHoistInvariants, 2},
    {Pass::kDce, 2},
    {Pass::kFormFma},
    {Pass::kOrder},
};
static_assert(IsSound(kDefaultPipeline), "a pass runs before what it needs; see passes.def");

// Target pipelines, between the default pipeline and the planner, one per kind of target.
inline constexpr Step kCpuPipeline[] = {
    {Pass::kExpandQuantized},
    {Pass::kExpandOps},
    {Pass::kSplitDilatedConvolutions},
    {Pass::kExpandConvolutions},
    {Pass::kHoistInputGemms},
    {Pass::kSinkAccumulations},
    {Pass::kLegalizeDots},
    {Pass::kPrepackWeights},
    {Pass::kExpandRandom},
    {Pass::kRecognizeBatchedIndices},
    {Pass::kConvertScattersToSelects},
    {Pass::kLegalizeSorts},
    {Pass::kSplitScans},
    {Pass::kSplitWindows},
    {Pass::kPrivatizeScatters},
    {Pass::kLinearizeScatters},
    {Pass::kExpandGemvs},
    {Pass::kSplitReductions},
    {Pass::kHoistUniformValues},
    {Pass::kStripMineLoops},
    {Pass::kFuseCustomKernels},
};
inline constexpr Step kGpuPipeline[] = {
    {Pass::kExpandQuantized},
    {Pass::kExpandOps},
    {Pass::kAssignConvolutionLayouts},
    {Pass::kSplitDilatedConvolutions},
    {Pass::kExpandConvolutions},
    {Pass::kHoistInputGemms},
    {Pass::kSinkAccumulations},
    {Pass::kReassociateDots},
    {Pass::kSplitK},
    {Pass::kSharpenMasks},
    {Pass::kPadDotOperands},
    {Pass::kSplitDots},
    {Pass::kLegalizeDots},
    {Pass::kExpandRandom},
    {Pass::kPackPreds},
    {Pass::kRecognizeBatchedIndices},
    {Pass::kConvertScattersToSelects},
    {Pass::kSortScatters},
    {Pass::kLegalizeSorts},
    {Pass::kSplitScans},
    {Pass::kSplitWindows},
    {Pass::kUnrollShortDims},
    {Pass::kSplitLogsumexp},
    {Pass::kSplitReductions},
    {Pass::kHoistUniformValues},
    {Pass::kStripMineLoops},
    {Pass::kFuseCustomKernels},
};
static_assert(IsSoundFor(kCpuPipeline, kCpu) && IsSoundFor(kGpuPipeline, kGpu),
              "a pass runs before what it needs, or for another kind of target; see passes.def");
constexpr std::span<const Step> PipelineOf(TargetKind kind) {
  return kind == kGpu ? std::span<const Step>(kGpuPipeline) : std::span<const Step>(kCpuPipeline);
}

// XLA's fusion passes (arXiv 2301.13062): --fusion=rules runs them on a program that is ready to be
// partitioned into kernels.
inline constexpr Step kPaperPipeline[] = {
    {Pass::kInstructionFusion},
    {Pass::kFusionMerger},
    {Pass::kMultiOutputFusion},
    {Pass::kHorizontalFusion},
};
// Follows kPaperPipeline when kernels are generated: the planner receives the fused instructions.
inline constexpr Step kFusedPipeline[] = {{Pass::kInlineFusions}};

// Parses "inline,dce,(simplify,cse)*"; "default", "cpu" and "gpu" stand for the pipelines above.
// Returns TK3001 for an unknown pass, with the nearest name, and TK3003 for a missing requirement,
// with the passes that would establish it.
Result<Pipeline> ParsePipeline(std::string_view text);
// Parses a list of passes that need not be runnable in that order: requirements are not checked.
Result<Pipeline> ParsePipelineUnchecked(std::string_view text);
std::string ToString(std::span<const Step> steps);

// One run of one pass.
struct PassRun {
  Pass pass{};
  int64_t iteration = 0;  // within its group, from 0
  size_t instrs_before = 0, instrs_after = 0;
  double ms = 0, verify_ms = 0;
  Changed changed = Changed::kNo;
  size_t changes = 0;  // accepted records
};

// Called after each pass, when the module is in order (Computation::PutInOrder).
class PipelineListener {
 public:
  virtual void AfterPass(const Module& module, const PassRun& run) = 0;

 protected:
  ~PipelineListener() = default;
};

#ifdef NDEBUG
inline constexpr bool kVerifyByDefault = false;
#else
inline constexpr bool kVerifyByDefault = true;
#endif

struct PipelineOptions {
  std::vector<Pass> skip;
  std::optional<Pass> stop_after;        // stop after the first run of this pass
  bool verify_each = kVerifyByDefault;   // TK3004 names the pass after which verification fails
  PipelineListener* listener = nullptr;  // may be null
};

// Runs a pipeline over a verified module. `functions` holds one function per row of passes.def
// (passes/passes.h). Passes that the context's options exclude (kNotStrict, kPlanned,
// kAddsArguments) are skipped; a pass for another target is an error (TK3003). If a group does not
// converge within the limits, a record names the rules that fired last; if verify_each is set, this
// is an error (TK3005). Afterwards all computations are in order.
Result<std::vector<PassRun>> RunPipeline(Module& module, std::span<const Step> steps,
                                         std::span<const PassFn> functions, PassContext& context,
                                         const PipelineOptions& options = {});

// A human-readable table: one line per run, and the total. Linear.
std::string RenderRuns(std::span<const PassRun> runs);

}  // namespace tokamak
