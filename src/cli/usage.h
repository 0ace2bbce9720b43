#pragma once

#include <string>
#include <vector>

#include "support/error.h"

namespace tokamak {

// A command line that the parser refused.
struct RefusedWords {
  std::vector<std::string> words;       // as typed
  std::vector<std::string> commands;    // all that there are
  std::string command;                  // the one that was named; "": none
  std::vector<std::string> options;     // that it has
  std::vector<std::string> unexpected;  // words that it does not take
  std::string fault;                    // what the parser says
};

// What is wrong, with the name that was probably meant and those that there are.
Error UsageError(const RefusedWords& refused);

// What a command says that was given neither a file nor what stands for one.
Error FileMissing(const std::string& command);

// "'x' is none of a, b and c; did you mean 'a'?"
std::string NoneOf(const std::string& word, const std::vector<std::string>& names);

}  // namespace tokamak
