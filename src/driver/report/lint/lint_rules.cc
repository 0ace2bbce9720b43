#include "driver/report/lint/lint_rules.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "driver/report/lints.h"
#include "support/near_names.h"

namespace tokamak {
namespace {

constexpr LintRule kLintRules[] = {
#define TOK_LINT(name, meaning, why, instead, example) {name, meaning, why, instead, example},
#include "driver/report/lint/lint_rules.def"
#include "driver/report/lint/run_rules.def"
#undef TOK_LINT
};

constexpr std::string_view kLintPrefix = "lint.";
constexpr size_t kSuggestedRules = 3;

Error UnknownLintRule(std::string_view name, std::string_view option) {
  std::vector<std::string_view> names;
  for (const LintRule& known : kLintRules) names.push_back(known.name.substr(kLintPrefix.size()));
  std::string_view word = name;
  if (word.starts_with(kLintPrefix)) word.remove_prefix(kLintPrefix.size());
  std::string nearest;
  for (std::string_view one : NearestNames(word, names, kSuggestedRules))
    nearest += fmt::format("{}{}{}", nearest.empty() ? "" : ", ", kLintPrefix, one);
  return MakeError(ErrorCode::kOptionValue,
                   fmt::format("{}: '{}' is not a lint rule; the nearest: {}", option,
                               ShownWord(name), nearest));
}

}  // namespace

std::span<const LintRule> AllLintRules() {
  return kLintRules;
}

std::vector<std::string_view> LintWordsOf(std::string_view list) {
  std::vector<std::string_view> words;
  while (!list.empty()) {
    size_t comma = std::min(list.find(','), list.size());
    std::string_view word = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

const LintRule* FindLintRule(std::string_view name) {
  if (name.starts_with(kLintPrefix)) name.remove_prefix(kLintPrefix.size());
  const auto* it = std::find_if(std::begin(kLintRules), std::end(kLintRules), [&](const auto& row) {
    return row.name.substr(kLintPrefix.size()) == name;
  });
  return it == std::end(kLintRules) ? nullptr : it;
}

std::string TextOf(const LintRule& rule) {
  std::string example;
  for (size_t begin = 0; begin < rule.example.size();) {
    size_t end = std::min(rule.example.find('\n', begin), rule.example.size());
    example += fmt::format("    {}\n", rule.example.substr(begin, end - begin));
    begin = end + 1;
  }
  return fmt::format("{}: {}\n\nWhy: {}\n\nInstead: {}\n\n{}", rule.name, rule.meaning, rule.why,
                     rule.instead, example);
}

Status AddLintRules(std::vector<std::string>& to, std::string_view list, std::string_view option) {
  for (std::string_view name : LintWordsOf(list)) {
    const LintRule* rule = FindLintRule(name);
    if (rule == nullptr) return UnknownLintRule(name, option);
    to.emplace_back(rule->name);
  }
  return Ok();
}

}  // namespace tokamak
