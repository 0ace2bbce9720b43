#pragma once

#include <optional>
#include <string>

namespace tokamak {

// Runs a command in a shell, with nothing to read and its output thrown away: its exit code, 128
// and the number of the signal that ended it, or 127 when there is no shell. Nothing: it took
// longer than `seconds`, and the command was killed with whatever it started. It is killed, too,
// when this process is interrupted (SIGINT, SIGTERM, SIGHUP).
std::optional<int> RunShellCommand(const std::string& command, double seconds);

}  // namespace tokamak
