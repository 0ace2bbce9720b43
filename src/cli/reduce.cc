#include "driver/reduce.h"

#include <chrono>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "cli/commands.h"
#include "driver/load.h"
#include "text/write.h"

// `tokamak reduce`: makes a failing program small. Every attempt is another
// process, so that a fault that ends one can be reduced too.

namespace tokamak {
namespace {

std::string Quoted(const std::string& word) {
  std::string text = "'";
  for (char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

// The shell command for a file; {} stands for it.
std::string CommandFor(const std::string& pattern, const std::string& file) {
  std::string text = pattern;
  std::string quoted = Quoted(file);
  for (size_t at = text.find("{}"); at != std::string::npos;
       at = text.find("{}", at + quoted.size()))
    text.replace(at, 2, quoted);
  return text + " >/dev/null 2>&1";
}

int ExitOf(const std::string& shell_command) {
  int status = std::system(shell_command.c_str());
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return 128 + (WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

std::string Pattern(const ReduceCommand& command) {
  if (!command.command.empty()) return command.command;
  char self[4096];
  ssize_t size = readlink("/proc/self/exe", self, sizeof self);
  std::string text =
      Quoted(std::string(self, size > 0 ? static_cast<size_t>(size) : 0)) + " run {}";
  if (command.inputs.empty()) text += " --seed " + std::to_string(command.seed);
  if (!command.inputs.empty()) text += " --inputs " + Quoted(command.inputs);
  if (!command.expect.empty()) text += " --expect " + Quoted(command.expect);
  return text;
}

// The exit code that failing means: given, or that of the file itself.
Result<int> WantedExit(const ReduceCommand& command, const std::string& pattern) {
  int now = ExitOf(CommandFor(pattern, command.file));
  int wanted = now;
  if (command.fails_with == "mismatch") wanted = Code(ExitCode::kMismatch);
  if (!command.fails_with.empty() && command.fails_with != "mismatch") {
    char* end = nullptr;
    wanted = static_cast<int>(std::strtol(command.fails_with.c_str(), &end, 10));
    if (*end != '\0')
      return MakeError(ErrorCode::kUsage, "reduce: --fails-with '" + command.fails_with +
                                              "' is neither an exit code nor mismatch");
  }
  if (wanted == 0 || now != wanted)
    return MakeError(
        ErrorCode::kNotFailing,
        fmt::format("reduce: '{}' gives exit code {}, which is not failing{}", command.file, now,
                    wanted == 0 ? "" : fmt::format(" with {}", wanted)),
        {.file = command.file});
  return wanted;
}

Result<std::string> ReduceFile(const ReduceCommand& command, Console& console) {
  if (command.command.empty() == command.fails_with.empty())
    return MakeError(ErrorCode::kUsage, "reduce: give either --command or --fails-with");
  if (!command.command.empty() && command.command.find("{}") == std::string::npos)
    return MakeError(ErrorCode::kUsage, "reduce: --command has no {} for the file");
  TOK_TRY(LoadedFile file, LoadFile(command.file, Verification::kNo));
  if (file.programs.size() != 1)
    return MakeError(ErrorCode::kUsage, "reduce: a file with one program is needed, this has " +
                                            std::to_string(file.programs.size()));
  TOK_TRY(std::unique_ptr<Module> module, std::move(file.programs[0]));
  std::string pattern = Pattern(command);
  TOK_TRY(int wanted, WantedExit(command, pattern));

  std::string output = command.output.empty() ? command.file + ".reduced.hlo" : command.output;
  bool hlo = !output.ends_with(".mlir");
  std::string attempt = output + ".attempt" + (hlo ? ".hlo" : ".mlir");
  auto text_of = [hlo](const Module& m) { return hlo ? WriteHloText(m) : WriteStablehloText(m); };
  auto begin = std::chrono::steady_clock::now();
  ReduceOptions options;
  options.fails = [&](const Module& candidate) {
    return WriteFileBytes(attempt, text_of(candidate)).ok() &&
           ExitOf(CommandFor(pattern, attempt)) == wanted;
  };
  options.out_of_time = [&] {
    return std::chrono::steady_clock::now() - begin > std::chrono::seconds(command.seconds);
  };
  options.progress = [&](const std::string& step, size_t instrs) {
    if (console.ShowsProgress())
      console.Err(fmt::format("\r{} instructions: {}\x1b[K", instrs, step));
  };
  if (!options.fails(*module))
    return MakeError(
        ErrorCode::kNotFailing,
        "reduce: '" + command.file + "' fails no more once it is printed and read again",
        {.file = command.file});
  std::unique_ptr<Module> small = ReduceModule(*module, options);
  if (console.ShowsProgress()) console.Err("\r\x1b[K");
  unlink(attempt.c_str());
  TOK_RETURN_IF_ERROR(WriteFileBytes(output, text_of(*small)));
  size_t count = 0;
  for (const auto& computation : small->computations()) count += computation->size();
  return fmt::format("{}: {} instructions, fails with {}\n", output, count, wanted);
}

}  // namespace

int Reduce(const ReduceCommand& command, Console& console) {
  Result<std::string> done = ReduceFile(command, console);
  if (!done.ok()) return console.Report(done.error());
  console.Out(done.value());
  return 0;
}

}  // namespace tokamak
