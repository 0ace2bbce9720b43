#pragma once

#include <optional>
#include <string>

namespace tokamak {

// Runs a command in a shell, with empty input and its output discarded. Returns its exit code, 128
// plus the signal number if a signal ended it, or 127 if there is no shell. Returns nullopt after
// `seconds`; the command is then killed with its process group. It is also killed if this process
// is interrupted (SIGINT, SIGTERM, SIGHUP).
std::optional<int> RunShellCommand(const std::string& command, double seconds);

}  // namespace tokamak
