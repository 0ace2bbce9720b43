#pragma once

#include <string>
#include <vector>

#include "driver/account/account.h"

namespace tokamak {

// A line of the user's program that costs more than it would written in another way.
struct Lint {
  std::string rule;                // "lint.unrolled-loop"
  std::vector<std::string> lines;  // of the user's program; of "lint.one-dispatch" none
  double us = 0;                   // of a call's, which no other lint counts
  std::string text;                // what it does, and what to write
};

struct Lints {
  std::vector<Lint> all;  // by us, the largest first
  // What a call takes: to be computed, or to be called from Python where that takes longer. The
  // microseconds of all lints add up to no more.
  double call_us = 0;
};
Lints LintsOf(const Module& module, const ProgramAccount& account);

}  // namespace tokamak
