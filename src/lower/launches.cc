// Launches of kernels, one by one or in packs.

#include <algorithm>

#include "analysis/loops.h"
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
      frame.leaves[root] = NewLeaves(root->shape());
      frame.done[root] = true;
    }
  }
  // What an update leaves alone is copied, unless it is there already (MemoryPlan).
  for (const PlannedKernel* part : parts)
    for (const auto& [argument, old] : part->built.updates)
      Copy(*frame.steps, frame.leaves[part->built.arguments[argument].instr][0],
           frame.leaves[old][0]);
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
    MemoryValue value = frame.leaves[argument.instr][argument.part];
    // What is updated is read where it was copied to.
    for (const auto& [output, old] : built.updates)
      if (!argument.is_output && old == argument.instr)
        value = frame.leaves[built.arguments[output].instr][0];
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

bool Lowerer::LaunchRounds(Frame& frame, const Instr& instr) {
  if (options_.machine.is_gpu() || options_.plan.mode == FusionMode::kNone) return false;
  std::optional<WhileLoop> loop = LoopOf(const_cast<Instr*>(&instr));  // looks only
  std::optional<uint64_t> rounds = loop ? TripCount(*loop) : std::nullopt;
  if (!rounds || *rounds == 0 || *rounds > INT32_MAX) return false;
  PlannedKernel planned;
  planned.kind = RegionKind::kLoop;
  planned.region = {.computation = frame.computation,
                    .instrs = {&instr},
                    .inputs = InputsOf({&instr}),
                    .roots = {&instr}};
  BuildOutcome outcome =
      BuildRounds(planned.region, static_cast<int64_t>(*rounds), options_.machine,
                  "rounds" + std::to_string(program_.kernels.size()));
  log_.Add({.pass = "lower",
            .rule = "lower.rounds",
            .verdict = outcome.built ? Verdict::kTaken : Verdict::kRejected,
            .subject = LabelOf(instr),
            .origins = instr.origins(),
            .because = outcome.why_not});
  if (!outcome.built) return false;
  planned.built = std::move(*outcome.built);
  LaunchTogether(frame, {&planned});
  return true;
}

}  // namespace tokamak
