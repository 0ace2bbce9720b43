#include "cli/usage.h"

#include <algorithm>

#include <fmt/format.h>

#include "support/near_names.h"

namespace tokamak {
namespace {

std::vector<std::string_view> Views(const std::vector<std::string>& names) {
  return {names.begin(), names.end()};
}

Error WrongCommand(const BadUsage& bad_usage) {
  auto is_command = [](const std::string& word) { return !word.starts_with('-'); };
  auto word = std::ranges::find_if(bad_usage.words, is_command);
  Error error = MakeError(ErrorCode::kUsage, "tokamak: no command given");
  if (word != bad_usage.words.end()) {
    error.message = fmt::format("tokamak: there is no command '{}'{}", ShownWord(*word),
                                DidYouMean(*word, Views(bad_usage.commands)));
  } else if (!bad_usage.words.empty()) {
    error.message = fmt::format("tokamak: no command given, and there is no option '{}'{}",
                                ShownWord(bad_usage.words[0]),
                                DidYouMean(bad_usage.words[0], {"--help", "--version"}));
  }
  error.notes.push_back(fmt::format("the commands are {}", fmt::join(bad_usage.commands, ", ")));
  error.notes.push_back("`tokamak --help` describes them");
  return error;
}

std::string UnexpectedWord(const BadUsage& bad_usage) {
  const std::string& word = bad_usage.unexpected[0];
  if (!word.starts_with('-') || bad_usage.options.empty())
    return fmt::format("unexpected argument '{}'", ShownWord(word));
  std::string name = word.substr(0, word.find('='));
  return fmt::format("there is no option '{}'{}", ShownWord(name),
                     DidYouMean(name, Views(bad_usage.options)));
}

}  // namespace

Error UsageError(const BadUsage& bad_usage) {
  if (bad_usage.command.empty()) return WrongCommand(bad_usage);
  const std::string command = "tokamak " + bad_usage.command;
  Error error = MakeError(
      ErrorCode::kUsage,
      command + ": " +
          (bad_usage.unexpected.empty() ? bad_usage.parser_message : UnexpectedWord(bad_usage)));
  error.notes.push_back("`" + command + " --help` lists its options, with examples");
  return error;
}

Error FileMissing(const std::string& command) {
  BadUsage bad_usage;
  bad_usage.command = command;
  bad_usage.parser_message = "FILE is required";
  return UsageError(bad_usage);
}

}  // namespace tokamak
