#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "random/program.h"
#include "support/result.h"

namespace tokamak::fuzz {

// The command line of random_programs.
struct Options {
  uint64_t first = 0, end = 1000;  // seeds: first .. end - 1
  std::vector<std::string> through;
  std::vector<std::string> files;  // programs to check instead of drawn ones
  std::string keep;                // a folder for failing programs
  std::string write;               // a folder for all programs and their inputs
  int jobs = 1;
  int most_findings = 10;
  ProgramSize size;
  bool print = false, hash = false, statistics = false, help = false;
};

Result<Options> ParseOptions(int argc, char** argv);
std::string HelpText();

}  // namespace tokamak::fuzz
