#include "cli/lint_script.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

namespace tokamak {
namespace {

// The package of this build, if the interpreter does not have one: it lies in the clone, or beside
// the library of an installation.
constexpr const char* kRunLint =
    "import sys\n"
    "try:\n"
    "    from tokamak import _lint_cli\n"
    "except ImportError as error:\n"
    "    if len(sys.argv) < 2 or not sys.argv[1]:\n"
    "        print(f'error: {sys.executable} cannot import tokamak ({error}): install the package, "
    "or set '\n"
    "              'TOKAMAK_PYTHON to a Python that has it', file=sys.stderr)\n"
    "        sys.exit(2)\n"
    "    sys.path.insert(0, sys.argv[1])\n"
    "    from tokamak import _lint_cli\n"
    "sys.argv[:] = ['tokamak', *sys.argv[2:]]\n"
    "sys.exit(_lint_cli.main(sys.argv[1:]))\n";

// The folder `python` of the clone that this program was built in; empty if there is none.
std::string PackageFolder() {
  std::error_code error;
  std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  std::filesystem::path folder = program.parent_path().parent_path().parent_path() / "python";
  bool found = !error && std::filesystem::exists(folder / "tokamak" / "_lint_cli.py", error);
  return found ? folder.string() : "";
}

// Whether the command is about a script, which is the first word after the options.
bool IsAboutScript(const std::vector<std::string>& words) {
  if (words.empty() || words[0] != "lint") return false;
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i].ends_with(".py") && !words[i].starts_with("-")) return true;
    bool is_value = i > 1 && words[i - 1].starts_with("--");  // `--target h200`
    if (!words[i].starts_with("-") && !is_value) return false;
  }
  return false;
}

// The exit code of the program that a process id names.
int WaitFor(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  constexpr int kSignalBase = 128;  // as shells report a signal
  return WIFEXITED(status) ? WEXITSTATUS(status) : kSignalBase + WTERMSIG(status);
}

}  // namespace

std::optional<int> LintScript(const std::vector<std::string>& words, Console& console) {
  if (!IsAboutScript(words)) return std::nullopt;
  const char* chosen = std::getenv("TOKAMAK_PYTHON");
  std::string python = chosen != nullptr && *chosen != '\0' ? chosen : "python3";
  std::vector<std::string> command = {python, "-c", kRunLint, PackageFolder()};
  command.insert(command.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  // Ctrl-C is for the script, which then reports what it has recorded.
  auto before = signal(SIGINT, SIG_IGN);
  pid_t pid = 0;
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGINT);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  int failed = posix_spawnp(&pid, python.c_str(), nullptr, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  int code = failed == 0 ? WaitFor(pid) : 0;
  signal(SIGINT, before);
  if (failed == 0) return code;
  return console.Report(MakeError(
      ErrorCode::kUsage, "lint: cannot run '" + python + "' (" +
                             std::generic_category().message(failed) +
                             "); set TOKAMAK_PYTHON to a Python with the package tokamak"));
}

}  // namespace tokamak
