#include "driver/rules/plugin_rewrites.h"

#include <utility>

#include "driver/compile/user_rules.h"
#include "driver/plugins/registry.h"
#include "driver/rules/make_rule.h"

namespace tokamak {
namespace {

Status AddRewriteRule(const PluginRewrite& rewrite) {
  RuleSpec spec;
  spec.name = rewrite.name;
  spec.where = {.file = rewrite.plugin->path};
  spec.priority = rewrite.priority;
  spec.when_cheaper = !rewrite.always;
  if (rewrite.tolerance > 0) spec.check.tolerance = rewrite.tolerance;
  TOK_TRY(RulePair pair, ReadRulePair(rewrite.pattern, rewrite.replacement, rewrite.name));
  spec.examples.push_back(std::move(pair));
  TOK_TRY(std::shared_ptr<const UserRule> rule, MakeUserRule(std::move(spec)));
  AddUserRule(std::move(rule));
  return Ok();
}

}  // namespace

void UsePluginRewrites() {
  SetAddRewrite(AddRewriteRule);
}

}  // namespace tokamak
