#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "cli/commands.h"
#include "driver/report/lint/lint_rules.h"
#include "explain/planner_rules.h"
#include "explain/rules.h"
#include "rewrite/pipeline.h"
#include "rewrite/rules.h"
#include "support/near_names.h"

// `tokamak explain NAME`: describes a rule or a pass.

namespace tokamak {
namespace {

std::vector<std::string_view> KnownNames() {
  std::vector<std::string_view> names;
  for (const FusionRuleInfo& rule : AllFusionRules()) names.push_back(rule.name);
  for (const PlannerRuleInfo& rule : AllPlannerRules()) names.push_back(rule.name);
  for (const LintRule& rule : AllLintRules()) names.push_back(rule.name);
  for (const Rule* rule : SimplifyRules().all()) names.push_back(rule->name);
  for (const PassInfo& pass : kPasses) names.push_back(pass.name);
  return names;
}

// ---- the description of a name; empty if there is no such name

std::string TextOfFusionRule(std::string_view name) {
  constexpr std::string_view kKinds[] = {"a move", "a factor: --lift disables it",
                                         "a legality rule"};
  const FusionRuleInfo* rule = FindFusionRule(name);
  if (rule == nullptr) return "";
  return fmt::format("{}: {}\n{} of --fusion=rules\n\n{}\n", rule->name, rule->meaning,
                     kKinds[static_cast<size_t>(rule->kind)], rule->paragraph);
}

std::string TextOfPlannerRule(std::string_view name) {
  const PlannerRuleInfo* rule = FindPlannerRule(name);
  if (rule == nullptr) return "";
  return fmt::format("{}: {}\n\n{}\n", rule->name, rule->meaning, rule->paragraph);
}

std::string TextOfLintRule(std::string_view name) {
  const LintRule* rule = name.starts_with("lint.") ? FindLintRule(name) : nullptr;
  return rule == nullptr ? "" : TextOf(*rule);
}

std::string TextOfSimplifyRule(std::string_view name) {
  for (const Rule* rule : SimplifyRules().all())
    if (rule->name == name)
      return fmt::format("{}: {}\na rule of the pass simplify\n", rule->name, rule->meaning);
  return "";
}

std::string TextOfPass(std::string_view name) {
  std::optional<Pass> pass = PassFromName(name);
  if (!pass) return "";
  return fmt::format("{}: {}\na pass: `tokamak opt FILE --passes={}` runs it\n", name,
                     InfoOf(*pass).meaning, name);
}

// Whether a name is not a file and is spelled like a rule: "xla.expensive-op".
bool IsMeantAsRule(const std::string& name) {
  std::error_code code;
  if (name == "-" || std::filesystem::exists(name, code)) return false;
  std::string extension = std::filesystem::path(name).extension();
  return name.find('/') == std::string::npos && extension != ".mlir" && extension != ".hlo" &&
         extension != ".txt" && extension != ".mlirbc";
}

}  // namespace

std::optional<int> ExplainRule(const ExplainCommand& command, Console& console) {
  const std::string& name = command.file;
  std::string text = TextOfFusionRule(name);
  if (text.empty()) text = TextOfPlannerRule(name);
  if (text.empty()) text = TextOfLintRule(name);
  if (text.empty()) text = TextOfSimplifyRule(name);
  if (text.empty()) text = TextOfPass(name);
  if (!text.empty()) {
    console.Out(text);
    return 0;
  }
  if (!IsMeantAsRule(name)) return std::nullopt;
  Error error = MakeError(ErrorCode::kUsage,
                          fmt::format("explain: '{}' is neither a file nor a rule, pass or error{}",
                                      ShownWord(name), DidYouMean(name, KnownNames())));
  error.notes.push_back(
      "`tokamak explain FILE --decisions` prints the rules that apply to a program");
  return console.Report(error);
}

}  // namespace tokamak
