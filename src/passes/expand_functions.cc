
#include "passes/passes.h"
#include "rewrite/editor.h"
#include "rewrite/expand/expand.h"
#include "rewrite/replace.h"

namespace tokamak {
namespace {

// Whether the program requests a non-default accuracy. Ops with a formula have no other attribute.
bool AsksForAccuracy(const Instr& instr) {
  return !instr.attrs().SameObject(Attrs{});
}

}  // namespace

// Expands functions that are not basic ops (lgamma, erf_inv, complex functions ...) into basic ops
// by the formulas of the normal form (rewrite/expand), for backends without their own formula. The
// rounding differs from the op, so strict mode keeps the op.
Result<Changed> ExpandFunctions(Module& module, PassContext& context) {
  Changed changed = Changed::kNo;
  for (const auto& computation : module.computations()) {
    for (Instr* instr : computation->PostOrder()) {
      if (!instr->info().Is(kElementwise) || !IsOrdinary(*instr)) continue;
      if (!HasExpansion(*instr) || !CanReplace(*instr, *instr)) continue;
      if (AsksForAccuracy(*instr)) {
        context.Rejected("expand.accuracy", *instr);
        continue;
      }
      Editor edit(*instr, Editor::Naming::kUnnamed);
      Instr* to = ExpandAsJax(edit, instr->op(), instr->shape(), instr->operands());
      if (to == nullptr || !edit.TryReplace(to)) continue;
      context.Accepted("expand.function", *instr);
      RemoveUnused(instr);
      changed = Changed::kYes;
    }
  }
  return changed;
}

}  // namespace tokamak
