// Source lines of the HTML report. Only the neighbourhood of lines that the program names is read,
// and only from Python files and from the program's own file: a page is made to be shared, and a
// program may name any file.

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "driver/report/page_data.h"

namespace tokamak {
namespace {

using nlohmann::json;

// Source lines shown above and below one that the program names (chosen).
constexpr int64_t kContextLines = 12;
// Source lines in a page (chosen: some hundred kilobytes).
constexpr size_t kMaxSourceLines = 10000;
// Bytes of a line that are shown (chosen: a constant of a program can have megabytes).
constexpr size_t kMaxLineBytes = 300;

struct SourceLine {
  std::string file;
  int64_t line = 0;
};

// "train.py:12 (loss)".
SourceLine Parsed(const std::string& text) {
  size_t end = text.rfind(" (");
  if (end == std::string::npos) end = text.size();
  size_t colon = text.rfind(':', end - 1);
  if (end == 0 || colon == std::string::npos) return {};
  std::string number = text.substr(colon + 1, end - colon - 1);
  constexpr size_t kMaxDigits = 9;
  if (number.empty() || number.size() > kMaxDigits ||
      number.find_first_not_of("0123456789") != std::string::npos)
    return {};
  return {text.substr(0, colon), std::stoll(number)};
}

std::ifstream Opened(const std::string& file, const std::string& program_file) {
  std::ifstream stream(file);
  if (!stream && std::filesystem::path(file).is_relative())
    stream.open(std::filesystem::path(program_file).parent_path() / file);
  return stream;
}

}  // namespace

json SourcesOf(const json& lines, const std::string& program_file) {
  std::map<std::string, std::set<int64_t>> wanted;
  for (const json& text : lines) {
    SourceLine at = Parsed(text.get<std::string>());
    if (!at.file.ends_with(".py") && at.file != program_file) continue;
    for (int64_t line = at.line - kContextLines; line <= at.line + kContextLines; ++line)
      wanted[at.file].insert(line);
  }
  json sources = json::object();
  size_t count = 0;
  for (const auto& [file, numbers] : wanted) {
    std::ifstream stream = Opened(file, program_file);
    json shown = json::array();
    std::string text;
    int64_t last = *numbers.rbegin();
    for (int64_t number = 1;
         number <= last && count < kMaxSourceLines && std::getline(stream, text); ++number) {
      if (!numbers.contains(number)) continue;
      if (text.size() > kMaxLineBytes) text = text.substr(0, kMaxLineBytes) + " ...";
      shown.push_back({number, text});
      ++count;
    }
    if (!shown.empty()) sources[file] = std::move(shown);
  }
  return sources;
}

}  // namespace tokamak
