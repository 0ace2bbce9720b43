#include <algorithm>

#include "passes/passes.h"
#include "rewrite/editor.h"
#include "rewrite/expand/expand.h"
#include "rewrite/replace.h"

namespace tokamak {
namespace {

// The program asks for more, or other, than the usual accuracy: no op with a formula has another
// attribute.
bool AsksForAccuracy(const Instr& instr) {
  return !instr.attrs().SameObject(Attrs{});
}

bool IsOrdinaryFunction(const Instr& instr) {
  return IsOrdinary(instr.shape()) && std::ranges::all_of(instr.operands(), [](const Instr* x) {
           return IsOrdinary(x->shape());
         });
}

}  // namespace

// Writes functions that are not among the basic ones (lgamma, erf_inv, those of complex numbers
// ...) in those that are, by the formulas of the normal form (rewrite/expand): for a backend that
// has no formula of its own. They round otherwise than the op, so strict mode keeps it.
Result<Changed> ExpandFunctions(Module& module, PassContext& context) {
  Changed changed = Changed::kNo;
  for (const auto& computation : module.computations()) {
    for (Instr* instr : computation->PostOrder()) {
      if (!instr->info().Is(kElementwise) || !IsOrdinaryFunction(*instr)) continue;
      if (!HasExpansion(*instr) || !CanReplace(*instr, *instr)) continue;
      if (AsksForAccuracy(*instr)) {
        context.Rejected("expand.accuracy", *instr);
        continue;
      }
      Editor edit(*instr, Editor::Naming::kUnnamed);
      Instr* to = ExpandAsJax(edit, instr->op(), instr->shape(), instr->operands());
      if (to == nullptr || !edit.TryReplace(to)) continue;
      context.Taken("expand.function", *instr);
      RemoveUnused(instr);
      changed = Changed::kYes;
    }
  }
  return changed;
}

}  // namespace tokamak
