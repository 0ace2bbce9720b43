#include "runtime/child_process.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "runtime/fault_signals.h"

namespace tokamak {
namespace {

// Between two looks at the child. Chosen: the time of the fork itself.
constexpr std::chrono::microseconds kLookTime{200};

std::string TextOfSignal(int signal) {
  for (int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT})
    if (signal == fault) return NameOfFault(signal);
  return "signal " + std::to_string(signal);
}

// In the child: a crash ends it at once, without the handlers of the parent and without a dump.
void ForgetHandlers() {
  for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) ::signal(signal, SIG_DFL);
  rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
}

}  // namespace

SharedMemory::SharedMemory(size_t bytes) : bytes_(bytes == 0 ? 1 : bytes) {
  void* data = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  data_ = data == MAP_FAILED ? nullptr : static_cast<std::byte*>(data);
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

std::string RunInChild(void (*work)(void* data), void* data, std::chrono::milliseconds time) {
  pid_t child = fork();
  if (child < 0) return "no process can be created";
  if (child == 0) {
    ForgetHandlers();
    work(data);
    _exit(0);
  }
  auto end = std::chrono::steady_clock::now() + time;
  int status = 0;
  for (;;) {
    pid_t done = waitpid(child, &status, WNOHANG);
    if (done == child) break;
    if (done < 0) return "";  // someone else waits for all children of the process
    if (std::chrono::steady_clock::now() > end) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return "it ran longer than " + std::to_string(time.count() / 1000) + " s";
    }
    std::this_thread::sleep_for(kLookTime);
  }
  if (WIFSIGNALED(status)) return TextOfSignal(WTERMSIG(status));
  if (WEXITSTATUS(status) != 0) return "it ended the process";
  return "";
}

}  // namespace tokamak
