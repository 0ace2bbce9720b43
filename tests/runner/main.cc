// Runs text tests (docs/testing.md), all in this process, in parallel. kHelp lists the options.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <signal.h>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

#include "driver/compile/host_rates.h"
#include "runner/run_test.h"
#include "support/sanitizers.h"

namespace tokamak {
namespace {

constexpr size_t kMaxThreads = 64;

constexpr char kHelp[] = R"(usage: tok_text_tests [OPTION]... FOLDER|FILE...

Runs every text test below the given folders. The last line is a tally.

  --update            rewrite AFTER where it differs
  --limit-memory      4 GiB of address space for the whole process
  -j N                threads
  --backend NAME      only what `RUN: run` compares, on this backend
)";
// The current test of each thread, printed if the process dies.
std::array<std::atomic<const char*>, kMaxThreads> current{};
std::array<std::atomic<int64_t>, kMaxThreads> began{};

int64_t Seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void Say(const char* text) {
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, text, std::strlen(text));
}

void OnCrash(int number) {
  Say("\nthe process died while running:\n");
  for (auto& name : current) {
    const char* path = name.load();
    if (path == nullptr) continue;
    Say("  ");
    Say(path);
    Say("\n");
  }
  signal(number, SIG_DFL);
  raise(number);
}

void CatchCrashes() {
  static char stack[1 << 16];
  stack_t location_path{};
  location_path.ss_sp = stack;
  location_path.ss_size = sizeof stack;
  sigaltstack(&location_path, nullptr);
  struct sigaction action {};
  action.sa_handler = OnCrash;
  action.sa_flags = SA_ONSTACK;
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(number, &action, nullptr);
}

// Ends the process if a test hangs.
void Watch() {
  constexpr int64_t kHangSeconds = 240;  // per test (chosen: far above any test)
  for (;;) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    for (size_t i = 0; i < kMaxThreads; ++i)
      if (current[i].load() != nullptr && Seconds() - began[i].load() > kHangSeconds) {
        Say("\na test hangs");
        abort();
      }
  }
}

std::vector<std::string> FindTests(const std::vector<std::string>& paths) {
  static constexpr std::string_view kEndings[] = {".hlo", ".mlir", ".bytes"};
  std::vector<std::string> tests;
  for (const std::string& location_path : paths) {
    if (std::filesystem::is_regular_file(location_path)) tests.push_back(location_path);
    if (!std::filesystem::is_directory(location_path)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(location_path)) {
      std::string path = entry.path().string();
      auto fits = [&](std::string_view ending) { return path.ends_with(ending); };
      if (std::any_of(std::begin(kEndings), std::end(kEndings), fits)) tests.push_back(path);
    }
  }
  std::sort(tests.begin(), tests.end());
  return tests;
}

struct Tally {
  std::atomic<size_t> next{0}, failed{0}, updated{0};
  std::mutex printing;
};

void Work(size_t slot, const std::vector<std::string>& tests, const RunnerOptions& options,
          Tally& tally) {
  for (;;) {
    size_t i = tally.next++;
    if (i >= tests.size()) break;
    began[slot] = Seconds();
    current[slot] = tests[i].c_str();
    TestResult result = RunTestFile(tests[i], options);
    current[slot] = nullptr;
    if (result.updated) ++tally.updated;
    if (result.failures.empty()) continue;
    ++tally.failed;
    std::lock_guard lock(tally.printing);
    for (const std::string& failure : result.failures)
      std::printf("FAILED %s: %s\n", tests[i].c_str(), failure.c_str());
  }
}

void LimitMemory() {
#if !TOK_SANITIZED
  struct rlimit limit {};
  limit.rlim_cur = limit.rlim_max = rlim_t{4} << 30;
  setrlimit(RLIMIT_AS, &limit);
#endif
}

int Main(const std::vector<std::string>& words) {
  RunnerOptions options;
  std::vector<std::string> paths;
  size_t threads = std::max(1u, std::thread::hardware_concurrency());
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--help") {
      std::fputs(kHelp, stdout);
      return 0;
    } else if (words[i] == "--update") {
      options.update = true;
    } else if (words[i] == "--limit-memory") {
      LimitMemory();
    } else if (words[i] == "--backend" && i + 1 < words.size()) {
      options.backend = words[++i];
    } else if (words[i] == "-j" && i + 1 < words.size()) {
      threads = std::strtoul(words[++i].c_str(), nullptr, 10);
    } else {
      paths.push_back(words[i]);
    }
  }
  std::string name = (std::filesystem::temp_directory_path() / "tok_text_tests.XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) return 4;
  options.temporary = name;
  CatchCrashes();
  std::thread(Watch).detach();

  std::vector<std::string> tests = FindTests(paths);
  Tally tally;
  std::vector<std::thread> workers;
  for (size_t i = 0; i < std::clamp<size_t>(threads, 1, kMaxThreads); ++i)
    workers.emplace_back([&, i] { Work(i, tests, options, tally); });
  for (std::thread& worker : workers) worker.join();

  std::error_code ignored;
  std::filesystem::remove_all(name, ignored);
  if (tally.updated > 0) std::printf("%zu files updated\n", tally.updated.load());
  std::printf("tally: %zu passed, %zu failed, 0 skipped\n", tests.size() - tally.failed,
              tally.failed.load());
  return tally.failed > 0 || tests.empty() ? 1 : 0;
}

}  // namespace
}  // namespace tokamak

int main(int argc, char** argv) {
  tokamak::UseDefaultRates();
  return tokamak::Main({argv + 1, argv + argc});
}
