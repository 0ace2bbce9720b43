#include "random/campaign.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <set>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

namespace tokamak::fuzz {
namespace {

constexpr auto kTick = std::chrono::milliseconds(20);
constexpr int kTooLong = 3000;   // ticks: one minute
constexpr uint64_t kChunk = 32;  // seeds that a thread takes at a time (chosen)

// The current state of each thread. The signal handler prints the seed of a thread that crashes; it
// may do almost nothing, hence plain thread-local numbers.
thread_local uint64_t current_seed = 0;

void OnCrash(int number) {
  char text[64] = "\nseed ";
  size_t size = std::strlen(text);
  char digits[24];
  size_t count = 0;
  uint64_t seed = current_seed;
  do {
    digits[count++] = static_cast<char>('0' + seed % 10);
    seed /= 10;
  } while (seed > 0);
  while (count > 0) text[size++] = digits[--count];
  std::memcpy(text + size, " ends the process\n", 18);
  [[maybe_unused]] ssize_t written = write(2, text, size + 18);
  signal(number, SIG_DFL);
  raise(number);
}

struct Shared {
  const Options& options;
  std::vector<const Transformation*> transformations;
  std::atomic<uint64_t> next;
  std::atomic<int64_t> done{0}, failed{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  Tally tally;
};

// The current seed of a thread, for the watchdog. Ticks are counted instead of read from a clock,
// so that they do not advance while the process is stopped.
struct Desk {
  std::atomic<uint64_t> seed{0};
  std::atomic<int> ticks{0};
  std::atomic<bool> done{false};
};

void CountOps(const Module& module, Tally& tally) {
  std::set<std::string_view> ops;
  for (const auto& computation : module.computations())
    for (const Instr* instr : computation->Instrs()) ops.insert(instr->info().name);
  for (std::string_view op : ops) ++tally.ops[std::string(op)];
}

void CheckSeed(const Shared& shared, uint64_t seed, Tally& tally) {
  std::unique_ptr<Module> module = DrawProgram(seed, shared.options.size);
  ++tally.programs;
  for (const auto& computation : module->computations())
    tally.instrs += static_cast<int64_t>(computation->size());
  if (shared.options.statistics) CountOps(*module, tally);
  std::vector<Finding> findings = CheckProgram(*module, seed, shared.transformations);
  for (size_t i = 0; i < findings.size(); ++i) {
    const Finding& finding = findings[i];
    if (finding.IsFailure()) {
      ++tally.failed;
      tally.failures.push_back(
          {seed, shared.transformations[i]->name(), finding.what, finding.kind});
    } else if (finding.kind == Finding::Kind::kNone) {
      ++tally.held;
    } else {
      ++(finding.kind == Finding::Kind::kUnpromised ? tally.unpromised : tally.rejected);
      if (shared.options.statistics) ++tally.rejections[finding.what.substr(0, 60)];
    }
  }
}

void Work(Shared& shared, Desk& desk) {
  Tally own;
  while (!shared.stop) {
    uint64_t first = shared.next.fetch_add(kChunk);
    if (first >= shared.options.end) break;
    for (uint64_t seed = first; seed < std::min(first + kChunk, shared.options.end); ++seed) {
      current_seed = seed;
      desk.seed = seed;
      desk.ticks = 0;
      int64_t before = own.failed;
      CheckSeed(shared, seed, own);
      if (own.failed == before) continue;
      shared.failed += own.failed - before;
      if (shared.failed >= shared.options.most_findings) shared.stop = true;
    }
    shared.done += static_cast<int64_t>(kChunk);
  }
  desk.done = true;
  std::lock_guard lock(shared.mutex);
  shared.tally.Add(own);
}

// Reports progress and aborts a hanging run, until all threads are done.
void Watch(const Shared& shared, std::deque<Desk>& desks, const std::atomic<int>& running) {
  const bool terminal = isatty(2) != 0;
  const uint64_t total = shared.options.end - shared.options.first;
  for (int tick = 0; running > 0; ++tick) {
    std::this_thread::sleep_for(kTick);
    if (terminal && tick % 10 == 0)
      std::fprintf(stderr, "\r%ld of %lu programs, %ld findings\x1b[K",
                   static_cast<long>(shared.done), static_cast<unsigned long>(total),
                   static_cast<long>(shared.failed));
    for (Desk& desk : desks) {
      if (desk.done || ++desk.ticks < kTooLong) continue;
      std::fprintf(stderr, "\nseed %lu takes over a minute\n",
                   static_cast<unsigned long>(desk.seed));
      std::_Exit(1);
    }
  }
  if (terminal) std::fprintf(stderr, "\r\x1b[K");
}

}  // namespace

void Tally::Add(const Tally& other) {
  programs += other.programs;
  instrs += other.instrs;
  held += other.held;
  failed += other.failed;
  unpromised += other.unpromised;
  rejected += other.rejected;
  for (const auto& [name, count] : other.ops) ops[name] += count;
  for (const auto& [name, count] : other.rejections) rejections[name] += count;
  failures.insert(failures.end(), other.failures.begin(), other.failures.end());
}

Tally RunCampaign(const Options& options,
                  const std::vector<std::unique_ptr<Transformation>>& transformations) {
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL}) signal(number, OnCrash);
  Shared shared{options, {}, options.first, {}, {}, {}, {}, {}};
  for (const auto& transformation : transformations)
    shared.transformations.push_back(transformation.get());
  std::deque<Desk> desks(static_cast<size_t>(options.jobs));
  std::atomic<int> running = options.jobs;
  std::vector<std::thread> threads;
  for (Desk& desk : desks)
    threads.emplace_back([&] {
      Work(shared, desk);
      --running;
    });
  Watch(shared, desks, running);
  for (std::thread& thread : threads) thread.join();
  std::sort(shared.tally.failures.begin(), shared.tally.failures.end());
  return std::move(shared.tally);
}

}  // namespace tokamak::fuzz
