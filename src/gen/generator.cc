#include "gen/generator.h"

#include <algorithm>
#include <iterator>

#include "gen/gpu/gpu.h"
#include "gen/selects_to_branches.h"
#include "gen/unswitch_loops.h"
#include "kernel/verify.h"

namespace tokamak {

namespace {

// In the order of GeneratorKind.
constexpr std::string_view kGeneratorNames[] = {"loop", "rows", "columns", "scatter",
                                                "scan", "sort", "contract"};

}  // namespace

std::string_view NameOf(GeneratorKind kind) {
  return kGeneratorNames[static_cast<size_t>(kind)];
}

std::optional<GeneratorKind> GeneratorKindFromName(std::string_view name) {
  const auto* found = std::find(std::begin(kGeneratorNames), std::end(kGeneratorNames), name);
  if (found == std::end(kGeneratorNames)) return std::nullopt;
  return static_cast<GeneratorKind>(found - std::begin(kGeneratorNames));
}

namespace {

// Lines of source locations in a kernel's text. Chosen: a reader sees the head and the code of a
// large kernel on one screen.
constexpr size_t kMaxNotes = 12;

BuildOutcome BuildCpu(const FusedRegion& region, GeneratorKind kind, const Schedule* schedule,
                      const Machine& machine, const std::string& name) {
  switch (kind) {
    case GeneratorKind::kLoop: {
      if (BuildOutcome random = BuildPhilox(region, machine, name); random.built)
        return schedule == nullptr
                   ? std::move(random)
                   : BuildOutcome{std::nullopt, "kernels of random bits have no schedules"};
      bool is_tiled = schedule != nullptr && schedule->tile_rows > 1;
      if (schedule == nullptr || is_tiled) {
        BuildOutcome tiled = BuildTranspose(region, schedule, machine, name);
        if (tiled.built || is_tiled) return tiled;
      }
      return BuildElementwise(region, schedule, machine, name);
    }
    case GeneratorKind::kRows:
      return BuildRows(region, schedule, machine, name);
    case GeneratorKind::kColumns:
      return BuildColumns(region, schedule, machine, name);
    case GeneratorKind::kScatter:
      return BuildScatter(region, machine, name);
    case GeneratorKind::kScan:
      return BuildScan(region, machine, name);
    case GeneratorKind::kSort:
      return BuildSort(region, machine, name);
    case GeneratorKind::kContract:
      return BuildContract(region, schedule, machine, name);
  }
  return {};
}

BuildOutcome BuildGpu(const FusedRegion& region, GeneratorKind kind, const Schedule* schedule,
                      const Machine& machine, const std::string& name) {
  switch (kind) {
    case GeneratorKind::kLoop: {
      bool is_tiled = schedule != nullptr && schedule->tile_rows > 1;
      if (schedule == nullptr || is_tiled) {
        BuildOutcome tiled = gpu::BuildTranspose(region, schedule, machine, name);
        if (tiled.built || is_tiled) return tiled;
      }
      return gpu::BuildElementwise(region, schedule, machine, name);
    }
    case GeneratorKind::kRows:
      return gpu::BuildRows(region, schedule, machine, name);
    case GeneratorKind::kColumns:
      return gpu::BuildColumns(region, schedule, machine, name);
    case GeneratorKind::kScatter:
      return gpu::BuildScatter(region, machine, name);
    case GeneratorKind::kScan:
      return gpu::BuildScan(region, machine, name);
    case GeneratorKind::kSort:
      return BuildSort(region, machine, name);
    case GeneratorKind::kContract:
      return gpu::BuildContract(region, schedule, machine, name);
  }
  return {};
}

// `schedule` may be null: the first one that fits.
BuildOutcome BuildKind(const FusedRegion& region, GeneratorKind kind, const Schedule* schedule,
                       const Machine& machine, const std::string& name) {
  // Other generators would ignore the instruction.
  for (const Instr* instr : region.instrs)
    if ((instr->op() == Op::kScan && kind != GeneratorKind::kScan) ||
        (instr->op() == Op::kSort && kind != GeneratorKind::kSort) ||
        (instr->op() == Op::kScatter && kind != GeneratorKind::kScatter))
      return {std::nullopt, std::string(instr->info().name) + ": needs its own generator"};
  BuildOutcome outcome = machine.is_gpu() ? BuildGpu(region, kind, schedule, machine, name)
                                          : BuildCpu(region, kind, schedule, machine, name);
  if (!outcome.built) return outcome;
  if (machine.is_gpu())
    ConvertSelectsToBranches(outcome.built->kernel, machine);
  else
    UnswitchLoops(outcome.built->kernel, machine);
  return outcome;
}

}  // namespace

std::vector<Schedule> Schedules(const FusedRegion& region, GeneratorKind kind,
                                const Machine& machine) {
  bool is_gpu = machine.is_gpu();
  if (kind == GeneratorKind::kRows)
    return is_gpu ? gpu::RowsSchedules(region, machine) : RowsSchedules(region, machine);
  if (kind == GeneratorKind::kColumns)
    return is_gpu ? gpu::ColumnsSchedules(region, machine) : ColumnsSchedules(region, machine);
  if (kind == GeneratorKind::kLoop)
    return is_gpu ? gpu::LoopSchedules(region, machine) : LoopSchedules(region, machine);
  if (kind != GeneratorKind::kContract) return {};
  return is_gpu ? gpu::ContractSchedules(region, machine) : ContractSchedules(region, machine);
}

BuildOutcome BuildRegion(const FusedRegion& region, GeneratorKind kind, const Machine& machine,
                         const std::string& name) {
  return BuildKind(region, kind, nullptr, machine, name);
}

BuildOutcome BuildRegion(const FusedRegion& region, const Schedule& schedule,
                         const Machine& machine, const std::string& name) {
  if (!HasSchedules(schedule.kind, machine.is_gpu()))
    return {std::nullopt,
            "the generator '" + std::string(NameOf(schedule.kind)) + "' has no schedules"};
  if (std::string why = WhyNotFields(schedule, machine.is_gpu()); !why.empty())
    return {std::nullopt, why};
  return BuildKind(region, schedule.kind, &schedule, machine, name);
}

BuildOutcome VerifyOrReject(BuildOutcome outcome) {
  if (!outcome.built) return outcome;
  Status sound = VerifyKernel(outcome.built->kernel);
  if (sound.ok()) return outcome;
  return {std::nullopt, std::string(kGeneratorBug) + sound.error().message};
}

std::vector<std::string> NotesOf(const FusedRegion& region) {
  std::vector<std::string> notes;
  if (region.computation == nullptr || region.computation->module() == nullptr) return notes;
  const OriginTable& origins = region.computation->module()->origins();
  for (const Instr* instr : region.instrs) {
    if (instr->origins() == OriginId::kNone) continue;
    for (const Origin* origin : origins.Of(instr->origins())) {
      std::string note;
      if (origin->frame != FrameId::kNone) {
        const Frame& frame = origins.frame(origin->frame);
        note = frame.file + ":" + std::to_string(frame.line);
        if (!frame.function.empty()) note += " (" + frame.function + ")";
      }
      if (!origin->op_name.empty()) note += (note.empty() ? "" : " ") + origin->op_name;
      if (note.empty() || std::find(notes.begin(), notes.end(), note) != notes.end()) continue;
      if (notes.size() == kMaxNotes) {
        notes.push_back("...");
        return notes;
      }
      notes.push_back(std::move(note));
    }
  }
  return notes;
}

std::vector<KernelArgument> ArgumentsOf(const FusedRegion& region) {
  std::vector<KernelArgument> arguments;
  for (const Instr* input : region.inputs) arguments.push_back({.instr = input});
  for (const Instr* root : region.roots)
    for (size_t i = 0; i < ResultShapesOf(root->shape()).size(); ++i)
      arguments.push_back({.instr = root, .result_index = i, .is_output = true});
  return arguments;
}

int64_t InterleaveFactor(const Machine& machine) {
  // Vectors per iteration, for short and for long vectors. Chosen: four chains cover the latency of
  // an addition on the two units of a core; long vectors have fewer units and larger loop bodies.
  constexpr int64_t kOfShortVectors = 4, kOfLongVectors = 2;
  return machine.HasShortVectors() ? kOfShortVectors : kOfLongVectors;
}

int64_t FloorPowerOfTwo(int64_t x) {
  int64_t power = 1;
  while (power <= x / 2) power *= 2;
  return power;
}

int64_t ProductOf(const Dims& dims, size_t begin, size_t end) {
  int64_t product = 1;
  for (size_t d = begin; d < end; ++d) product *= dims[d];
  return product;
}

namespace {

// The loads and stores of a kernel, and the loads that each stored value depends on.
class MemoryFacts {
 public:
  explicit MemoryFacts(const Kernel& kernel) : kernel_(kernel), used_(kernel.nodes.size()) {
    Walk(kernel.body);
  }

  struct Use {
    ArrayId array{};
    ValueId index{};
  };
  std::vector<Use> stores, loads;  // in program order; loads without duplicates
  std::vector<size_t> load_at;     // per load: index of the first store that it precedes

 private:
  void Walk(const StmtList& block) {
    for (const Stmt& stmt : block) {
      switch (stmt.kind) {
        case StmtKind::kFor:
          Walk(stmt.body);
          break;
        case StmtKind::kIf:
        case StmtKind::kWhile:
          Visit(stmt.condition);
          Walk(stmt.condition_stmts);
          Walk(stmt.body);
          Walk(stmt.else_body);
          break;
        case StmtKind::kStore:
          Visit(stmt.value);
          Visit(stmt.index);
          stores.push_back({stmt.array, stmt.index});
          break;
        case StmtKind::kRead:
        case StmtKind::kShuffle:
          Visit(stmt.value);
          break;
        case StmtKind::kMatMul:
          for (ValueId operand : MatMulOperandsOf(stmt)) Visit(operand);
          break;
        case StmtKind::kAsync:
          for (ValueId operand : AsyncOperandsOf(stmt)) Visit(operand);
          break;
        case StmtKind::kBarrier:
          break;
      }
    }
  }

  void Visit(ValueId root) {
    std::vector<ValueId>& worklist = worklist_;
    worklist.push_back(root);
    while (!worklist.empty()) {
      ValueId id = worklist.back();
      worklist.pop_back();
      if (id == kNoValue || used_[static_cast<size_t>(id)]) continue;
      used_[static_cast<size_t>(id)] = true;
      const ScalarNode& node = kernel_.node(id);
      if (node.prim == Prim::kLoad) {
        loads.push_back({node.array(), node.operands[0]});
        load_at.push_back(stores.size());
      }
      for (ValueId operand : kernel_.operands(id)) worklist.push_back(operand);
    }
  }

  const Kernel& kernel_;
  std::vector<bool> used_;
  std::vector<ValueId> worklist_;  // of Visit, empty between its calls
};

// Whether an index distinguishes blocks and threads. If not, all of them perform the load, before
// each checks whether the element is its own.
bool IsInjective(const Kernel& kernel, ValueId index) {
  std::vector<bool> loops(kernel.loops.size()), seen(kernel.nodes.size());
  std::vector<ValueId> worklist = {index};
  while (!worklist.empty()) {
    ValueId id = worklist.back();
    worklist.pop_back();
    if (seen[static_cast<size_t>(id)]) continue;
    seen[static_cast<size_t>(id)] = true;
    const ScalarNode& node = kernel.node(id);
    if (node.prim == Prim::kLoop) loops[static_cast<size_t>(node.loop())] = true;
    for (ValueId operand : kernel.operands(id)) worklist.push_back(operand);
  }
  for (size_t i = 0; i < kernel.loops.size(); ++i) {
    const Loop& loop = kernel.loops[i];
    const ScalarNode& extent = kernel.node(loop.extent);
    bool once = extent.prim == Prim::kConst && IntOfBits(extent.type, extent.bits) == 1;
    bool shared = loop.role == LoopRole::kGrid || loop.role == LoopRole::kThread;
    if (shared && !once && !loops[i]) return false;
  }
  return true;
}

}  // namespace

void FindMayAlias(BuiltKernel& built) {
  MemoryFacts facts(built.kernel);
  for (size_t o = 0; o < built.kernel.ArgumentCount(); ++o) {
    ArrayId output{static_cast<uint32_t>(o)};
    const Array& to = built.kernel.array(output);
    if (to.access == Access::kRead) continue;
    // Every element that is read is written in the same iteration by a later store.
    auto is_stored_later = [&](size_t load) {
      for (size_t s = facts.load_at[load]; s < facts.stores.size(); ++s)
        if (facts.stores[s].array == output && facts.stores[s].index == facts.loads[load].index)
          return true;
      return false;
    };
    for (size_t i = 0; i < built.kernel.ArgumentCount(); ++i) {
      const Array& from = built.kernel.arrays[i];
      if (from.access != Access::kRead || BytesOf(from.type) != BytesOf(to.type)) continue;
      bool holds = true, loaded = false;
      for (size_t l = 0; l < facts.loads.size(); ++l) {
        if (facts.loads[l].array != ArrayId{static_cast<uint32_t>(i)}) continue;
        loaded = true;
        holds = holds && is_stored_later(l) && IsInjective(built.kernel, facts.loads[l].index);
      }
      if (holds && loaded) built.may_alias.emplace_back(i, o);
    }
  }
}

}  // namespace tokamak
