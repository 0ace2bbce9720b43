#include <algorithm>
#include <unordered_map>

#include "analysis/effects.h"
#include "ir/post_order.h"
#include "passes/passes.h"
#include "rewrite/normal/graph.h"

namespace tokamak {
namespace {

// The operands of sums, products and the like in the order of what they compute.
bool OrderOperands(Instr* instr, const InstrMap<uint64_t>& hashes) {
  if (!Commutes(*instr)) return false;
  Instr *x = instr->operand(0), *y = instr->operand(1);
  if (hashes[x] <= hashes[y]) return false;
  instr->set_operand(0, y);
  instr->set_operand(1, x);
  return true;
}

// Parameters by number; effects in their order and then the root, each after what it takes; then
// what nothing needs.
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
  if (changed) context.Taken("order.canonical", *computation.root(), nullptr, computation.name());
  return changed ? Changed::kYes : Changed::kNo;
}

// Those that the entry leads to, callees first, in the order of the calls; then the others.
Changed OrderCallees(Module& module, PassContext& context) {
  std::unordered_map<const Computation*, size_t> places;
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
      places.emplace(top.computation, places.size());
      stack.pop_back();
    }
  };
  if (module.entry() != nullptr) visit(module.entry());
  for (const auto& computation : module.computations()) visit(computation.get());
  std::vector<size_t> order;
  for (const auto& computation : module.computations()) order.push_back(places[computation.get()]);
  if (std::ranges::is_sorted(order) || order.empty()) return Changed::kNo;
  const Computation& first = *module.computations()[0];
  context.Taken("order.computations", *first.root(), nullptr, first.name());
  module.OrderComputations(order);
  return Changed::kYes;
}

}  // namespace

// Puts instructions, computations and the operands of commutative ops into an order that follows
// from what they compute, so that programs which differ in order or in names only end equal: their
// kernels and plans are then found in the caches. Effects keep their order.
Result<Changed> Order(Module& module, PassContext& context) {
  Effects effects(module);
  ComputationHashes hashes;
  Changed changed = Changed::kNo;
  // Callees first: their hashes are known when a caller asks, however deep calls are nested.
  for (Computation* computation : module.CalleesFirst()) {
    changed |= OrderComputation(*computation, effects, hashes, context);
    hashes.Of(*computation);
  }
  return changed | OrderCallees(module, context);
}

}  // namespace tokamak
