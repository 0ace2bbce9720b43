#include "passes/passes.h"
#include "rewrite/rules.h"

namespace tokamak {

// Applies the algebraic rules (rewrite/rules) in every computation until none fires. Each firing is
// recorded under the name of its rule.
Result<Changed> Simplify(Module& module, PassContext& context) {
  Changed changed = Changed::kNo;
  for (const auto& computation : module.computations()) {
    TOK_TRY(Changed own, ApplyRules(*computation, SimplifyRules(), context));
    changed |= own;
  }
  return changed;
}

}  // namespace tokamak
