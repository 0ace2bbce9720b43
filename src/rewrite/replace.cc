#include "rewrite/replace.h"

#include "analysis/effects.h"

namespace tokamak {
namespace {

// Whether there is nothing that a pass must preserve. Statistics and similar fields are for
// printing only.
bool SaysNothing(const InstrExtras& extras) {
  return !extras.sharding && !extras.sharding_rule && extras.frontend_attributes.empty() &&
         extras.discardable.empty() && extras.backend_config.empty() &&
         extras.control_predecessors.empty();
}

bool SaysTheSame(const InstrExtras& a, const InstrExtras& b) {
  return a.sharding == b.sharding && a.sharding_rule == b.sharding_rule &&
         a.frontend_attributes == b.frontend_attributes && a.discardable == b.discardable;
}

// Passes extras to a replacement. A backend_config belongs to the op it was written for and is
// dropped.
void HandOnExtras(const Instr& from, Instr& to) {
  const InstrExtras said = from.extras();
  if (!to.has_extras() && !SaysNothing(said)) {
    InstrExtras& extras = to.mutable_extras();
    extras = said;
    extras.control_predecessors.clear();
    if (from.op() != to.op()) extras.backend_config.clear();
  }
  for (Instr* before : said.control_predecessors) to.AddControlPredecessor(before);
}

}  // namespace

bool CanReplace(const Instr& from, const Instr& to, bool is_new) {
  if (!(from.shape() == to.shape())) return false;
  if (from.is_control_predecessor()) return false;
  if (!from.has_extras()) return true;
  const InstrExtras& said = from.extras();
  if (!said.control_predecessors.empty()) return false;
  if (SaysNothing(said)) return true;
  return is_new ? !to.has_extras() : SaysTheSame(said, to.extras());
}

void MergeOrigins(Instr* instr, const Instr& other) {
  OriginTable& table = instr->parent()->module()->origins();
  instr->set_origins(table.Merge(instr->origins(), other.origins()));
}

void HandOn(const Instr& from, Instr* to, bool is_new) {
  MergeOrigins(to, from);
  if (is_new && from.has_extras()) HandOnExtras(from, *to);
}

void ReplaceBy(Instr* from, Instr* to, bool is_new) {
  HandOn(*from, to, is_new);
  if (is_new && to->name().empty()) to->set_name(from->name());
  from->parent()->ReplaceUses(from, to);
}

Instr* CopyTo(Computation& to, const Instr& instr, std::vector<Instr*> operands) {
  Instr* copy =
      to.Append(instr.op(), instr.shape(), std::move(operands), instr.attrs(), instr.name());
  copy->set_called({instr.called().begin(), instr.called().end()});
  copy->set_captures(instr.captures());
  copy->set_origins(instr.origins());
  copy->set_pos(instr.pos());
  if (instr.has_extras()) {
    copy->mutable_extras() = instr.extras();
    copy->mutable_extras().control_predecessors.clear();
  }
  return copy;
}

bool IsRemovable(const Instr& instr) {
  if (instr.op() == Op::kParameter || instr.is_control_predecessor()) return false;
  if (instr.parent()->root() == &instr) return false;
  return IsPlain(instr);
}

void RemoveUnused(Instr* instr, std::vector<Instr*>* touched) {
  std::vector<Instr*> open = {instr};
  while (!open.empty()) {
    Instr* next = open.back();
    open.pop_back();
    if (next->is_removed()) continue;
    if (!next->users().empty() || !IsRemovable(*next)) {
      if (touched != nullptr) touched->push_back(next);
      continue;
    }
    open.insert(open.end(), next->operands().begin(), next->operands().end());
    next->parent()->Remove(next);
  }
}

}  // namespace tokamak
