#include <fmt/format.h>

#include "cli/commands.h"
#include "explain/error_help.h"

// `tokamak explain TK2304`: describes an error code.

namespace tokamak {

std::optional<int> ExplainError(const ExplainCommand& command, Console& console) {
  const ErrorHelp* help = FindErrorHelp(command.file);
  if (help == nullptr) return std::nullopt;
  const ErrorInfo& info = InfoOf(help->code);
  console.Out(fmt::format("{}: {}\n\n{}\n\nFix: {}\n\nExit code {}, PJRT status {}\n",
                          CodeText(help->code), info.meaning, help->why, help->fix,
                          static_cast<int>(info.exit), info.status));
  return 0;
}

}  // namespace tokamak
