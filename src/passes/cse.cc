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

// Whether the operands stand against their order, where the op does not mind it.
bool IsTurned(const Instr& instr) {
  return Commutes(instr) && instr.operand(1)->id() < instr.operand(0)->id();
}

bool HaveEqualOperands(const Instr& a, const Instr& b) {
  if (a.operand_count() != b.operand_count()) return false;
  if (IsTurned(a) != IsTurned(b))
    return a.operand(0) == b.operand(1) && a.operand(1) == b.operand(0);
  return std::ranges::equal(a.operands(), b.operands());
}

// A look at both ends: what differs in between is told apart by AreEqual, once.
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
  if (IsTurned(instr)) {
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

// Loops, branches and calls may be merged too: their callees are the same objects by now.
bool IsMergeable(const Instr& instr, const Effects& effects) {
  if (instr.is_control_predecessor() || effects.Of(instr)) return false;
  switch (instr.op()) {
    case Op::kWhile:
    case Op::kConditional:
    case Op::kCall:
    case Op::kPartitionId:
    case Op::kReplicaId:
      return true;
    case Op::kCustomCall:  // a function and its gradient both factorize
      return IsLinearAlgebraCall(instr.attrs<CustomCallAttrs>().target);
    default:
      return IsPlain(instr);
  }
}

// Instructions by hash, side by side.
class InstrTable {
 public:
  explicit InstrTable(size_t most) : slots_(std::bit_ceil(2 * most + 1)) {}

  // The one equal to `instr` that came first; `instr` itself when it is that one.
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
    context.Taken("cse.equal", *instr, first);
    ReplaceBy(instr, first);
    computation.Remove(instr);
    changed = Changed::kYes;
  }
  return changed;
}

// Both have the SameBody, in which parameters may stand anywhere.
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

// Callees first, so that equal callees are one object when their callers are compared. The entry
// and public functions keep their names and stay.
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
    context.Taken("cse.equal-computation", *computation->root(), it->second->root(),
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

// Keeps the first of instructions that are equal: op, operands (in any order where that does not
// matter), attributes, shape with its layout, sharding and other extras; and the first of
// computations that are. Effects and draws of random numbers are never merged.
Result<Changed> Cse(Module& module, PassContext& context) {
  Changed changed = MergeComputations(module, context);
  Effects effects(module);
  for (const auto& computation : module.computations())
    changed |= MergeInstrs(*computation, effects, context);
  return changed;
}

}  // namespace tokamak
