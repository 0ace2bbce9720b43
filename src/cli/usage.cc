#include "cli/usage.h"

#include <algorithm>

#include <fmt/format.h>

#include "support/edit_distance.h"

namespace tokamak {
namespace {

// A word as messages show it: a whole file may have been pasted in its place.
std::string Shown(const std::string& word) {
  constexpr size_t kLongest = 60;
  return word.size() <= kLongest ? word : word.substr(0, kLongest) + "...";
}

std::string Nearest(const std::string& word, const std::vector<std::string>& names) {
  return *std::ranges::min_element(
      names, {}, [&](const std::string& name) { return EditDistance(Shown(word), name); });
}

Error WrongCommand(const RefusedWords& refused) {
  auto is_command = [](const std::string& word) { return !word.starts_with('-'); };
  auto word = std::ranges::find_if(refused.words, is_command);
  Error error = MakeError(ErrorCode::kUsage, "tokamak: no command given");
  if (word != refused.words.end()) {
    error.message = fmt::format("tokamak: there is no command '{}'; did you mean '{}'?",
                                Shown(*word), Nearest(*word, refused.commands));
  } else if (!refused.words.empty()) {
    error.message = fmt::format("tokamak: no command given, and there is no option '{}'",
                                Shown(refused.words[0]));
  }
  error.notes.push_back(fmt::format("the commands are {}", fmt::join(refused.commands, ", ")));
  error.notes.push_back("`tokamak --help` says what each does");
  return error;
}

std::string UnexpectedWord(const RefusedWords& refused) {
  const std::string& word = refused.unexpected[0];
  if (!word.starts_with('-') || refused.options.empty())
    return fmt::format("takes no further word, but there is '{}'", Shown(word));
  std::string name = word.substr(0, word.find('='));
  return fmt::format("there is no option '{}'; did you mean '{}'?", Shown(name),
                     Nearest(name, refused.options));
}

}  // namespace

Error UsageError(const RefusedWords& refused) {
  if (refused.command.empty()) return WrongCommand(refused);
  const std::string command = "tokamak " + refused.command;
  Error error = MakeError(
      ErrorCode::kUsage,
      command + ": " + (refused.unexpected.empty() ? refused.fault : UnexpectedWord(refused)));
  error.notes.push_back("`" + command + " --help` shows what it takes");
  return error;
}

Error FileMissing(const std::string& command) {
  RefusedWords refused;
  refused.command = command;
  refused.fault = "FILE is required";
  return UsageError(refused);
}

std::string NoneOf(const std::string& word, const std::vector<std::string>& names) {
  std::string all;
  for (size_t i = 0; i < names.size(); ++i)
    all += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  return fmt::format("'{}' is none of {}; did you mean '{}'?", Shown(word), all,
                     Nearest(word, names));
}

}  // namespace tokamak
