#include "random/program.h"

#include <algorithm>

#include "random/program_builder.h"
#include "support/check.h"

namespace tokamak::fuzz {
namespace {

struct DrawerTable {
  std::vector<Drawer> drawers;
  int64_t weight = 0;
};

// Weights that differ in wide programs. Host ops are excluded there.
struct WideWeight {
  std::string_view name;
  int weight;
};
constexpr WideWeight kWideWeights[] = {
    {"dot", 60},         {"matrix-products", 60},
    {"convolution", 60}, {"reduce-window", 50},
    {"sort", 50},        {"variadic-window", 20},
    {"topk", 50},        {"select-and-scatter", 50},
    {"scan", 50},        {"gather", 60},
    {"scatter", 60},     {"dynamic-update-slice", 40},
    {"fft", 40},         {"triangular-solve", 25},
    {"cholesky", 25},    {"infeed", 0},
    {"send-recv", 0},    {"check", 0},
    {"collective", 0},   {"dynamic", 0},
    {"dependency", 0},   {"custom-call", 0},
};

DrawerTable TableOf(bool wide) {
  DrawerTable all;
  for (auto drawers :
       {ElementwiseDrawers(), AlgebraDrawers(), MovementDrawers(), MovementPairDrawers(),
        IndexingDrawers(), ReductionDrawers(), ContractionDrawers(), NumericDrawers(),
        RandomDrawers(), ControlDrawers(), LoopDrawers(), StructureDrawers(), HostDrawers()})
    all.drawers.insert(all.drawers.end(), drawers.begin(), drawers.end());
  for (Drawer& drawer : all.drawers) {
    for (const WideWeight& other : kWideWeights)
      if (wide && other.name == drawer.name) drawer.weight = other.weight;
    all.weight += drawer.weight;
  }
  return all;
}

const Drawer& PickDrawer(Random& random, bool wide) {
  static const DrawerTable narrow_table = TableOf(false), wide_table = TableOf(true);
  const DrawerTable& table = wide ? wide_table : narrow_table;
  int64_t at = random.Below(table.weight);
  for (const Drawer& drawer : table.drawers) {
    at -= drawer.weight;
    if (at < 0) return drawer;
  }
  return table.drawers.back();
}

ElementType DrawType(Random& random) {
  int64_t dice = random.Below(100);
  if (dice < 34) return ElementType::kF32;
  if (dice < 48) return ElementType::kS32;
  if (dice < 55) return ElementType::kPred;
  if (dice < 62) return ElementType::kU32;
  if (dice < 67) return ElementType::kBF16;
  if (dice < 71) return ElementType::kF16;
  if (dice < 76) return ElementType::kF64;
  if (dice < 80) return ElementType::kC64;
  using T = ElementType;
  return random.Pick(
      {T::kS8,        T::kU8,       T::kS16,      T::kU16,        T::kS64,        T::kU64,
       T::kC128,      T::kS4,       T::kU4,       T::kS2,         T::kU2,         T::kF8E4M3FN,
       T::kF8E5M2,    T::kF8E4M3,   T::kF8E3M4,   T::kF8E4M3FNUZ, T::kF8E5M2FNUZ, T::kF8E4M3B11FNUZ,
       T::kF8E8M0FNU, T::kF4E2M1FN, T::kF6E2M3FN, T::kF6E3M2FN,   T::kS8,         T::kU8,
       T::kS64,       T::kU64});
}

// Removes computations that no instruction calls, transitively.
void RemoveUncalled(Module& module) {
  for (bool changed = true; changed;) {
    changed = false;
    std::vector<const Computation*> called{module.entry()};
    for (const auto& computation : module.computations())
      for (const Instr* instr : computation->Instrs())
        called.insert(called.end(), instr->called().begin(), instr->called().end());
    for (const auto& computation : module.computations()) {
      if (std::find(called.begin(), called.end(), computation.get()) != called.end()) continue;
      module.RemoveComputation(computation.get());
      changed = true;
      break;
    }
  }
}

// Returns most of the unused values, or any value if there are none.
Instr* DrawRoot(ProgramBuilder& builder) {
  std::vector<Instr*> results;
  for (Instr* value : builder.values())
    if (value->users().empty() && value->op() != Op::kParameter && results.size() < 8)
      results.push_back(value);
  if (results.size() > 1 && builder.random().Percent(30)) results.pop_back();
  if (builder.random().Percent(30)) results.push_back(builder.Any());
  if (results.empty()) results.push_back(builder.Any());
  Instr* tuple = builder.AnyTuple();
  if (tuple != nullptr && builder.random().Percent(20)) results.push_back(tuple);
  if (results.size() == 1 && builder.random().Percent(70)) return results[0];
  return builder.Put(Op::kTuple, results);
}

Shape DrawParameterShape(ProgramBuilder& builder) {
  Shape shape = builder.AnyShape(builder.AnyType());
  if (!builder.random().Percent(6)) return shape;
  Shape other = builder.AnyShape(builder.AnyType());
  return Shape::Tuple({shape, other});
}

// Adds information that does not affect values: shardings, origins, control dependences.
void Decorate(Random& random, Module& module) {
  for (const auto& computation : module.computations()) {
    Instr* before = nullptr;
    for (Instr* instr : computation->Instrs()) {
      int64_t dice = random.Below(100);
      if (dice < 10 && instr->shape().IsArray() && instr->op() != Op::kParameter) {
        Sharding sharding;
        if (random.Percent(50)) {
          sharding.kind = ShardingKind::kMaximal;
          sharding.tile_devices.list = {random.Below(2)};
        }
        instr->mutable_extras().sharding = sharding;
      } else if (dice < 20 && before != nullptr && instr->op() != Op::kParameter) {
        instr->mutable_extras().control_predecessors = {before};
      } else if (dice < 50) {
        Frame frame;
        frame.file = "model.py";
        frame.line = static_cast<int32_t>(random.Between(1, 30));
        Origin origin;
        origin.op_name = "jit(f)/" + std::string(instr->info().name);
        origin.frame = module.origins().AddFrame(frame);
        instr->set_origins(module.origins().Add(origin));
      }
      if (instr->op() != Op::kParameter) before = instr;
    }
  }
}

// A program of all ops; returns its result.
Instr* DrawOps(ProgramBuilder& entry) {
  for (int64_t i = entry.random().Between(1, 3); i > 0; --i)
    entry.Parameter(DrawParameterShape(entry));
  DrawOn(entry, entry.program_state().target);
  return DrawRoot(entry);
}

}  // namespace

void DrawOn(ProgramBuilder& builder, int instrs) {
  ProgramState& program_state = builder.program_state();
  int end = std::min(program_state.instrs + instrs, program_state.target);
  for (int attempts = 0; program_state.instrs < end && attempts < 4 * instrs; ++attempts) {
    const Drawer& drawer = PickDrawer(program_state.random, program_state.size.wide);
    // The entry's result still has to be added.
    if (builder.HasRoom(drawer.instrs + 2)) drawer.draw(builder);
  }
}

Instr* Loose(ProgramBuilder& builder) {
  const auto& values = builder.values();
  for (auto it = values.rbegin(); it != values.rend(); ++it)
    if ((*it)->users().empty() && (*it)->op() != Op::kParameter) return *it;
  return builder.Any();
}

std::unique_ptr<Module> DrawProgram(uint64_t seed, const ProgramSize& size) {
  auto module = std::make_unique<Module>("random");
  ProgramState program_state(*module, seed, size);
  for (int64_t i = program_state.random.Between(2, 4); i > 0; --i)
    program_state.types.push_back(DrawType(program_state.random));
  program_state.target = static_cast<int>(
      program_state.random.Between(std::min(4, size.max_instrs / 2), size.max_instrs - 2));
  ProgramBuilder entry(program_state, "main", ProgramBuilder::Kind::kEntry, 0);
  module->set_entry(entry.computation());
  Instr* root = size.contractions ? DrawContractions(entry) : DrawOps(entry);
  TOK_CHECK(root != nullptr, "a drawn program has no result");
  entry.computation()->set_root(root);
  RemoveUncalled(*module);
  for (const auto& computation : module->computations()) computation->PutInOrder();
  if (program_state.random.Percent(10)) Decorate(program_state.random, *module);
  return module;
}

}  // namespace tokamak::fuzz
