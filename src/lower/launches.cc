// Launches of kernels, one by one or in packs.

#include <algorithm>

#include "analysis/independent.h"
#include "analysis/loops.h"
#include "cost/work.h"
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
                   .places = {Unsettled(to), Unsettled(from)},
                   .bytes = memory_.bytes(to),
                   .at = memory_.now()});
}

void Lowerer::Launch(Frame& frame, int kernel) {
  if (frame.launched[static_cast<size_t>(kernel)]) return;
  std::vector<const PlannedKernel*> parts;
  for (int part : frame.LaunchOf(kernel)) {
    frame.launched[static_cast<size_t>(part)] = true;
    parts.push_back(&frame.plan->kernels[static_cast<size_t>(part)]);
  }
  LaunchTogether(frame, parts);
}

void Lowerer::LaunchTogether(Frame& frame, const std::vector<const PlannedKernel*>& parts) {
  for (const PlannedKernel* part : parts) {
    for (const Instr* root : part->region.roots) {
      // A loop has made some of its own (LaunchRounds).
      if (frame.leaves[root].empty()) frame.leaves[root] = NewLeaves(root->shape());
      frame.done[root] = true;
    }
  }
  // What an update leaves alone is copied, unless it is there already (MemoryPlan).
  for (const PlannedKernel* part : parts)
    for (const auto& [argument, old] : part->built.updates) {
      const KernelArgument& output = part->built.arguments[argument];
      Copy(*frame.steps, frame.leaves[output.instr][output.part], frame.leaves[old][0]);
    }
  RunStep pack{.kind = StepKind::kPack, .blocks = {{}}, .at = memory_.Tick()};
  std::vector<RunStep>& launches = pack.blocks[0];
  for (const PlannedKernel* part : parts) {
    launches.push_back(StepOf(frame, *part));
    launches.back().first_unit = static_cast<int64_t>(launches.size()) - 1;
  }
  pack.grid = pack.grain = static_cast<int64_t>(parts.size());
  UseArguments(parts, launches);
  ++program_.launches;
  frame.steps->push_back(parts.size() > 1 ? std::move(pack) : std::move(launches[0]));
}

RunStep Lowerer::StepOf(Frame& frame, const PlannedKernel& planned) {
  const BuiltKernel& built = planned.built;
  RunStep step{.kind = StepKind::kLaunch, .target = program_.kernels.size(), .at = memory_.now()};
  for (const KernelArgument& argument : built.arguments) {
    // A constant of a loop's body belongs to another computation.
    MemoryValue value = argument.instr->parent() == frame.computation
                            ? frame.leaves[argument.instr][argument.part]
                            : ConstantOf(*argument.instr)[0];
    // What is updated is read where it was copied to.
    for (const auto& [output, old] : built.updates)
      if (!argument.is_output && old == argument.instr)
        value = frame.leaves[built.arguments[output].instr][built.arguments[output].part];
    step.places.push_back(Unsettled(value));
  }
  step.grid = built.grid;
  step.grain = step.grid;  // until somebody knows what an iteration takes
  program_.kernels.push_back(built.kernel);
  program_.sources.push_back({planned.region, planned.kind, built.arguments, built.updates});
  return step;
}

// The parts of a pack run at the same time: what several of them read must outlive the moment at
// which their results come into being, so that none of these lies over it.
void Lowerer::UseArguments(const std::vector<const PlannedKernel*>& parts,
                           const std::vector<RunStep>& steps) {
  constexpr size_t kSeveral = SIZE_MAX;
  std::unordered_map<MemoryValue, size_t> readers;
  std::vector<MemoryValue> shared;
  for (size_t p = 0; p < parts.size(); ++p) {
    const BuiltKernel& built = parts[p]->built;
    for (size_t i = 0; i < built.arguments.size(); ++i) {
      MemoryValue value = ValueOf(steps[p].places[i]);
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
    for (auto [input, output] : built.in_place)
      if (IsReadOnlyThere(built, steps[p].places, input, output))
        memory_.MayShare(ValueOf(steps[p].places[output]), ValueOf(steps[p].places[input]));
  }
  if (shared.empty()) return;
  memory_.Tick();
  for (MemoryValue value : shared) memory_.Use(value);
}

bool Lowerer::IsReadOnlyThere(const BuiltKernel& built, const std::vector<Place>& places,
                              size_t input, size_t output) {
  for (size_t i = 0; i < built.arguments.size(); ++i) {
    if (built.arguments[i].is_output || places[i].offset != places[input].offset) continue;
    if (std::find(built.in_place.begin(), built.in_place.end(), std::pair(i, output)) ==
        built.in_place.end())
      return false;
  }
  return true;
}

namespace {

// By how much a loop's kernel must be dearer than its steps to be left. Prices of loops that wait
// for themselves are rough, most of all on GPUs.
double MostOfSteps(const BuiltKernel& built, int64_t places, const Machine& machine) {
  constexpr double kOnGpu = 4, kOnCpu = 1.5;
  // Nothing runs beside the one place of a CPU: it waits longer than is counted (32 x 32 by a
  // vector in rounds: 89 us of 68).
  constexpr double kInOnePlace = 0.7;
  // Where blocks of a cluster meet every round, that is what they wait for, and it is counted.
  if (ClusterOf(built.kernel) > 1) return 1;
  return machine.is_gpu() ? kOnGpu : places == 1 ? kInOnePlace : kOnCpu;
}

// Whether users have a say in what a loop's body is made of.
bool IsPinned(const Computation& computation, const Pins& pins) {
  for (const Pin& pin : pins.all())
    for (const Instr* member : pin.members)
      if (member->parent() == &computation) return true;
  for (const Instr* caller : computation.Callers())
    for (const Computation* called : caller->called())
      if (IsPinned(*called, pins)) return true;
  return false;
}

}  // namespace

double Lowerer::StepsMicros(const Instr& loop, std::optional<int64_t> rounds) const {
  constexpr int64_t kUnknown = 16;  // as kernels of unknown rounds are priced
  PlanOptions quick = options_.plan;
  quick.mode = FusionMode::kGreedy;
  DecisionLog unheard;
  double micros = 0;
  for (const Computation* computation : loop.called()) {
    ComputationPlan plan = PlanComputation(*computation, options_.machine, quick, unheard);
    for (const PlannedKernel& kernel : plan.kernels)
      micros += PriceOf(WorkOf(kernel.built.kernel, kernel.built.grid, options_.machine),
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
  return micros * static_cast<double>(rounds.value_or(kUnknown));
}

bool Lowerer::PlannedRounds::Needs(size_t carry) const {
  const Instr* first = region.loop.init(carry);
  // What stays is its own result.
  if (region.form.carries[carry].kind == CarryKind::kStays) return true;
  for (const Instr* input : region.inputs)
    if (input == first) return true;
  for (const auto& [output, old] : kernel.built.updates)
    if (old == first) return true;
  return false;
}

void Lowerer::PlanRounds(Frame& frame, const Instr& instr) {
  FusionMode mode = options_.plan.mode;
  if (mode == FusionMode::kNone || mode == FusionMode::kRules) return;
  RoundsRegion rounds = RoundsRegionOf(instr);
  BuildOutcome outcome{std::nullopt, rounds.form.why_not};
  const Pins* pins = options_.plan.pins;
  if (effects_.Of(instr))
    outcome.why_not = "it has effects";
  else if (RunsInChunks(instr))
    outcome.why_not = "it would run for long: the loop within it is a kernel";
  else if (pins != nullptr && IsPinned(*instr.called(1), *pins))
    outcome.why_not = "users have said what is to be one kernel in it";
  if (outcome.why_not.empty())
    outcome = OnlyIfSound(BuildRounds(rounds, options_.machine, "rounds"));
  Decision record{.pass = "lower",
                  .rule = "lower.rounds",
                  .verdict = Verdict::kRejected,
                  .subject = LabelOf(instr),
                  .origins = instr.origins(),
                  .because = outcome.why_not};
  if (outcome.built) {
    record.before_us = StepsMicros(instr, rounds.rounds);
    record.after_us = PriceOf(WorkOf(outcome.built->kernel, outcome.built->grid, options_.machine),
                              options_.machine)
                          .total();
    double most = MostOfSteps(*outcome.built, rounds.form.Places(), options_.machine);
    if (record.after_us <= most * record.before_us)
      record.verdict = Verdict::kTaken;
    else
      outcome.built.reset();
    record.because = std::to_string(rounds.form.Places()) + " places, " +
                     (rounds.rounds ? std::to_string(*rounds.rounds) : "unknown") + " rounds";
  }
  log_.Add(std::move(record));
  if (!outcome.built) return;
  PlannedRounds& made = frame.rounds[&instr];
  made.region = std::move(rounds);
  PlannedKernel& planned = made.kernel;
  planned.kind = RegionKind::kLoop;
  planned.region = {.computation = frame.computation,
                    .instrs = {&instr},
                    .inputs = InputsOf({&instr}),
                    .roots = {&instr}};
  planned.built = std::move(*outcome.built);
}

void Lowerer::LaunchRounds(Frame& frame, const Instr& instr, const PlannedRounds& rounds) {
  const RoundsRegion& region = rounds.region;
  PlannedKernel planned = rounds.kernel;
  planned.built.kernel.name = "rounds" + std::to_string(program_.kernels.size());
  Leaves& leaves = frame.leaves[&instr];
  for (size_t i = 0; i < region.loop.size(); ++i) {
    const Instr* init = region.loop.init(i);
    bool stays = region.form.carries[i].kind == CarryKind::kStays;
    leaves.push_back(stays              ? frame.leaves[init][0]
                     : region.wanted[i] ? memory_.New(BytesOfLeaf(init->shape()))
                                        : kNoMemory);
  }
  LaunchTogether(frame, {&planned});
}

}  // namespace tokamak
