// Kernel launches, single or horizontally fused, and whole-loop kernels.

#include <algorithm>

#include "analysis/independent.h"
#include "analysis/loops.h"
#include "cost/numbers.h"
#include "cost/work.h"
#include "fusion/extensions.h"
#include "kernel/cluster.h"
#include "lower/lowerer.h"

namespace tokamak {

void Lowerer::Copy(std::vector<RunStep>& steps, MemoryValue to, MemoryValue from) {
  if (to == kNoMemory || memory_.bytes(to) == 0) return;
  memory_.Tick();
  memory_.Use(from);
  memory_.Define(to);
  memory_.AddCopy(to, from);
  steps.push_back({.kind = StepKind::kCopy,
                   .slices = {Unassigned(to), Unassigned(from)},
                   .bytes = memory_.bytes(to),
                   .at = memory_.now()});
}

void Lowerer::Launch(Frame& frame, int kernel) {
  if (frame.launched[static_cast<size_t>(kernel)]) return;
  std::vector<const PlannedKernel*> entries;
  for (int part : frame.LaunchOf(kernel)) {
    frame.launched[static_cast<size_t>(part)] = true;
    entries.push_back(&frame.plan->kernels[static_cast<size_t>(part)]);
  }
  LaunchTogether(frame, entries);
}

void Lowerer::LaunchTogether(Frame& frame, const std::vector<const PlannedKernel*>& entries) {
  for (const PlannedKernel* part : entries) {
    for (const Instr* root : part->region.roots) {
      // A whole-loop kernel allocates some of its own leaves (LaunchWholeLoop).
      if (frame.leaves[root].empty()) frame.leaves[root] = NewLeaves(root->shape());
      frame.done[root] = true;
    }
  }
  // An in-place update starts from a copy of the old value. MemoryPlan drops the copy if both share
  // memory.
  for (const PlannedKernel* part : entries)
    for (const auto& [argument, old] : part->built.must_alias) {
      const KernelArgument& output = part->built.arguments[argument];
      Copy(*frame.steps, frame.leaves[output.instr][output.result_index], frame.leaves[old][0]);
    }
  RunStep group{.kind = StepKind::kHorizontal, .blocks = {{}}, .at = memory_.Tick()};
  std::vector<RunStep>& launches = group.blocks[0];
  for (const PlannedKernel* part : entries) {
    launches.push_back(StepOf(frame, *part));
    launches.back().first_unit = static_cast<int64_t>(launches.size()) - 1;
  }
  group.grid = group.min_chunk = static_cast<int64_t>(entries.size());
  UseArguments(entries, launches);
  ++program_.launches;
  frame.steps->push_back(entries.size() > 1 ? std::move(group) : std::move(launches[0]));
}

RunStep Lowerer::StepOf(Frame& frame, const PlannedKernel& planned) {
  const BuiltKernel& built = planned.built;
  RunStep step{.kind = StepKind::kLaunch, .target = program_.kernels.size(), .at = memory_.now()};
  for (const KernelArgument& argument : built.arguments) {
    // A constant of a loop body belongs to another computation.
    MemoryValue value = argument.instr->parent() == frame.computation
                            ? frame.leaves[argument.instr][argument.result_index]
                            : ConstantOf(*argument.instr)[0];
    // A kernel that updates a value also reads it from the copy.
    for (const auto& [output, old] : built.must_alias)
      if (!argument.is_output && old == argument.instr)
        value = frame.leaves[built.arguments[output].instr][built.arguments[output].result_index];
    step.slices.push_back(Unassigned(value));
  }
  step.grid = built.grid;
  step.min_chunk = step.grid;  // set later, when the cost of an iteration is known
  program_.kernels.push_back(built.kernel);
  program_.sources.push_back(
      {planned.region, planned.kind, built.arguments, built.must_alias, built.schedule});
  LogGenerator(planned);
  program_.hooked_us.push_back(HookedCost(planned));
  return step;
}

void Lowerer::LogGenerator(const PlannedKernel& planned) {
  const Instr& root = *planned.region.roots[0];
  for (std::string_view note : planned.built.kernel.notes)
    if (note.starts_with(kGeneratorNote))
      log_.Add({.pass = "lower",
                .rule = "plugin.generator",
                .subject = LabelOf(root),
                .origins = root.origins(),
                .because = std::string(note)});
}

double Lowerer::HookedCost(const PlannedKernel& planned) {
  const PlannerExtensions* extensions = options_.plan.extensions;
  if (extensions == nullptr || !extensions->HasCostHook()) return -1;
  Work work = WorkOf(planned.built.kernel, planned.built.grid, options_.machine);
  CostEstimate modeled = EstimateCost(work, options_.machine);
  std::string hook;
  double us =
      extensions
          ->Corrected(modeled, work, planned.built.kernel, planned.region, planned.kind, &hook)
          .total();
  if (hook.empty()) return -1;
  const Instr& root = *planned.region.roots[0];
  log_.Add({.pass = "lower",
            .rule = "plugin.cost",
            .subject = LabelOf(root),
            .origins = root.origins(),
            .before_us = modeled.total(),
            .after_us = us,
            .because = "the cost hook " + hook + " predicts it"});
  return us;
}

// The kernels of a horizontally fused launch run concurrently. A value that several of them read
// must stay live beyond the definition of their results, so that no result overwrites it in place.
void Lowerer::UseArguments(const std::vector<const PlannedKernel*>& entries,
                           const std::vector<RunStep>& steps) {
  constexpr size_t kSeveral = SIZE_MAX;
  std::unordered_map<MemoryValue, size_t> readers;
  std::vector<MemoryValue> shared;
  for (size_t p = 0; p < entries.size(); ++p) {
    const BuiltKernel& built = entries[p]->built;
    for (size_t i = 0; i < built.arguments.size(); ++i) {
      MemoryValue value = ValueOf(steps[p].slices[i]);
      if (built.arguments[i].is_output) {
        memory_.Define(value);
        continue;
      }
      memory_.Use(value);
      size_t& reader = readers.try_emplace(value, p).first->second;
      if (reader == p || reader == kSeveral) continue;
      reader = kSeveral;
      shared.push_back(value);
    }
    for (auto [input, output] : built.may_alias)
      if (IsReadOnlyThere(built, steps[p].slices, input, output))
        memory_.MayAlias(ValueOf(steps[p].slices[output]), ValueOf(steps[p].slices[input]));
  }
  if (shared.empty()) return;
  memory_.Tick();
  for (MemoryValue value : shared) memory_.Use(value);
}

bool Lowerer::IsReadOnlyThere(const BuiltKernel& built, const std::vector<BufferSlice>& slices,
                              size_t input, size_t output) {
  for (size_t i = 0; i < built.arguments.size(); ++i) {
    if (built.arguments[i].is_output || slices[i].offset != slices[input].offset) continue;
    if (std::find(built.may_alias.begin(), built.may_alias.end(), std::pair(i, output)) ==
        built.may_alias.end())
      return false;
  }
  return true;
}

namespace {

// A whole-loop kernel is accepted up to this ratio of its estimate to that of separate steps.
// Estimates of loops with dependent iterations are rough, most of all on GPUs, and usually too
// high.
double MostOfSteps(const BuiltKernel& built, int64_t slices, const Machine& machine) {
  // Each is a ratio. Chosen: bounds for the error of such estimates. Measured on an
  // x86 CPU (2 cores): loops with small networks are faster up to 1.16, and slower from 1.22 on.
  constexpr double kOnGpu = 4, kOnCpu = 1.2;
  // A single point on a CPU has no other work to hide latency and runs slower than estimated: a 32
  // x 32 matrix times a vector per iteration takes 89 us, estimated 68 us.
  constexpr double kOnePointFactor = 0.7;
  // With clusters, the barrier of each iteration dominates, and the estimate includes it.
  if (ClusterSizeOf(built.kernel) > 1) return 1;
  return machine.is_gpu() ? kOnGpu : slices == 1 ? kOnePointFactor : kOnCpu;
}

// Whether fusion constraints (pins) apply to the body of a loop, including nested loops.
bool HasConstraints(const Computation& computation, const FusionConstraints& constraints) {
  for (const FusionConstraint& constraint : constraints.all())
    for (const Instr* member : constraint.members)
      if (member->parent() == &computation) return true;
  for (const Instr* caller : computation.Callers())
    for (const Computation* called : caller->called())
      if (HasConstraints(*called, constraints)) return true;
  return false;
}

}  // namespace

double Lowerer::StepsMicros(const Instr& loop, std::optional<int64_t> trip_count) const {
  PlanOptions quick = options_.plan;
  quick.mode = FusionMode::kGreedy;
  DecisionLog unheard;
  double micros = 0;
  for (const Computation* computation : loop.called()) {
    ComputationPlan plan = PlanComputation(*computation, options_.machine, quick, unheard);
    for (const PlannedKernel& kernel : plan.kernels)
      micros += EstimateCost(WorkOf(kernel.built.kernel, kernel.built.grid, options_.machine),
                             options_.machine)
                    .total();
    for (Instr* caller : computation->Callers()) {
      std::optional<WhileLoop> inner =
          caller->op() == Op::kWhile ? LoopOf(caller) : std::optional<WhileLoop>();
      std::optional<uint64_t> trips = inner ? TripCount(*inner) : std::nullopt;
      if (inner)
        micros += StepsMicros(*caller, trips ? std::optional(static_cast<int64_t>(*trips))
                                             : std::optional<int64_t>());
    }
  }
  return micros * static_cast<double>(trip_count.value_or(kUnknownTripCount));
}

bool Lowerer::PlannedWholeLoop::Needs(size_t carry) const {
  const Instr* first = region.loop.init(carry);
  // A loop-invariant carry is its own result.
  if (region.independence.carries[carry].kind == CarryKind::kInvariant) return true;
  for (const Instr* input : region.inputs)
    if (input == first) return true;
  for (const auto& [output, old] : kernel.built.must_alias)
    if (old == first) return true;
  return false;
}

void Lowerer::PlanWholeLoop(Frame& frame, const Instr& instr) {
  FusionMode mode = options_.plan.mode;
  if (mode == FusionMode::kNone || mode == FusionMode::kXlaPasses) return;
  WholeLoopRegion region = WholeLoopRegionOf(instr);
  BuildOutcome outcome{std::nullopt, region.independence.why_not};
  const FusionConstraints* constraints = options_.plan.constraints;
  if (effects_.Of(instr))
    outcome.why_not = "it has side effects";
  else if (RunsInChunks(instr))
    outcome.why_not = "its inner loop is a whole-loop kernel and would run too long";
  else if (constraints != nullptr && HasConstraints(*instr.called(1), *constraints))
    outcome.why_not = "fusion constraints apply to its body";
  if (outcome.why_not.empty())
    outcome = VerifyOrReject(BuildWholeLoop(region, options_.machine, "fused_loop"));
  Decision record{.pass = "lower",
                  .rule = "loop.fuse",
                  .verdict = Verdict::kRejected,
                  .subject = LabelOf(instr),
                  .origins = instr.origins(),
                  .because = outcome.why_not};
  if (outcome.built) {
    record.before_us = StepsMicros(instr, region.trip_count);
    record.after_us =
        EstimateCost(WorkOf(outcome.built->kernel, outcome.built->grid, options_.machine),
                     options_.machine)
            .total();
    double most = MostOfSteps(*outcome.built, region.independence.Points(), options_.machine);
    if (record.after_us <= most * record.before_us)
      record.verdict = Verdict::kAccepted;
    else
      outcome.built.reset();
    record.because = std::to_string(region.independence.Points()) + " points, " +
                     (region.trip_count ? std::to_string(*region.trip_count) : "unknown") +
                     " iterations";
  }
  log_.Add(std::move(record));
  if (!outcome.built) return;
  PlannedWholeLoop& made = frame.fused_loops[&instr];
  made.region = std::move(region);
  PlannedKernel& planned = made.kernel;
  planned.kind = GeneratorKind::kLoop;
  planned.region = {.computation = frame.computation,
                    .instrs = {&instr},
                    .inputs = InputsOf({&instr}),
                    .roots = {&instr}};
  planned.built = std::move(*outcome.built);
}

void Lowerer::LaunchWholeLoop(Frame& frame, const Instr& instr,
                              const PlannedWholeLoop& planned_loop) {
  const WholeLoopRegion& region = planned_loop.region;
  PlannedKernel planned = planned_loop.kernel;
  planned.built.kernel.name = "fused_loop" + std::to_string(program_.kernels.size());
  Leaves& leaves = frame.leaves[&instr];
  for (size_t i = 0; i < region.loop.size(); ++i) {
    const Instr* init = region.loop.init(i);
    bool invariant = region.independence.carries[i].kind == CarryKind::kInvariant;
    leaves.push_back(invariant              ? frame.leaves[init][0]
                     : region.has_output[i] ? memory_.New(BytesOfLeaf(init->shape()))
                                            : kNoMemory);
  }
  LaunchTogether(frame, {&planned});
}

}  // namespace tokamak
