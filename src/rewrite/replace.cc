#include "rewrite/replace.h"

#include "analysis/effects.h"

namespace tokamak {
namespace {

// Says nothing that a pass has to keep. Statistics and the like are for printing only.
bool SaysNothing(const InstrExtras& extras) {
  return !extras.sharding && !extras.sharding_rule && extras.frontend_attributes.empty() &&
         extras.discardable.empty() && extras.backend_config.empty() &&
         extras.control_predecessors.empty();
}

bool SaysTheSame(const InstrExtras& a, const InstrExtras& b) {
  return a.sharding == b.sharding && a.sharding_rule == b.sharding_rule &&
         a.frontend_attributes == b.frontend_attributes && a.discardable == b.discardable;
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

void ReplaceBy(Instr* from, Instr* to, bool is_new) {
  MergeOrigins(to, *from);
  if (is_new) {
    if (to->name().empty()) to->set_name(from->name());
    if (from->has_extras() && !to->has_extras()) {
      // A backend_config belongs to the op that it was written for.
      InstrExtras extras = from->extras();
      if (from->op() != to->op()) extras.backend_config.clear();
      to->mutable_extras() = std::move(extras);
    }
  }
  from->parent()->ReplaceUses(from, to);
}

Instr* AppendLike(const Instr& like, Op op, Shape shape, std::vector<Instr*> operands,
                  Attrs attrs) {
  Instr* made = like.parent()->Append(op, std::move(shape), std::move(operands), std::move(attrs));
  made->set_origins(like.origins());
  made->set_pos(like.pos());
  return made;
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
