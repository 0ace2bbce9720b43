#include <unordered_map>

#include "analysis/effects.h"
#include "passes/passes.h"

namespace tokamak {
namespace {

// Instructions reachable from the root, a side effect or a control dependence.
struct Live {
  InstrMap<char> is;
  size_t count = 0;
};

Live FindLive(const Computation& computation, const Effects& effects) {
  Live live{InstrMap<char>(computation, 0)};
  std::vector<const Instr*> open;
  auto mark = [&](const Instr* instr) {
    if (live.is[instr] != 0) return;
    live.is[instr] = 1;
    ++live.count;
    open.push_back(instr);
  };
  mark(computation.root());
  for (const Instr* parameter : computation.parameters()) mark(parameter);
  if (effects.Of(computation))
    for (const Instr* instr : computation.Instrs())
      if (effects.Of(*instr)) mark(instr);
  while (!open.empty()) {
    const Instr* instr = open.back();
    open.pop_back();
    for (const Instr* operand : instr->operands()) mark(operand);
    for (const Instr* before : instr->extras().control_predecessors) mark(before);
  }
  return live;
}

Changed RemoveDeadInstrs(Computation& computation, const Effects& effects, PassContext& context) {
  Live live = FindLive(computation, effects);
  if (live.count == computation.size()) return Changed::kNo;
  std::vector<Instr*> order = computation.PostOrder();
  Changed changed = Changed::kNo;
  for (size_t i = order.size(); i-- > 0;) {  // users first
    if (live.is[order[i]] != 0) continue;
    context.Accepted("dce.unused", *order[i]);
    computation.Remove(order[i]);
    changed = Changed::kYes;
  }
  return changed;
}

// Removes computations that are reachable neither from the entry, nor from a public function, nor
// from a function that an instruction references by name.
Changed RemoveDeadComputations(Module& module, PassContext& context) {
  std::unordered_map<const Computation*, size_t> numbers;
  for (size_t i = 0; i < module.computations().size(); ++i)
    numbers.emplace(module.computations()[i].get(), i);
  std::vector<bool> keep(module.computations().size(), false);
  std::vector<const Computation*> open;
  auto mark = [&](const Computation* computation) {
    if (computation == nullptr || keep[numbers.at(computation)]) return;
    keep[numbers.at(computation)] = true;
    open.push_back(computation);
  };
  mark(module.entry());
  for (const auto& computation : module.computations())
    if (computation->is_public || module.entry() == nullptr) mark(computation.get());
  while (!open.empty()) {
    const Computation* computation = open.back();
    open.pop_back();
    for (const Instr* instr : computation->Callers())
      for (const Computation* callee : instr->called()) mark(callee);
    if (computation->CountOf(Op::kRunParallel) == 0) continue;
    for (const Instr* instr : computation->Instrs()) {
      if (instr->op() != Op::kRunParallel) continue;
      for (const std::string& name : instr->attrs<RunParallelAttrs>().infeed)
        mark(module.FindComputation(name));
    }
  }
  Changed changed = Changed::kNo;
  for (size_t i = 0; i < keep.size(); ++i) {
    if (keep[i]) continue;
    const Computation& computation = *module.computations()[i];
    context.Accepted("dce.uncalled", *computation.root(), nullptr,
                     "computation " + computation.name());
    changed = Changed::kYes;
  }
  if (changed == Changed::kYes) module.KeepComputations(keep);
  return changed;
}

}  // namespace

// Dead code elimination. Removes instructions that neither a result nor a side effect needs, and
// computations without callers. Keeps parameters and the control predecessors of live instructions.
Result<Changed> Dce(Module& module, PassContext& context) {
  Changed changed = RemoveDeadComputations(module, context);
  Effects effects(module);
  Changed removed = Changed::kNo;
  for (const auto& computation : module.computations())
    removed |= RemoveDeadInstrs(*computation, effects, context);
  if (removed == Changed::kYes) removed |= RemoveDeadComputations(module, context);
  return changed | removed;
}

}  // namespace tokamak
