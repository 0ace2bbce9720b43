#include "passes/passes.h"
#include "rewrite/user_rules.h"

namespace tokamak {

// Applies the rules that the user registered, if there are any.
Result<Changed> ApplyRegisteredRules(Module& module, PassContext& context) {
  if (context.options.user_rules == nullptr) return Changed::kNo;
  return ApplyUserRules(module, *context.options.user_rules, context);
}

}  // namespace tokamak
