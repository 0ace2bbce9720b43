#include <algorithm>

#include "cli/commands.h"
#include "text/load.h"
#include "text/write.h"

// `tokamak convert`: prints every program of a file in another format. Programs that do not verify
// are converted too, because users convert in order to inspect them.

namespace tokamak {

int Convert(const ConvertCommand& command, Console& console) {
  Result<LoadedFile> file = LoadFile(command.file, Verification::kNo);
  if (!file.ok()) return console.Report(file.error());
  bool hlo = command.to == "hlo";

  int exit = 0;
  std::string text;
  for (const auto& program : file.value().programs) {
    if (!program.ok()) {
      exit = std::max(exit, console.Report(program.error(), file.value().source()));
      continue;
    }
    if (!text.empty()) text += "\n// -----\n\n";
    text += hlo ? WriteHloText(*program.value()) : WriteStablehloText(*program.value());
  }
  if (command.output == "-") {
    console.Out(text);
    return exit;
  }
  if (exit != 0) return exit;
  Status written = WriteFileBytes(command.output, text);
  return written.ok() ? exit : console.Report(written.error());
}

}  // namespace tokamak
