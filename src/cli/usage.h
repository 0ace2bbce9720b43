#pragma once

#include <string>
#include <vector>

#include "support/error.h"

namespace tokamak {

// A command line that the parser rejected.
struct BadUsage {
  std::vector<std::string> words;       // as typed
  std::vector<std::string> commands;    // all known commands
  std::string command;                  // the named command; empty if none
  std::vector<std::string> options;     // of the command
  std::vector<std::string> unexpected;  // words that it does not accept
  std::string parser_message;           // the parser's own message
};

// The usage error, with the closest known name and the list of names.
Error UsageError(const BadUsage& bad_usage);

// The error of a command without a file or a substitute for one.
Error FileMissing(const std::string& command);

}  // namespace tokamak
