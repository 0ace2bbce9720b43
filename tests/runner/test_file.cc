#include "runner/test_file.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace tokamak {
namespace {

Error Bad(const std::string& path, size_t line, const std::string& what) {
  return MakeError(ErrorCode::kUsage, "test: " + what,
                   {.file = path, .line = static_cast<int>(line) + 1, .column = 1});
}

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

std::string_view Trim(std::string_view text) {
  size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false, any = false;
  for (char c : text) {
    if (c == '\'') {
      quoted = !quoted;
      any = true;
    } else if (c == ' ' && !quoted) {
      if (any) words.push_back(std::move(word));
      word.clear();
      any = false;
    } else {
      word += c;
      any = true;
    }
  }
  if (any) words.push_back(std::move(word));
  return words;
}

// The text after the comment marker, if the line is a comment.
std::optional<std::string_view> CommentOf(std::string_view line, std::string_view marker) {
  std::string_view text = Trim(line);
  if (!text.starts_with(marker)) return std::nullopt;
  text.remove_prefix(marker.size());
  return text;
}

struct Directive {
  std::string_view key, rest;
};

// "KEY: rest", KEY in capitals and dashes.
std::optional<Directive> DirectiveOf(std::string_view comment) {
  std::string_view text = Trim(comment);
  size_t size = 0;
  while (size < text.size() &&
         (std::isupper(static_cast<unsigned char>(text[size])) != 0 || text[size] == '-'))
    ++size;
  if (size < 2 || size >= text.size() || text[size] != ':') return std::nullopt;
  return Directive{text.substr(0, size), Trim(text.substr(size + 1))};
}

bool ToInt(std::string_view text, int64_t& value) {
  if (text.empty() || text.size() > 9) return false;
  if (!std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return false;
  value = std::stoll(std::string(text));
  return true;
}

class TestFileParser {
 public:
  TestFileParser(TestFile& file, std::string_view marker)
      : file_(file), marker_(marker), lines_(Lines(file.text)) {}

  Status Parse() {
    for (size_t at = 0; at < lines_.size(); ++at) {
      std::optional<std::string_view> comment = CommentOf(lines_[at], marker_);
      if (!comment) continue;
      std::optional<Directive> directive = DirectiveOf(*comment);
      if (!directive) continue;
      TOK_RETURN_IF_ERROR(Take(*directive, at));
    }
    if (file_.runs.empty()) return Bad(file_.path, 0, "no RUN line");
    return Ok();
  }

 private:
  Status Take(const Directive& directive, size_t& at) {
    if (directive.key == "RUN") {
      file_.runs.push_back({});
      file_.runs.back().words = Words(directive.rest);
      if (file_.runs.back().words.empty()) return Bad(file_.path, at, "RUN of nothing");
      return Ok();
    }
    static constexpr std::string_view kIgnored[] = {"NOTE", "CHECK", "XFAIL"};
    if (std::find(std::begin(kIgnored), std::end(kIgnored), directive.key) != std::end(kIgnored))
      return Ok();
    if (file_.runs.empty())
      return Bad(file_.path, at, std::string(directive.key) + " before any RUN");
    TestRun& run = file_.runs.back();
    std::string rest(directive.rest);
    int64_t number = 0;
    if (directive.key == "ERROR") return TakeError(rest, run, at);
    if (directive.key == "AFTER") return TakeAfter(rest, run, at);
    if (directive.key == "UNCHECKED") return TakeUnchecked(rest, run, at);
    if (directive.key == "SMALLER") return TakeSmaller(rest, run, at);
    if (directive.key == "COST") return TakeCost(rest, run, at);
    if (directive.key == "VALUES") {
      run.values.push_back(rest);
    } else if (directive.key == "OUT") {
      run.out.push_back(rest);
    } else if (directive.key == "ERR") {
      run.err.push_back(rest);
    } else if (directive.key == "ACCEPTED") {
      run.accepted.push_back(rest);
    } else if (directive.key == "REJECTED") {
      run.rejected.push_back(rest);
    } else if (directive.key == "CHEAPER-THAN" && !rest.empty()) {
      run.cheaper_than.push_back(Words(rest));
    } else if (directive.key == "SAME-AS") {
      run.same_as = rest;
    } else if (directive.key == "EXIT" && ToInt(rest, number)) {
      run.exit = static_cast<int>(number);
    } else if (directive.key == "CHECKS" && ToInt(rest, number)) {
      run.checks = number;
    } else if (directive.key == "KERNELS" && ToInt(rest, number)) {
      run.kernels = number;
    } else {
      return Bad(file_.path, at, "'" + std::string(directive.key) + ": " + rest + "' says nothing");
    }
    return Ok();
  }

  Status TakeError(const std::string& rest, TestRun& run, size_t at) const {
    std::vector<std::string> words = Words(rest);
    bool located = words.size() == 3 || (words.size() == 4 && words[2] == "byte");
    if (words.empty() || !words[0].starts_with("TK") || (words.size() > 1 && !located) ||
        (located && words[1] != "at"))
      return Bad(file_.path, at, "'" + rest + "' is not like 'TK2103 at 7:19'");
    ExpectedError error{words[0], ""};
    if (words.size() == 3) error.location = words[2];
    if (words.size() == 4) error.location = "byte " + words[3];
    run.errors.push_back(std::move(error));
    run.error_lines.push_back(at);
    return Ok();
  }

  // "values: reason" or "cost: reason".
  Status TakeUnchecked(const std::string& rest, TestRun& run, size_t at) const {
    for (auto [what, reason] :
         {std::pair{"values: ", &run.unchecked_values}, std::pair{"cost: ", &run.unchecked_cost}}) {
      if (!rest.starts_with(what)) continue;
      *reason = rest.substr(std::string_view(what).size());
      return Ok();
    }
    return Bad(file_.path, at, "'" + rest + "' is not like 'values: reason' or 'cost: reason'");
  }

  // "65536=48 1024=40".
  Status TakeSmaller(const std::string& rest, TestRun& run, size_t at) const {
    for (const std::string& word : Words(rest)) {
      size_t equals = word.find('=');
      int64_t number = 0;
      if (equals == std::string::npos || equals == 0 || !ToInt(word.substr(equals + 1), number))
        return Bad(file_.path, at, "'" + word + "' is not like '65536=48'");
      run.smaller.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    }
    return Ok();
  }

  // "<= 12.5 us".
  Status TakeCost(const std::string& rest, TestRun& run, size_t at) const {
    std::vector<std::string> words = Words(rest);
    char* end = nullptr;
    double limit = words.size() == 3 ? std::strtod(words[1].c_str(), &end) : 0;
    if (words.size() != 3 || words[0] != "<=" || words[2] != "us" || *end != '\0' || limit <= 0)
      return Bad(file_.path, at, "'" + rest + "' is not like '<= 12.5 us'");
    run.cost_limit_us = limit;
    return Ok();
  }

  // Up to the first line that is not a comment or is another directive.
  Status TakeAfter(const std::string& rest, TestRun& run, size_t& at) {
    run.after.emplace();
    run.after_begin = at;
    if (!rest.empty()) run.after->push_back(rest);
    while (at + 1 < lines_.size()) {
      std::optional<std::string_view> comment = CommentOf(lines_[at + 1], marker_);
      if (!comment || DirectiveOf(*comment)) break;
      if (comment->starts_with(' ')) comment->remove_prefix(1);
      run.after->push_back(std::string(*comment));
      ++at;
    }
    run.after_end = at + 1;
    return Ok();
  }

  TestFile& file_;
  std::string_view marker_;
  std::vector<std::string_view> lines_;
};

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool DecodeQuoted(std::string_view text, std::string& out) {
  if (text.size() < 2 || text.back() != '"') return false;
  text = text.substr(1, text.size() - 2);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    if (++i >= text.size()) return false;
    if (text[i] == 'x') {
      if (i + 2 >= text.size()) return false;
      out += static_cast<char>(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2]));
      i += 2;
    } else {
      out += text[i] == 'n' ? '\n' : text[i] == 't' ? '\t' : text[i];
    }
  }
  return true;
}

bool DecodeHex(std::string_view text, std::string& out) {
  int high = -1;
  for (char c : text) {
    if (c == ' ') continue;
    int digit = HexDigit(c);
    if (digit < 0) return false;
    if (high < 0) {
      high = digit;
    } else {
      out += static_cast<char>(high * 16 + digit);
      high = -1;
    }
  }
  return high < 0;
}

bool DecodeItem(std::string_view text, std::string& out) {
  size_t star = text.find(" * ");
  int64_t times = 1;
  if (star != std::string_view::npos && ToInt(Trim(text.substr(0, star)), times))
    text = Trim(text.substr(star + 3));
  std::string item;
  bool ok = text.starts_with('"') ? DecodeQuoted(text, item) : DecodeHex(text, item);
  if (!ok || item.size() * static_cast<size_t>(times) > (size_t{1} << 31)) return false;
  out.reserve(out.size() + item.size() * static_cast<size_t>(times));
  for (int64_t i = 0; i < times; ++i) out += item;
  return true;
}

}  // namespace

std::string ToString(const ExpectedError& error) {
  return error.location.empty() ? error.code : error.code + " at " + error.location;
}

const std::string* FirstMissing(std::string_view text, const std::vector<std::string>& parts) {
  size_t from = 0;
  for (const std::string& part : parts) {
    size_t at = text.find(part, from);
    if (at == std::string_view::npos) return &part;
    from = at + part.size();
  }
  return nullptr;
}

std::string WithNumbers(std::string_view text,
                        const std::vector<std::pair<std::string, std::string>>& numbers) {
  auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_';
  };
  // A window's size and its padding are joined by an underscore: pad=1000002_0.
  auto is_end = [&](char c) { return c == '_' || !is_part(c); };
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if ((at == 0 || text[at - 1] == '\n') && text.substr(at).starts_with("//")) {
      size_t end = std::min(text.find('\n', at), text.size());
      out += text.substr(at, end - at);
      at = end;
      continue;
    }
    bool begins = at == 0 || !is_part(text[at - 1]);
    auto row = std::ranges::find_if(numbers, [&](const auto& pair) {
      size_t end = at + pair.first.size();
      return begins && text.substr(at).starts_with(pair.first) &&
             (end == text.size() || is_end(text[end]));
    });
    if (row == numbers.end()) {
      out += text[at++];
    } else {
      out += row->second;
      at += row->first.size();
    }
  }
  return out;
}

Result<TestFile> ParseTestFile(const std::string& path, std::string text) {
  TestFile file{path, std::move(text), {}};
  TOK_RETURN_IF_ERROR(TestFileParser(file, path.ends_with(".bytes") ? "#" : "//").Parse());
  return file;
}

Result<std::string> DecodeBytesFile(std::string_view text, const std::string& path) {
  std::string out;
  std::vector<std::string_view> lines = Lines(text);
  for (size_t i = 0; i < lines.size(); ++i) {
    std::string_view line = Trim(lines[i]);
    if (line.empty() || line.starts_with('#')) continue;
    if (!DecodeItem(line, out)) return Bad(path, i, "neither hex, \"text\" nor N * one of them");
  }
  return out;
}

std::string WithAfter(const TestFile& file, const TestRun& run, std::string_view output) {
  std::vector<std::string_view> lines = Lines(file.text);
  std::string marker = file.path.ends_with(".bytes") ? "#" : "//", text;
  for (size_t i = 0; i < run.after_begin; ++i) text += std::string(lines[i]) + "\n";
  text += marker + " AFTER:\n";
  for (std::string_view line : Lines(output))
    if (!Trim(line).empty()) text += marker + " " + std::string(line) + "\n";
  for (size_t i = run.after_end; i < lines.size(); ++i) text += std::string(lines[i]) + "\n";
  return text;
}

std::string WithErrors(const TestFile& file, const TestRun& run,
                       const std::vector<ExpectedError>& errors) {
  std::vector<std::string_view> lines = Lines(file.text);
  std::string marker = file.path.ends_with(".bytes") ? "#" : "//", text;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (std::find(run.error_lines.begin(), run.error_lines.end(), i) == run.error_lines.end()) {
      text += std::string(lines[i]) + "\n";
    } else if (i == run.error_lines[0]) {
      for (const ExpectedError& error : errors)
        text += marker + " ERROR: " + ToString(error) + "\n";
    }
  }
  return text;
}

}  // namespace tokamak
