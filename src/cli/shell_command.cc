#include "cli/shell_command.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <future>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tokamak {
namespace {

// Process ids of running commands, readable by a signal handler. Each command leads its own process
// group, so that Ctrl-C on the terminal does not reach it directly. A command that finds no free
// slot is not killed by signals.
std::array<std::atomic<pid_t>, 64> running{};

void OnInterrupt(int signal) {
  for (const std::atomic<pid_t>& leader : running)
    if (pid_t pid = leader.load(); pid > 0) kill(-pid, SIGKILL);
  ::signal(signal, SIG_DFL);
  raise(signal);
}

// Installs handlers for signals with the default action; ignored signals stay ignored.
void KillOnInterrupt() {
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) continue;
    action = {};
    action.sa_handler = OnInterrupt;
    sigaction(signal, &action, nullptr);
  }
}

class Registered {
 public:
  explicit Registered(pid_t pid) {
    for (std::atomic<pid_t>& slot : running) {
      pid_t none = 0;
      if (!slot.compare_exchange_strong(none, pid)) continue;
      slot_ = &slot;
      return;
    }
  }
  ~Registered() {
    if (slot_ != nullptr) slot_->store(0);
  }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

 private:
  std::atomic<pid_t>* slot_ = nullptr;
};

// The process id; 0 if it could not be started.
pid_t StartShell(const std::string& command) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  std::string shell = "sh", option = "-c", text = command;
  char* words[] = {shell.data(), option.data(), text.data(), nullptr};
  pid_t pid = 0;
  if (posix_spawn(&pid, "/bin/sh", &files, &attributes, words, environ) != 0) pid = 0;
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  return pid;
}

}  // namespace

std::optional<int> RunShellCommand(const std::string& command, double seconds) {
  KillOnInterrupt();
  pid_t pid = StartShell(command);
  if (pid == 0) return 127;
  Registered registered(pid);
  // The waiting thread does not reap the process: its process id cannot be reused until its group
  // has been killed.
  std::future<void> ended = std::async(std::launch::async, [pid] {
    siginfo_t info{};
    while (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
  });
  bool in_time =
      ended.wait_for(std::chrono::duration<double>(seconds)) == std::future_status::ready;
  if (!in_time) kill(-pid, SIGKILL);
  ended.wait();
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!in_time) return std::nullopt;
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return 128 + (WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

}  // namespace tokamak
