#include "driver/report/lint/suppressions.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "driver/report/lint/lint_rules.h"

namespace tokamak {
namespace {

constexpr std::string_view kMarker = "tokamak: ignore";
constexpr size_t kMaxLineDigits = 9;

// A Python file, directly or beside the program. Nothing else is read: a program may name any file.
std::ifstream OpenedSource(const std::string& file, const std::string& program_file) {
  std::ifstream stream;
  if (!file.ends_with(".py")) return stream;
  std::error_code code;
  if (std::filesystem::is_regular_file(file, code)) {
    stream.open(file);
  } else if (std::filesystem::path path = std::filesystem::path(program_file).parent_path() / file;
             std::filesystem::path(file).is_relative() &&
             std::filesystem::is_regular_file(path, code)) {
    stream.open(path);
  }
  return stream;
}

// What the comment of a line suppresses: "*", or its rules between commas; empty: nothing.
std::string SuppressedBy(std::string_view line) {
  size_t comment = line.find('#');
  if (comment == std::string_view::npos) return "";
  size_t marker = line.find(kMarker, comment);
  if (marker == std::string_view::npos) return "";
  std::string_view rest = line.substr(marker + kMarker.size());
  if (!rest.starts_with('[')) return "*";
  rest = rest.substr(1, std::min(rest.find(']'), rest.size()) - 1);
  std::string rules = ",";
  for (std::string_view word : LintWordsOf(rest))
    if (const LintRule* rule = FindLintRule(word)) rules += std::string(rule->name) + ",";
  return rules;
}

}  // namespace

LintPlace LintPlaceOf(const std::string& text) {
  size_t end = std::min(text.rfind(" ("), text.size());
  size_t colon = text.substr(0, end).rfind(':');
  if (colon == std::string::npos) return {text, 0};
  std::string number = text.substr(colon + 1, end - colon - 1);
  if (number.empty() || number.size() > kMaxLineDigits ||
      number.find_first_not_of("0123456789") != std::string::npos)
    return {text, 0};
  return {text.substr(0, colon), std::stoll(number)};
}

const Suppressions::Comments& Suppressions::CommentsOf(const std::string& file) {
  auto [at, is_new] = files_.try_emplace(file);
  if (!is_new) return at->second;
  std::ifstream stream = OpenedSource(file, program_file_);
  std::string line;
  for (int64_t number = 1; stream.is_open() && std::getline(stream, line); ++number)
    if (std::string rules = SuppressedBy(line); !rules.empty())
      at->second.emplace(number, std::move(rules));
  return at->second;
}

bool Suppressions::Suppress(const Lint& lint) {
  for (const std::string& text : lint.lines) {
    LintPlace place = LintPlaceOf(text);
    const Comments& comments = CommentsOf(place.file);
    for (int64_t line : {place.line, place.line - 1}) {
      auto at = comments.find(line);
      if (at == comments.end()) continue;
      if (at->second == "*" || at->second.find("," + lint.rule + ",") != std::string::npos)
        return true;
    }
  }
  return false;
}

}  // namespace tokamak
