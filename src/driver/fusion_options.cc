#include "driver/fusion_options.h"

#include <algorithm>
#include <array>

namespace tokamak {
namespace {

constexpr std::array<std::string_view, 5> kModes = {"none", "rules", "greedy", "search", "random"};

std::vector<std::string> PartsOf(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    std::string_view part = text.substr(0, text.find(separator));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    if (!part.empty()) parts.emplace_back(part);
  }
  return parts;
}

}  // namespace

Result<FusionChoice> ParseFusion(std::string_view mode, std::span<const std::string> lift,
                                 std::span<const std::string> skip) {
  FusionChoice choice;
  TOK_TRY(choice.mode, ParseFusionMode(mode));
  TOK_TRY(choice.paper.lifted, ParseLifted(lift));
  for (const std::string& name : skip) {
    TOK_TRY(Pipeline one, ParsePipelineUnchecked(name));
    for (const Step& step : one) choice.paper.skip.push_back(step.pass);
  }
  return choice;
}

Result<FusionChoice> FusionOf(const CompileOptions& options) {
  FusionChoice choice;
  TOK_TRY(choice.mode, ParseFusionMode(options.fusion));
  TOK_TRY(choice.effort, ParseEffort(options.effort));
  TOK_TRY(choice.paper.lifted, ParseLifted(options.lift));
  TOK_TRY(Pipeline skipped, ParsePipelineUnchecked(options.skip_passes));
  for (const Step& step : skipped) choice.paper.skip.push_back(step.pass);
  choice.pins.never_fuse = PartsOf(options.never_fuse, ',');
  choice.pins.fuse = PartsOf(options.fuse, ';');
  choice.pins.require_fused = PartsOf(options.require_fused, ';');
  return choice;
}

Result<FusionMode> ParseFusionMode(std::string_view text) {
  const auto* it = std::find(kModes.begin(), kModes.end(), text);
  if (it != kModes.end()) return static_cast<FusionMode>(it - kModes.begin());
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

std::string_view NameOf(FusionMode mode) {
  return kModes[static_cast<size_t>(mode)];
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
      return MakeError(ErrorCode::kOptionValue,
                       "lift: " + std::string(info->name) +
                           (info->kind == RuleKind::kLaw ? " is a law and cannot be lifted"
                                                         : " refuses nothing"));
    lifted.Lift(static_cast<FusionRule>(info - AllFusionRules().data()));
  }
  return lifted;
}

Result<LiftedRules> ParseLifted(std::string_view names) {
  return ParseLifted(PartsOf(names, ','));
}

}  // namespace tokamak
