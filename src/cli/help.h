#pragma once

#include <string>
#include <string_view>

// The texts of `tokamak COMMAND --help`, apart from the options (cli.cc).

namespace tokamak {

extern const char kTopHelp[];  // of `tokamak --help`

struct CommandHelp {
  const char* summary;  // one line
  const char* text;     // below the options: what to know, and examples
};

extern const CommandHelp kRunHelp;
extern const CommandHelp kCheckHelp;
extern const CommandHelp kConvertHelp;
extern const CommandHelp kOpsHelp;
extern const CommandHelp kReduceHelp;
extern const CommandHelp kKernelsHelp;
extern const CommandHelp kExplainHelp;
extern const CommandHelp kBenchHelp;
extern const CommandHelp kLintHelp;
extern const CommandHelp kCalibrateHelp;
extern const CommandHelp kOptHelp;
extern const CommandHelp kBisectHelp;

// The placeholder of a textual option's value in the help, such as "FILE.npz" for inputs.
std::string_view ValueName(std::string_view option);

// Text with line breaks so that no line is longer than the right column of the help.
std::string Wrapped(std::string_view text);

}  // namespace tokamak
