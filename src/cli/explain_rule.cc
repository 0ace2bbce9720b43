#include <algorithm>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "cli/commands.h"
#include "explain/planner_rules.h"
#include "explain/rules.h"
#include "rewrite/rules.h"
#include "support/edit_distance.h"

// `tokamak explain RULE`: describes a rule.

namespace tokamak {
namespace {

std::vector<std::string_view> NamesOfRules() {
  std::vector<std::string_view> names;
  for (const FusionRuleInfo& rule : AllFusionRules()) names.push_back(rule.name);
  for (const PlannerRuleInfo& rule : AllPlannerRules()) names.push_back(rule.name);
  for (const Rule* rule : SimplifyRules().all()) names.push_back(rule->name);
  return names;
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
  if (const FusionRuleInfo* rule = FindFusionRule(name)) {
    constexpr std::string_view kKinds[] = {"a move", "a factor: --lift disables it",
                                           "a legality rule"};
    console.Out(fmt::format("{}: {}\n{} of --fusion=rules\n\n{}\n", rule->name, rule->meaning,
                            kKinds[static_cast<size_t>(rule->kind)], rule->paragraph));
    return 0;
  }
  if (const PlannerRuleInfo* rule = FindPlannerRule(name)) {
    console.Out(fmt::format("{}: {}\n\n{}\n", rule->name, rule->meaning, rule->paragraph));
    return 0;
  }
  for (const Rule* rule : SimplifyRules().all()) {
    if (rule->name != name) continue;
    console.Out(fmt::format("{}: {}\na rule of the pass simplify{}\n", rule->name, rule->meaning,
                            rule->fast_math ? ", of fast math" : ""));
    return 0;
  }
  if (!IsMeantAsRule(name)) return std::nullopt;
  std::vector<std::string_view> names = NamesOfRules();
  std::string_view nearest = *std::min_element(names.begin(), names.end(), [&](auto a, auto b) {
    return EditDistance(name, a) < EditDistance(name, b);
  });
  Error error =
      MakeError(ErrorCode::kUsage, fmt::format("there is no file and no rule '{}'", name));
  error.notes.push_back(fmt::format("did you mean the rule {}?", nearest));
  error.notes.push_back(
      "`tokamak explain FILE --decisions` prints the rules that apply to a program");
  return console.Report(error);
}

}  // namespace tokamak
