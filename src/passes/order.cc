#include <algorithm>
#include <limits>
#include <unordered_map>

#include "analysis/effects.h"
#include "ir/compare.h"
#include "ir/post_order.h"
#include "passes/passes.h"

namespace tokamak {
namespace {

// The digest of each computation, independent of the order of its instructions and of names.
using Digests = std::unordered_map<const Computation*, uint64_t>;

// The hash of op(operands), given the hashes of the operands and the digests of callees.
uint64_t HashOf(const Instr& instr, const InstrMap<uint64_t>& hashes, const Digests& digests) {
  Hasher hasher;
  hasher.Add(instr.op());
  hasher.Add(instr.shape().Hash());
  hasher.Add(HashAttrs(instr.op(), instr.attrs()));
  std::vector<uint64_t> operands;
  for (const Instr* operand : instr.operands()) operands.push_back(hashes[operand]);
  if (IsCommutative(instr.op())) std::sort(operands.begin(), operands.end());
  for (uint64_t operand : operands) hasher.Add(operand);
  for (const Computation* callee : instr.called()) hasher.Add(digests.at(callee));
  return hasher.digest();
}

enum class Parameters { kNumbered, kEqual };  // kEqual: parameters of one shape have one hash

InstrMap<uint64_t> ValueHashes(const Computation& computation, const Digests& digests,
                               Parameters parameters) {
  InstrMap<uint64_t> hashes(computation);
  for (const Instr* instr : computation.PostOrder()) {
    if (instr->op() != Op::kParameter) {
      hashes[instr] = HashOf(*instr, hashes, digests);
      continue;
    }
    int64_t number = instr->attrs<ParameterAttrs>().number;
    Hasher hasher;
    hasher.Add(Op::kParameter);
    hasher.Add(instr->shape().Hash());
    hasher.Add(parameters == Parameters::kNumbered ? static_cast<uint64_t>(number) : uint64_t{0});
    hashes[instr] = hasher.digest();
  }
  return hashes;
}

// What orders the operands of a commutative op. The structure of a value is its expression over
// parameters that differ only in their shapes: code that a program repeats for many arrays gets the
// same order everywhere, so its kernels are equal and compiled once.
struct OperandKey {
  uint64_t structure = 0;
  int64_t first_parameter = std::numeric_limits<int64_t>::max();  // least number it depends on
  uint64_t hash = 0;                                              // of the value

  auto operator<=>(const OperandKey&) const = default;
};

InstrMap<OperandKey> OperandKeys(const Computation& computation, const Digests& digests) {
  InstrMap<uint64_t> hashes = ValueHashes(computation, digests, Parameters::kNumbered);
  InstrMap<uint64_t> structures = ValueHashes(computation, digests, Parameters::kEqual);
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

Changed OrderComputation(Computation& computation, const Effects& effects, Digests& digests,
                         PassContext& context) {
  InstrMap<OperandKey> keys = OperandKeys(computation, digests);
  bool changed = false;
  for (Instr* instr : computation.Instrs()) changed |= OrderOperands(instr, keys);
  std::vector<Instr*> order = CanonicalOrder(computation, effects);
  Hasher digest;
  digest.Add(keys[computation.root()].hash);
  for (const Instr* instr : order)
    if (effects.Of(*instr)) digest.Add(keys[instr].hash);
  digests[&computation] = digest.digest();
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
  Digests digests;
  Changed changed = Changed::kNo;
  for (Computation* computation : module.CalleesFirst())
    changed |= OrderComputation(*computation, effects, digests, context);
  return changed | OrderCallees(module, context);
}

}  // namespace tokamak
