#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"

namespace tokamak {

// `tokamak lint script.py`: Python runs the script and reports on its programs (python/tokamak,
// _lint_cli.py), with the output of this process. Returns its exit code, or nullopt if the words
// are not that command. The Python is $TOKAMAK_PYTHON, else python3.
std::optional<int> LintScript(const std::vector<std::string>& words, Console& console);

}  // namespace tokamak
