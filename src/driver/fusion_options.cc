#include "driver/fusion_options.h"

#include <algorithm>

namespace tokamak {

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
  if (std::optional<FusionMode> mode = FusionModeNamed(text)) return *mode;
  return MakeError(ErrorCode::kOptionValue,
                   "fusion: '" + std::string(text) + "' is none of none, rules, greedy and search");
}

Result<Effort> ParseEffort(std::string_view text) {
  if (text == "fast") return Effort::kFast;
  if (text == "default") return Effort::kDefault;
  if (text == "max") return Effort::kMax;
  return MakeError(ErrorCode::kOptionValue,
                   "effort: '" + std::string(text) + "' is none of fast, default and max");
}

Result<LiftedRules> ParseLifted(std::span<const std::string> names) {
  LiftedRules lifted;
  for (const std::string& name : names) {
    const FusionRuleInfo* info = FindFusionRule(name);
    if (info == nullptr)
      return MakeError(ErrorCode::kOptionValue, "lift: there is no rule '" + name +
                                                    "'; did you mean '" +
                                                    std::string(NearestFusionRule(name)) + "'?");
    if (info->kind != RuleKind::kFactor)
      return MakeError(
          ErrorCode::kOptionValue,
          "lift: " + std::string(info->name) +
              (info->kind == RuleKind::kLegality ? " is a legality rule and cannot be lifted"
                                                 : " rejects nothing"));
    lifted.Lift(static_cast<FusionRule>(info - AllFusionRules().data()));
  }
  return lifted;
}

}  // namespace tokamak
