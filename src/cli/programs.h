#pragma once

#include <algorithm>
#include <string>

#include "cli/console.h"
#include "text/load.h"

namespace tokamak {

// Calls look(program, source) for each valid program of a file and reports the errors of the
// others. Returns the highest exit code. `source` is the text that errors quote.
template <typename F>
int ForEachProgram(const std::string& path, Console& console, F&& look) {
  Result<LoadedFile> file = LoadFile(path, Verification::kYes);
  if (!file.ok()) return console.Report(file.error());
  int exit = 0;
  for (auto& program : file.value().programs)
    exit = std::max(exit, program.ok() ? look(*program.value(), file.value().source())
                                       : console.Report(program.error(), file.value().source()));
  return exit;
}

}  // namespace tokamak
