#include <cstdlib>
#include <cstring>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/commands.h"
#include "support/check.h"
#include "support/sanitizers.h"

namespace tokamak {
namespace {

void SayItIsOurs() {
  constexpr char kText[] =
      "error: this is a bug in tokamak, not in your program; please report it with the file\n";
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, kText, sizeof kText - 1);
}

void OnCheckFailed() {
  SayItIsOurs();
  if (std::getenv("TOKAMAK_LOG") == nullptr) _exit(Code(ExitCode::kOurBug));
}

void OnSignal(int) {
  SayItIsOurs();
  _exit(Code(ExitCode::kOurBug));
}

// Turns a crash, including a stack overflow, into exit code 70.
void CatchCrashes() {
  static char stack[1 << 16];
  stack_t signal_stack{};
  signal_stack.ss_sp = stack;
  signal_stack.ss_size = sizeof stack;
  sigaltstack(&signal_stack, nullptr);
  struct sigaction action {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_ONSTACK | static_cast<int>(SA_RESETHAND);
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigaction(signal, &action, nullptr);
}

// Makes allocations beyond the machine's memory fail with an error instead of triggering the
// kernel's OOM killer.
void LimitMemory() {
  auto pages = static_cast<rlim_t>(sysconf(_SC_PHYS_PAGES));
  auto page = static_cast<rlim_t>(sysconf(_SC_PAGE_SIZE));
  struct rlimit limit {};
  if (getrlimit(RLIMIT_DATA, &limit) != 0) return;
  rlim_t memory = pages * page / 20 * 19;
  if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur <= memory) return;
  limit.rlim_cur = memory;
  setrlimit(RLIMIT_DATA, &limit);
}

}  // namespace
}  // namespace tokamak

int main(int argc, char** argv) {
  if (!TOK_SANITIZED) {
    tokamak::CatchCrashes();
    tokamak::LimitMemory();
  }
  tokamak::SetCrashHook(tokamak::OnCheckFailed);
  tokamak::StdConsole console;
  return tokamak::RunCommandLine(std::vector<std::string>(argv + 1, argv + argc), console);
}
