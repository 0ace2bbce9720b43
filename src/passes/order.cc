#include <algorithm>
#include <limits>
#include <unordered_map>

#include "analysis/effects.h"
#include "ir/post_order.h"
#include "passes/passes.h"
#include "rewrite/normal/graph.h"

namespace tokamak {
namespace {

// What orders the operands of a commutative op. The structure of a value is its expression over
// parameters that differ only in their shapes: code that a program repeats for many arrays gets the
// same order everywhere, so its kernels are equal and compiled once.
struct OperandKey {
  uint64_t structure = 0;
  int64_t first_parameter = std::numeric_limits<int64_t>::max();  // least number it depends on
  uint64_t hash = 0;                                              // of the value

  auto operator<=>(const OperandKey&) const = default;
};

InstrMap<OperandKey> OperandKeys(const Computation& computation, ComputationHashes& called) {
  InstrMap<uint64_t> hashes = ValueHashes(computation, called);
  std::vector<uint64_t> one_colour(computation.parameters().size(), 0);
  InstrMap<uint64_t> structures = ValueHashes(computation, called, one_colour);
  InstrMap<OperandKey> keys(computation);
  for (const Instr* instr : computation.PostOrder()) {
    OperandKey key{.structure = structures[instr], .hash = hashes[instr]};
    if (instr->op() == Op::kParameter) key.first_parameter = instr->attrs<ParameterAttrs>().number;
    for (const Instr* operand : instr->operands())
      key.first_parameter = std::min(key.first_parameter, keys[operand].first_parameter);
    keys[instr] = key;
  }
  return keys;
}

bool OrderOperands(Instr* instr, const InstrMap<OperandKey>& keys) {
  if (!Commutes(*instr)) return false;
  Instr *x = instr->operand(0), *y = instr->operand(1);
  if (keys[x] <= keys[y]) return false;
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
  InstrMap<OperandKey> keys = OperandKeys(computation, called);
  bool changed = false;
  for (Instr* instr : computation.Instrs()) changed |= OrderOperands(instr, keys);
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
