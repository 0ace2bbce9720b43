#include <algorithm>
#include <bit>
#include <unordered_map>

#include "analysis/effects.h"
#include "interp/lapack.h"
#include "ir/compare.h"
#include "passes/passes.h"
#include "rewrite/replace.h"
#include "support/hash.h"

namespace tokamak {
namespace {

// Whether the operands of a commutative op are in reverse canonical order.
bool IsSwapped(const Instr& instr) {
  return Commutes(instr) && instr.operand(1)->id() < instr.operand(0)->id();
}

bool HaveEqualOperands(const Instr& a, const Instr& b) {
  if (a.operand_count() != b.operand_count()) return false;
  if (IsSwapped(a) != IsSwapped(b))
    return a.operand(0) == b.operand(1) && a.operand(1) == b.operand(0);
  return std::ranges::equal(a.operands(), b.operands());
}

// Hashes only the first and last kEnd bytes. AreEqual distinguishes constants that differ in
// between.
uint64_t HashOfConstant(const Literal& literal) {
  constexpr size_t kEnd = 256;
  Hasher hasher;
  const Bytes& data = literal.data();
  hasher.AddBytes(data.data(), std::min(data.size(), kEnd));
  if (data.size() > kEnd) hasher.AddBytes(data.data() + data.size() - kEnd, kEnd);
  return hasher.digest();
}

uint64_t HashOf(const Instr& instr) {
  Hasher hasher;
  hasher.Add(instr.op());
  hasher.Add(instr.shape().Hash());
  hasher.Add(instr.op() == Op::kConstant ? HashOfConstant(instr.attrs<ConstantAttrs>().literal)
                                         : HashAttrs(instr.op(), instr.attrs()));
  if (IsSwapped(instr)) {
    hasher.Add(instr.operand(1)->id());
    hasher.Add(instr.operand(0)->id());
  } else {
    for (const Instr* operand : instr.operands()) hasher.Add(operand->id());
  }
  return hasher.digest();
}

bool AreEqual(const Instr& a, const Instr& b) {
  return a.op() == b.op() && a.captures() == b.captures() && a.shape() == b.shape() &&
         std::ranges::equal(a.called(), b.called()) && HaveEqualOperands(a, b) &&
         EqualAttrs(a.op(), a.attrs(), b.attrs()) && SameExtras(a, b);
}

// Loops, conditionals and calls may also be merged: equal callees are already one object.
bool IsMergeable(const Instr& instr, const Effects& effects) {
  if (instr.is_control_predecessor() || effects.Of(instr)) return false;
  switch (instr.op()) {
    case Op::kWhile:
    case Op::kConditional:
    case Op::kCall:
    case Op::kPartitionId:
    case Op::kReplicaId:
      return true;
    case Op::kCustomCall:  // a function and its gradient may both call the same factorization
      return IsLinearAlgebraCall(instr.attrs<CustomCallAttrs>().target);
    default:
      return IsPlain(instr);
  }
}

// An open-addressing hash table of instructions.
class InstrTable {
 public:
  explicit InstrTable(size_t most) : slots_(std::bit_ceil(2 * most + 1)) {}

  // The first instruction equal to `instr`; `instr` itself if it is the first.
  Instr* FindOrAdd(Instr* instr, uint64_t hash) {
    size_t mask = slots_.size() - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
      Slot& slot = slots_[i];
      if (slot.instr == nullptr) {
        slot = {hash, instr};
        return instr;
      }
      if (slot.hash == hash && AreEqual(*slot.instr, *instr)) return slot.instr;
    }
  }

 private:
  struct Slot {
    uint64_t hash = 0;
    Instr* instr = nullptr;
  };
  std::vector<Slot> slots_;
};

Changed MergeInstrs(Computation& computation, const Effects& effects, PassContext& context) {
  InstrTable table(computation.size());
  Changed changed = Changed::kNo;
  for (Instr* instr : computation.PostOrder()) {
    if (!IsMergeable(*instr, effects)) continue;
    Instr* first = table.FindOrAdd(instr, HashOf(*instr));
    if (first == instr) continue;
    context.Accepted("cse.equal", *instr, first);
    ReplaceBy(instr, first);
    computation.Remove(instr);
    changed = Changed::kYes;
  }
  return changed;
}

// SameBody holds for both; parameters may be at different positions.
void TakeOverOrigins(Computation& kept, const Computation& gone) {
  for (size_t i = 0; i < kept.parameters().size(); ++i)
    MergeOrigins(kept.parameter(i), *gone.parameter(i));
  auto others = [](const Computation& computation) {
    std::vector<Instr*> instrs = computation.Instrs();
    std::erase_if(instrs, [](const Instr* instr) { return instr->op() == Op::kParameter; });
    return instrs;
  };
  std::vector<Instr*> to = others(kept), from = others(gone);
  for (size_t i = 0; i < to.size(); ++i) MergeOrigins(to[i], *from[i]);
}

// Processes callees first, so that equal callees are one object when their callers are compared.
// The entry and public functions are kept with their names.
Changed MergeComputations(Module& module, PassContext& context) {
  std::unordered_multimap<uint64_t, Computation*> table;
  std::unordered_map<const Computation*, Computation*> merged;
  for (Computation* computation : module.CalleesFirst()) {
    for (Instr* instr : computation->Instrs()) {
      if (instr->called().empty()) continue;
      std::vector<Computation*> called(instr->called().begin(), instr->called().end());
      for (Computation*& callee : called)
        if (auto it = merged.find(callee); it != merged.end()) callee = it->second;
      if (!std::ranges::equal(called, instr->called())) instr->set_called(std::move(called));
    }
    if (computation == module.entry() || computation->is_public) continue;
    uint64_t hash = BodyHash(*computation);
    auto [begin, end] = table.equal_range(hash);
    auto it =
        std::find_if(begin, end, [&](const auto& e) { return SameBody(*e.second, *computation); });
    if (it == end) {
      table.emplace(hash, computation);
      continue;
    }
    merged.emplace(computation, it->second);
    context.Accepted("cse.equal-computation", *computation->root(), it->second->root(),
                     computation->name() + " is " + it->second->name());
    TakeOverOrigins(*it->second, *computation);
  }
  if (merged.empty()) return Changed::kNo;
  std::vector<bool> keep;
  for (const auto& computation : module.computations())
    keep.push_back(!merged.contains(computation.get()));
  module.KeepComputations(keep);
  return Changed::kYes;
}

}  // namespace

// Common subexpression elimination. Keeps the first of equal instructions: op, operands (in any
// order if the op is commutative), attributes, shape with layout, sharding and other extras; and
// the first of equal computations. Instructions with side effects and random number generators are
// never merged.
Result<Changed> Cse(Module& module, PassContext& context) {
  Changed changed = MergeComputations(module, context);
  Effects effects(module);
  for (const auto& computation : module.computations())
    changed |= MergeInstrs(*computation, effects, context);
  return changed;
}

}  // namespace tokamak
