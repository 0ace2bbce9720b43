#include "text/read.h"

#include <algorithm>
#include <cctype>

#include "support/near_names.h"

// Selects the reader of a file and splits a file into programs.

namespace tokamak {
namespace {

constexpr std::string_view kBytecodeMagic = "ML\xefR";

bool IsWordChar(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
}

bool IsBlank(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// The text after leading blanks and comments.
std::string_view SkipBlanks(std::string_view text) {
  for (;;) {
    size_t at = 0;
    while (at < text.size() && IsBlank(text[at])) ++at;
    if (at == text.size()) return {};
    text.remove_prefix(at);
    size_t end = 0;
    if (text.starts_with("//")) {
      end = text.find('\n');
    } else if (text.starts_with("/*")) {
      end = text.find("*/", 2);
      if (end != std::string_view::npos) end += 2;
    } else {
      return text;
    }
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end);
  }
}

std::string_view TakeWord(std::string_view& text) {
  size_t size = 0;
  while (size < text.size() && IsWordChar(text[size])) ++size;
  std::string_view word = text.substr(0, size);
  text = SkipBlanks(text.substr(size));
  return word;
}

// "%x = f32[2] add(...)" is HLO, "%0 = stablehlo.add ..." and "%0:2 = ..." are MLIR.
Format FormatOfAssignment(std::string_view text) {
  if (!text.starts_with('=')) return Format::kMlirText;
  text = SkipBlanks(text.substr(1));
  if (text.starts_with('(')) return Format::kHloText;  // a tuple shape
  std::string_view word = TakeWord(text);
  return !word.empty() && text.starts_with('[') ? Format::kHloText : Format::kMlirText;
}

// Adds the formats that are read, and how to get one.
Error NotAProgram(ErrorCode code, const std::string& message) {
  Error error = MakeError(code, message);
  error.notes.push_back(
      "a program is StableHLO text (.mlir), MLIR bytecode (.mlirbc) or HLO text (.hlo)");
  error.notes.push_back("JAX prints one with `print(jax.jit(f).lower(*args).as_text())`");
  return error;
}

Error UnknownFormat(const std::string& why) {
  return NotAProgram(ErrorCode::kUnknownFormat, "the input is not a program: " + why);
}

// Whether the start of the input has bytes that no text has.
bool IsBinary(std::string_view bytes) {
  bytes = bytes.substr(0, 512);
  return std::any_of(bytes.begin(), bytes.end(),
                     [](char c) { return c != '\x1b' && c >= 0 && c < ' ' && !IsBlank(c); });
}

Result<Format> FormatOfText(std::string_view text) {
  char first = text[0];
  if (first == '"' || first == '#' || first == '!' || first == '{') return Format::kMlirText;
  bool value = first == '%';
  if (value) text.remove_prefix(1);
  std::string_view word = TakeWord(text);
  if (word.empty())
    return UnknownFormat("it begins with byte " +
                         std::to_string(static_cast<unsigned char>(first)));
  if (value && !text.starts_with('(') && !text.starts_with('{')) return FormatOfAssignment(text);
  if (value || word == "HloModule" || word == "ENTRY") return Format::kHloText;
  if (word == "module" || word == "func" || word.find('.') != std::string_view::npos)
    return Format::kMlirText;
  // A computation without "%": "add { ..." or "add (x: f32[]) -> f32[] { ...".
  if (text.starts_with('{') || text.starts_with('(')) return Format::kHloText;
  return UnknownFormat("it begins with '" + ShownWord(word) + "'");
}

TextSpan FirstToken(std::string_view all, std::string_view rest, const std::string& file) {
  std::string_view before = all.substr(0, static_cast<size_t>(rest.data() - all.data()));
  auto lines = std::count(before.begin(), before.end(), '\n');
  size_t line_begin = before.rfind('\n');
  size_t column =
      line_begin == std::string_view::npos ? before.size() : before.size() - line_begin - 1;
  return {
      .file = file, .line = static_cast<int>(lines) + 1, .column = static_cast<int>(column) + 1};
}

Result<Format> LocatedFormat(std::string_view text, const std::string& file) {
  Result<Format> format = RecogniseFormat(text);
  if (format.ok()) return format;
  Error error = std::move(format.error());
  std::string_view rest = SkipBlanks(text);
  error.where =
      rest.empty() ? TextSpan{.file = file, .line = 1, .column = 1} : FirstToken(text, rest, file);
  return error;
}

struct InputSection {
  std::string_view text;
  int first_line = 1;
};

// Whether only dashes and blanks follow on the line.
bool EndsLine(std::string_view text) {
  size_t at = text.find_first_not_of("- \t\r");
  return at == std::string_view::npos || text[at] == '\n';
}

// Splits where "// -----" ends a line, regardless of the text before it (also "// // -----", as
// MLIR's own tools do).
std::vector<InputSection> Split(std::string_view text) {
  constexpr std::string_view kMarker = "// -----";
  std::vector<InputSection> sections;
  InputSection section{text, 1};
  size_t begin = 0, from = 0;
  int line = 1;
  for (size_t at = text.find(kMarker); at != std::string_view::npos;
       at = text.find(kMarker, from)) {
    line += static_cast<int>(std::count(text.begin() + static_cast<ptrdiff_t>(from),
                                        text.begin() + static_cast<ptrdiff_t>(at), '\n'));
    from = at + kMarker.size();
    if (!EndsLine(text.substr(from))) continue;
    section.text = text.substr(begin, at - begin);
    sections.push_back(section);
    size_t end = text.find('\n', at);
    begin = from = end == std::string_view::npos ? text.size() : end + 1;
    section.first_line = ++line;
  }
  section.text = text.substr(begin);
  sections.push_back(section);
  return sections;
}

Result<std::unique_ptr<Module>> ReadInputSection(Format format, const InputSection& section,
                                                 const std::string& file) {
  if (SkipBlanks(section.text).empty()) {
    auto module = std::make_unique<Module>();
    module->file = file;
    return module;
  }
  if (format == Format::kMlirText) return ReadMlirText(section.text, file, section.first_line);
  return ReadHloText(section.text, file, section.first_line);
}

}  // namespace

Result<Format> RecogniseFormat(std::string_view bytes) {
  if (bytes.starts_with(kBytecodeMagic)) return Format::kMlirBytecode;
  std::string_view text = SkipBlanks(bytes);
  if (text.empty())
    return NotAProgram(ErrorCode::kEmptyInput, bytes.empty() ? "the input is empty: no program"
                                                             : "the input has no program");
  Result<Format> format = FormatOfText(text);
  if (format.ok() || !IsBinary(bytes)) return format;
  return UnknownFormat("it is binary, but not MLIR bytecode (HLO protos are not read)");
}

Result<std::unique_ptr<Module>> ReadModule(const Bytes& bytes, const std::string& file) {
  TOK_TRY(Format format, LocatedFormat(bytes.text(), file));
  switch (format) {
    case Format::kMlirText:
      return ReadMlirText(bytes.text(), file);
    case Format::kMlirBytecode:
      return ReadMlirBytecode(bytes, file);
    case Format::kHloText:
      return ReadHloText(bytes.text(), file);
  }
  TOK_UNREACHABLE("a format without a reader");
}

std::vector<Result<std::unique_ptr<Module>>> ReadModules(const Bytes& bytes,
                                                         const std::string& file) {
  std::vector<Result<std::unique_ptr<Module>>> modules;
  Result<Format> format = LocatedFormat(bytes.text(), file);
  if (!format.ok()) {
    modules.emplace_back(std::move(format.error()));
  } else if (format.value() == Format::kMlirBytecode) {
    modules.push_back(ReadMlirBytecode(bytes, file));
  } else {
    for (const InputSection& section : Split(bytes.text()))
      modules.push_back(ReadInputSection(format.value(), section, file));
  }
  return modules;
}

}  // namespace tokamak
