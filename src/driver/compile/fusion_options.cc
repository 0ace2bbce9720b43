#include "driver/compile/fusion_options.h"

#include <algorithm>

#include "support/near_names.h"

namespace tokamak {
namespace {

Error NoSuchFactor(std::string_view name) {
  std::vector<std::string_view> factors;
  for (const FusionRuleInfo& rule : AllFusionRules())
    if (rule.kind == RuleKind::kFactor) factors.push_back(rule.name);
  Error error = MakeError(ErrorCode::kOptionValue, "lift: there is no rule '" + ShownWord(name) +
                                                       "'" + DidYouMean(name, factors));
  error.notes.push_back(
      "`tokamak explain FILE --fusion=rules --decisions` prints the rules that "
      "apply to a program");
  return error;
}

}  // namespace

std::vector<std::string> WordsOf(std::string_view text, char separator) {
  std::vector<std::string> words;
  while (!text.empty()) {
    std::string_view word = text.substr(0, text.find(separator));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (!word.empty()) words.emplace_back(word);
  }
  return words;
}

Result<std::vector<Pass>> ParseSkipped(std::span<const std::string> names) {
  std::vector<Pass> skipped;
  for (const std::string& name : names) {
    TOK_TRY(Pipeline one, ParsePipelineUnchecked(name));
    for (const Step& step : one) skipped.push_back(step.pass);
  }
  return skipped;
}

Result<FusionMode> ParseFusionMode(std::string_view text) {
  if (std::optional<FusionMode> mode = FusionModeFromName(text)) return *mode;
  return MakeError(ErrorCode::kOptionValue,
                   "fusion: " + NoneOf(text, {"none", "rules", "greedy", "search"}));
}

Result<Effort> ParseEffort(std::string_view text) {
  if (text == "fast") return Effort::kFast;
  if (text == "default") return Effort::kDefault;
  if (text == "max") return Effort::kMax;
  return MakeError(ErrorCode::kOptionValue, "effort: " + NoneOf(text, {"fast", "default", "max"}));
}

Result<LiftedRules> ParseLifted(std::span<const std::string> names) {
  LiftedRules lifted;
  for (const std::string& name : names) {
    const FusionRuleInfo* info = FindFusionRule(name);
    if (info == nullptr) return NoSuchFactor(name);
    if (info->kind != RuleKind::kFactor)
      return MakeError(
          ErrorCode::kOptionValue,
          "lift: " + std::string(info->name) +
              (info->kind == RuleKind::kLegality ? " is a legality rule, which cannot be disabled"
                                                 : " rejects nothing"));
    lifted.Lift(static_cast<FusionRule>(info - AllFusionRules().data()));
  }
  return lifted;
}

}  // namespace tokamak
