#include "cli/usage.h"

#include <algorithm>

#include <fmt/format.h>

#include "support/edit_distance.h"

namespace tokamak {
namespace {

// A word shortened for messages: a whole file may have been pasted.
std::string Shown(const std::string& word) {
  // Characters (chosen: fits a line).
  constexpr size_t kLongest = 60;
  return word.size() <= kLongest ? word : word.substr(0, kLongest) + "...";
}

std::string Nearest(const std::string& word, const std::vector<std::string>& names) {
  return *std::ranges::min_element(
      names, {}, [&](const std::string& name) { return EditDistance(Shown(word), name); });
}

Error WrongCommand(const BadUsage& bad_usage) {
  auto is_command = [](const std::string& word) { return !word.starts_with('-'); };
  auto word = std::ranges::find_if(bad_usage.words, is_command);
  Error error = MakeError(ErrorCode::kUsage, "tokamak: no command given");
  if (word != bad_usage.words.end()) {
    error.message = fmt::format("tokamak: there is no command '{}'; did you mean '{}'?",
                                Shown(*word), Nearest(*word, bad_usage.commands));
  } else if (!bad_usage.words.empty()) {
    error.message = fmt::format("tokamak: no command given, and there is no option '{}'",
                                Shown(bad_usage.words[0]));
  }
  error.notes.push_back(fmt::format("the commands are {}", fmt::join(bad_usage.commands, ", ")));
  error.notes.push_back("`tokamak --help` says what each does");
  return error;
}

std::string UnexpectedWord(const BadUsage& bad_usage) {
  const std::string& word = bad_usage.unexpected[0];
  if (!word.starts_with('-') || bad_usage.options.empty())
    return fmt::format("unexpected argument '{}'", Shown(word));
  std::string name = word.substr(0, word.find('='));
  return fmt::format("there is no option '{}'; did you mean '{}'?", Shown(name),
                     Nearest(name, bad_usage.options));
}

}  // namespace

Error UsageError(const BadUsage& bad_usage) {
  if (bad_usage.command.empty()) return WrongCommand(bad_usage);
  const std::string command = "tokamak " + bad_usage.command;
  Error error = MakeError(
      ErrorCode::kUsage,
      command + ": " +
          (bad_usage.unexpected.empty() ? bad_usage.parser_message : UnexpectedWord(bad_usage)));
  error.notes.push_back("`" + command + " --help` shows its arguments");
  return error;
}

Error FileMissing(const std::string& command) {
  BadUsage bad_usage;
  bad_usage.command = command;
  bad_usage.parser_message = "FILE is required";
  return UsageError(bad_usage);
}

std::string NoneOf(const std::string& word, const std::vector<std::string>& names) {
  std::string all;
  for (size_t i = 0; i < names.size(); ++i)
    all += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  return fmt::format("'{}' is none of {}; did you mean '{}'?", Shown(word), all,
                     Nearest(word, names));
}

}  // namespace tokamak
