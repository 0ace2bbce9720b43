#pragma once

// A pipeline is data: a list of passes, some of them in fix-point groups. Its text is
// "inline,dce,(simplify,cse)*". What a pass needs of those before it is in passes.def; a pipeline
// in the sources is checked when it is compiled, one that a user types when it is read.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rewrite/pass.h"

namespace tokamak {

// What may be known to hold of a module between two passes.
enum Fact : uint32_t {
  kCallsInlined = 1 << 0,   // no call or fusion is left but those that the limits keep
  kNoInnerTuples = 1 << 1,  // loops, branches and calls take arrays; tuples are made only to be
                            // taken apart, or to leave a computation
  kOpsExpanded = 1 << 2,    // no quantized number is left that can be an integer
  kConvolutionsExpanded = 1 << 3,  // no convolution is left but a library's
  kScansFormed = 1 << 4,           // no cumulative window is left
  // Hold until a pass has made of such instructions what the target wants. Passes that add some
  // need it.
  kMayAddDots = 1 << 5,
  kMayAddSorts = 1 << 6,
  kMayAddScans = 1 << 7,
  kMayAddReductions = 1 << 8,
  kMayEditLoops = 1 << 9,
};
// What holds of every program that was read.
inline constexpr uint32_t kAtStart =
    kMayAddDots | kMayAddSorts | kMayAddScans | kMayAddReductions | kMayEditLoops;

// What else a row says about its pass.
enum PassFlag : uint8_t {
  kMayRound = 1,       // may change values by rounding; all others never change a bit
  kNotStrict = 2,      // does not run under PassOptions::strict
  kPlanned = 4,        // runs only where PassTarget::is_planned
  kAddsArguments = 8,  // runs only with PassOptions::added: without those values the program
                       // cannot be run
};

enum class Pass : uint8_t {
#define TOK_PASS(id, ...) k##id,
#include "rewrite/passes.def"
};

struct PassInfo {
  std::string_view name;
  uint8_t targets, flags;
  uint32_t needs, gives, breaks;
  std::string_view meaning;
};

inline constexpr std::array kPasses = {
#define TOK_PASS(id, name, targets, flags, needs, gives, breaks, meaning) \
  PassInfo{name, targets, flags, needs, gives, breaks, meaning},
#include "rewrite/passes.def"
};

constexpr const PassInfo& InfoOf(Pass pass) {
  return kPasses[static_cast<size_t>(pass)];
}
std::optional<Pass> PassFromName(std::string_view name);
// "cpu", "gpu", "cpu, gpu" or "any"; then what its flags say: "any; may round; not strict".
std::string PredicateOf(const PassInfo& info);

// Passes that may change values by rounding, within the limits of docs/numerics.md: on ordinary
// inputs by no more than `run --expect` allows.
constexpr bool MayRound(Pass pass) {
  return (InfoOf(pass).flags & kMayRound) != 0;
}
constexpr bool IsFor(Pass pass, TargetKind kind) {
  return InfoOf(pass).targets == kNoTarget || (InfoOf(pass).targets & kind) != 0;
}

// One pass of a pipeline. Neighbours with the same `group`, unless it is 0, are repeated together
// until a round changes nothing.
struct Step {
  Pass pass{};
  uint8_t group = 0;
  constexpr bool operator==(const Step&) const = default;
};
using Pipeline = std::vector<Step>;

// The number of the first step whose needs are not met; that of the steps when there is none. What
// a group breaks is broken in its second round.
constexpr size_t FirstUnsound(std::span<const Step> steps, uint32_t known = kAtStart) {
  for (size_t begin = 0; begin < steps.size();) {
    size_t end = begin + 1;
    while (steps[begin].group != 0 && end < steps.size() && steps[end].group == steps[begin].group)
      ++end;
    for (int round = 0; round < (steps[begin].group != 0 ? 2 : 1); ++round) {
      for (size_t i = begin; i < end; ++i) {
        const PassInfo& info = InfoOf(steps[i].pass);
        if ((known & info.needs) != info.needs) return i;
        known = (known & ~info.breaks) | info.gives;
      }
    }
    begin = end;
  }
  return steps.size();
}
constexpr bool IsSound(std::span<const Step> steps) {
  return FirstUnsound(steps) == steps.size();
}
// Whether a pipeline of a kind of target is sound after kDefaultPipeline or any other that the user
// chose, which may give nothing, and whether it holds passes for that kind alone.
constexpr bool IsSoundFor(std::span<const Step> steps, TargetKind kind) {
  for (const Step& step : steps)
    if (!IsFor(step.pass, kind)) return false;
  return IsSound(steps);
}

// What `Compile` runs before all others for CompileOptions::hoist.
inline constexpr Step kHoistPipeline[] = {{Pass::kHoistConstants}};
static_assert(IsSound(kHoistPipeline));

// What `Compile` runs first: executables take and give arrays.
inline constexpr Step kEntryPipeline[] = {{Pass::kFlattenEntry}};
static_assert(IsSound(kEntryPipeline));

// What `Compile` runs then, and `tokamak opt` when it is told nothing.
inline constexpr Step kDefaultPipeline[] = {
    {Pass::kReadLibraryCalls},
    {Pass::kRecognizeRandom},
    {Pass::kInline},
    {Pass::kFlattenTuples},
    {Pass::kDce},
    {Pass::kRecognizeRandom},
    {Pass::kExpandComposites},
    {Pass::kRecognizeScans},
    {Pass::kSimplify, 1},
    {Pass::kRemoveNarrowingPairs, 1},
    {Pass::kFoldConstants, 1},
    {Pass::kCse, 1},
    {Pass::kSimplifyConditionals, 1},
    {Pass::kSimplifyLoops, 1},
    {Pass::kDce, 1},
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

// What every module goes through between those and the planner, one for each kind of target.
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
};
inline constexpr Step kGpuPipeline[] = {
    {Pass::kExpandQuantized},
    {Pass::kExpandOps},
    {Pass::kAssignConvolutionLayouts},
    {Pass::kSplitDilatedConvolutions},
    {Pass::kExpandConvolutions},
    {Pass::kHoistInputGemms},
    {Pass::kSinkAccumulations},
    {Pass::kSplitK},
    {Pass::kLegalizeDots},
    {Pass::kExpandRandom},
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
};
static_assert(IsSoundFor(kCpuPipeline, kCpu) && IsSoundFor(kGpuPipeline, kGpu),
              "a pass runs before what it needs, or for another kind of target; see passes.def");
constexpr std::span<const Step> PipelineOf(TargetKind kind) {
  return kind == kGpu ? std::span<const Step>(kGpuPipeline) : std::span<const Step>(kCpuPipeline);
}

// The paper's compiler: what --fusion=rules runs on a program that is ready to be cut into kernels.
inline constexpr Step kPaperPipeline[] = {
    {Pass::kInstructionFusion},
    {Pass::kFusionMerger},
    {Pass::kMultiOutputFusion},
    {Pass::kHorizontalFusion},
};
// What follows it when kernels are made: the planner is told which instructions were fused.
inline constexpr Step kFusedPipeline[] = {{Pass::kInlineFusions}};

// "inline,dce,(simplify,cse)*"; "default", "cpu" and "gpu" stand for the pipelines above. TK3001
// names the nearest pass there is, TK3003 what a pass needs and who would give it.
Result<Pipeline> ParsePipeline(std::string_view text);
// The same for a list of passes that are not to be run in that order: needs are not looked at.
Result<Pipeline> ParsePipelineUnchecked(std::string_view text);
std::string ToString(std::span<const Step> steps);

// One run of one pass.
struct PassRun {
  Pass pass{};
  int64_t round = 0;  // of its group, from 0
  size_t instrs_before = 0, instrs_after = 0;
  double ms = 0, verify_ms = 0;
  Changed changed = Changed::kNo;
  size_t changes = 0;  // records taken
};

// Told after each pass; the module is in order then (Computation::PutInOrder).
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
  std::optional<Pass> stop_after;        // its first run is the last
  bool verify_each = kVerifyByDefault;   // TK3004 names the pass after which it does not verify
  PipelineListener* listener = nullptr;  // may be null
};

// Runs a pipeline over a verified module. `functions` holds one per row of passes.def
// (passes/passes.h). Passes whose row excludes the context's options (kNotStrict, kPlanned,
// kAddsArguments) are left out; one for another target is an error (TK3003).
// A group that does not settle within the limits is a record that names the rules which fired last,
// and an error (TK3005) where every pass is verified. Afterwards all computations are in order.
Result<std::vector<PassRun>> RunPipeline(Module& module, std::span<const Step> steps,
                                         std::span<const PassFn> functions, PassContext& context,
                                         const PipelineOptions& options = {});

// A table for people: one line a run, and their sum. Linear.
std::string RenderRuns(std::span<const PassRun> runs);

}  // namespace tokamak
