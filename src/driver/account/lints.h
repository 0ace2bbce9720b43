#pragma once

#include <string>
#include <vector>

#include "driver/account/account.h"

namespace tokamak {

// A line of the user's program that costs more than it would written in another way.
struct Lint {
  std::string rule;                // "lint.unrolled-loop"
  std::vector<std::string> lines;  // of the user's program; of "lint.one-dispatch" none
  double us = 0;                   // a call, that it is about
  std::string text;                // what it does, and what to write
};

// The dearest first.
std::vector<Lint> LintsOf(const Module& module, const ProgramAccount& account);

}  // namespace tokamak
