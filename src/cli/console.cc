#include "cli/console.h"

#include <cstdio>
#include <unistd.h>

namespace tokamak {

int Console::Report(const Error& error, std::string_view source) {
  Err(Render(error, source));
  return Code(InfoOf(error.code).exit);
}

void StdConsole::Out(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);  // a consumer of --json waits for each line
}

void StdConsole::Err(std::string_view text) {
  std::fflush(stdout);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

bool StdConsole::ShowsProgress() const {
  return isatty(STDERR_FILENO) == 1;
}

}  // namespace tokamak
