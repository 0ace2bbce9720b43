#include "driver/testing/reduce.h"

#include <chrono>
#include <cstdlib>
#include <optional>
#include <unistd.h>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/shell_command.h"
#include "text/load.h"
#include "text/write.h"

// `tokamak reduce`: shrinks a failing program. Every attempt runs in a separate process, so that
// crashes can be reduced as well.

namespace tokamak {
namespace {

std::string Quoted(const std::string& word) {
  std::string text = "'";
  for (char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

// The shell command for a file, with {} replaced by it.
std::string CommandFor(const std::string& pattern, const std::string& file) {
  std::string text = pattern;
  std::string quoted = Quoted(file);
  for (size_t at = text.find("{}"); at != std::string::npos;
       at = text.find("{}", at + quoted.size()))
    text.replace(at, 2, quoted);
  return text;
}

// The path of this executable; inside another one (a test), of the tokamak binary next to it.
std::string ProgramPath() {
  char self[4096];
  ssize_t size = readlink("/proc/self/exe", self, sizeof self);
  std::string path(self, size > 0 ? static_cast<size_t>(size) : 0);
  return path.substr(0, path.rfind('/') + 1) + "tokamak";
}

std::string Pattern(const ReduceCommand& command) {
  if (!command.command.empty()) return command.command;
  std::string text = Quoted(ProgramPath()) + " run {}";
  if (command.inputs.empty()) text += " --seed " + std::to_string(command.seed);
  if (!command.inputs.empty()) text += " --inputs " + Quoted(command.inputs);
  if (!command.expect.empty()) text += " --expect " + Quoted(command.expect);
  return text;
}

// The exit code that counts as failing: the requested one, or that of the original file.
Result<int> WantedExit(const ReduceCommand& command, const std::string& pattern) {
  std::optional<int> now = RunShellCommand(CommandFor(pattern, command.file), command.timeout);
  if (!now)
    return MakeError(ErrorCode::kNotFailing,
                     fmt::format("reduce: '{}' does not end within {} s (--timeout), which counts "
                                 "as not failing",
                                 command.file, command.timeout),
                     {.file = command.file});
  int wanted = *now;
  if (command.fails_with == "mismatch") wanted = Code(ExitCode::kMismatch);
  if (!command.fails_with.empty() && command.fails_with != "mismatch") {
    char* end = nullptr;
    wanted = static_cast<int>(std::strtol(command.fails_with.c_str(), &end, 10));
    if (*end != '\0')
      return MakeError(ErrorCode::kUsage, "reduce: --fails-with '" + command.fails_with +
                                              "' is neither an exit code nor mismatch");
  }
  if (wanted == 0 || *now != wanted)
    return MakeError(
        ErrorCode::kNotFailing,
        fmt::format("reduce: '{}' does not fail{}: the command exits with {}", command.file,
                    wanted == 0 ? "" : fmt::format(" with {}", wanted), *now),
        {.file = command.file});
  return wanted;
}

// Tries each candidate in a separate file.
class Attempts : public ReduceClient {
 public:
  Attempts(const ReduceCommand& command, std::string pattern, int wanted, Console& console)
      : pattern_(std::move(pattern)),
        wanted_(wanted),
        timeout_(command.timeout),
        console_(console),
        output_(command.output.empty() ? command.file + ".reduced.hlo" : command.output),
        hlo_(!output_.ends_with(".mlir")),
        file_(output_ + (hlo_ ? ".attempt.hlo" : ".attempt.mlir")),
        end_(std::chrono::steady_clock::now() + std::chrono::seconds(command.seconds)) {}
  ~Attempts() override { unlink(file_.c_str()); }

  bool Fails(const Module& module) override {
    if (!WriteFileBytes(file_, TextOf(module)).ok()) return false;
    std::optional<int> exit = RunShellCommand(CommandFor(pattern_, file_), timeout_);
    if (!exit) ++timeouts_;
    return exit == wanted_;
  }
  bool OutOfTime() override { return std::chrono::steady_clock::now() > end_; }
  void Progress(const std::string& step, size_t instrs) override {
    if (console_.ShowsProgress())
      console_.Err(fmt::format("\r{} instructions: {}\x1b[K", instrs, step));
  }

  std::string TextOf(const Module& module) const {
    return hlo_ ? WriteHloText(module) : WriteStablehloText(module);
  }
  const std::string& output() const { return output_; }
  // A note about attempts that timed out; empty if there were none.
  std::string TimeoutNote() const {
    if (timeouts_ == 0) return "";
    return fmt::format("{} {} longer than {} s (--timeout) and counted as not failing\n", timeouts_,
                       timeouts_ == 1 ? "attempt took" : "attempts took", timeout_);
  }

 private:
  std::string pattern_;
  int wanted_;
  double timeout_;
  int64_t timeouts_ = 0;
  Console& console_;
  std::string output_;
  bool hlo_;
  std::string file_;
  std::chrono::steady_clock::time_point end_;
};

Status CheckUsage(const ReduceCommand& command) {
  if (command.command.empty() == command.fails_with.empty())
    return MakeError(ErrorCode::kUsage, "reduce: give either --command or --fails-with");
  if (!command.command.empty() && command.command.find("{}") == std::string::npos)
    return MakeError(ErrorCode::kUsage, "reduce: --command has no {} for the file");
  return Ok();
}

Result<std::string> ReduceFile(const ReduceCommand& command, Console& console) {
  TOK_RETURN_IF_ERROR(CheckUsage(command));
  TOK_TRY(LoadedFile file, LoadFile(command.file, Verification::kNo));
  if (file.programs.size() != 1)
    return MakeError(ErrorCode::kUsage, "reduce: a file with one program is needed, this has " +
                                            std::to_string(file.programs.size()));
  TOK_TRY(std::unique_ptr<Module> module, std::move(file.programs[0]));
  std::string pattern = Pattern(command);
  TOK_TRY(int wanted, WantedExit(command, pattern));
  Attempts attempts(command, pattern, wanted, console);
  if (!attempts.Fails(*module))
    return MakeError(ErrorCode::kNotFailing,
                     "reduce: '" + command.file +
                         "' no longer fails after it is printed and parsed again" +
                         (attempts.TimeoutNote().empty() ? "" : ": it does not end in time"),
                     {.file = command.file});
  std::unique_ptr<Module> small = ReduceModule(*module, attempts);
  if (console.ShowsProgress()) console.Err("\r\x1b[K");
  TOK_RETURN_IF_ERROR(WriteFileBytes(attempts.output(), attempts.TextOf(*small)));
  return fmt::format("{}: {} instructions, fails with {}\n{}", attempts.output(),
                     small->CountInstrs(), wanted, attempts.TimeoutNote());
}

}  // namespace

int Reduce(const ReduceCommand& command, Console& console) {
  Result<std::string> done = ReduceFile(command, console);
  if (!done.ok()) return console.Report(done.error());
  console.Out(done.value());
  return 0;
}

}  // namespace tokamak
