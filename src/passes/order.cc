#include <algorithm>
#include <unordered_map>

#include "analysis/effects.h"
#include "ir/post_order.h"
#include "passes/passes.h"
#include "rewrite/normal/graph.h"

namespace tokamak {
namespace {

// Orders the operands of commutative ops by the hash of their values.
bool OrderOperands(Instr* instr, const InstrMap<uint64_t>& hashes) {
  if (!Commutes(*instr)) return false;
  Instr *x = instr->operand(0), *y = instr->operand(1);
  if (hashes[x] <= hashes[y]) return false;
  instr->set_operand(0, y);
  instr->set_operand(1, x);
  return true;
}

// Parameters by number; then side effects in their order and the root, each after its operands;
// then unused instructions.
std::vector<Instr*> CanonicalOrder(const Computation& computation, const Effects& effects) {
  PostOrderWalk walk(computation.id_limit());
  for (Instr* parameter : computation.parameters()) walk.Visit(parameter);
  std::vector<Instr*> program = computation.PostOrder();
  for (Instr* instr : program)
    if (effects.Of(*instr)) walk.Visit(instr);
  walk.Visit(computation.root());
  for (Instr* instr : program) walk.Visit(instr);
  return walk.TakeOrder();
}

Changed OrderComputation(Computation& computation, const Effects& effects,
                         ComputationHashes& called, PassContext& context) {
  InstrMap<uint64_t> hashes = ValueHashes(computation, called);
  bool changed = false;
  for (Instr* instr : computation.Instrs()) changed |= OrderOperands(instr, hashes);
  std::vector<Instr*> order = CanonicalOrder(computation, effects);
  if (order != computation.Instrs()) {
    computation.SetOrder(order);
    changed = true;
  }
  if (changed)
    context.Accepted("order.canonical", *computation.root(), nullptr, computation.name());
  return changed ? Changed::kYes : Changed::kNo;
}

// Computations reachable from the entry, callees first, in call order; then the others.
Changed OrderCallees(Module& module, PassContext& context) {
  std::unordered_map<const Computation*, size_t> positions;
  std::unordered_map<const Computation*, bool> seen;
  struct Open {
    const Computation* computation;
    std::vector<Computation*> callees;
    size_t next = 0;
  };
  std::vector<Open> stack;
  auto push = [&](const Computation* computation) {
    if (!seen.emplace(computation, true).second) return;
    Open open{computation, {}, 0};
    for (const Instr* instr : computation->Instrs())
      open.callees.insert(open.callees.end(), instr->called().begin(), instr->called().end());
    stack.push_back(std::move(open));
  };
  auto visit = [&](const Computation* start) {
    push(start);
    while (!stack.empty()) {
      Open& top = stack.back();
      if (top.next < top.callees.size()) {
        push(top.callees[top.next++]);  // may move `top`
        continue;
      }
      positions.emplace(top.computation, positions.size());
      stack.pop_back();
    }
  };
  if (module.entry() != nullptr) visit(module.entry());
  for (const auto& computation : module.computations()) visit(computation.get());
  std::vector<size_t> order;
  for (const auto& computation : module.computations())
    order.push_back(positions[computation.get()]);
  if (std::ranges::is_sorted(order) || order.empty()) return Changed::kNo;
  const Computation& first = *module.computations()[0];
  context.Accepted("order.computations", *first.root(), nullptr, first.name());
  module.OrderComputations(order);
  return Changed::kYes;
}

}  // namespace

// Canonicalizes the order of instructions, computations and operands of commutative ops by what
// they compute. Programs that differ only in order or names become equal and hit the kernel and
// plan caches. Side effects keep their order.
Result<Changed> Order(Module& module, PassContext& context) {
  Effects effects(module);
  ComputationHashes hashes;
  Changed changed = Changed::kNo;
  // Callees first: their hashes are available when a caller needs them, without recursion.
  for (Computation* computation : module.CalleesFirst()) {
    changed |= OrderComputation(*computation, effects, hashes, context);
    hashes.Of(*computation);
  }
  return changed | OrderCallees(module, context);
}

}  // namespace tokamak
