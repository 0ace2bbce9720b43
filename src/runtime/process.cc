#include "runtime/process.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <link.h>
#include <mutex>
#include <pthread.h>
#include <span>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace tokamak {
namespace {

std::atomic<bool> forked{false};

struct Guarded {
  std::mutex mutex;
  std::vector<Stoppable*> list;
};

// Never destroyed: it is used while static objects are.
Guarded& All() {
  static auto* all = new Guarded;
  return *all;
}

void StopAll() {
  if (WasForked()) return;
  for (;;) {
    Stoppable* last = nullptr;
    {
      std::lock_guard<std::mutex> lock(All().mutex);
      if (All().list.empty()) return;
      last = All().list.back();
      All().list.pop_back();
    }
    last->Stop();
  }
}

// Forgets the segments that nobody writes to, if `loaded` is the file with this function in it.
int ForgetIfOwn(struct dl_phdr_info* loaded, size_t, void*) {
  auto own = reinterpret_cast<uintptr_t>(&ForgetIfOwn);
  auto begin_of = [&](const auto& segment) { return loaded->dlpi_addr + segment.p_vaddr; };
  std::span segments(loaded->dlpi_phdr, loaded->dlpi_phnum);
  bool is_own = std::ranges::any_of(segments, [&](const auto& segment) {
    return segment.p_type == PT_LOAD && own >= begin_of(segment) &&
           own - begin_of(segment) < segment.p_memsz;
  });
  if (!is_own) return 0;
  auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  for (const auto& segment : segments) {
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    uintptr_t begin = begin_of(segment) / page * page, end = begin_of(segment) + segment.p_memsz;
    madvise(reinterpret_cast<void*>(begin), (end - begin + page - 1) / page * page, MADV_DONTNEED);
  }
  return 1;
}

void InChild() {
  forked.store(true, std::memory_order_relaxed);
}

}  // namespace

const std::string& BuildId() {
  static const auto* id = [] {
    auto* text = new std::string("unknown");
    Dl_info loaded{};
    struct stat info {};
    if (dladdr(reinterpret_cast<const void*>(&BuildId), &loaded) != 0 &&
        loaded.dli_fname != nullptr && stat(loaded.dli_fname, &info) == 0)
      *text = std::to_string(info.st_size) + "." + std::to_string(info.st_mtim.tv_sec) + "." +
              std::to_string(info.st_mtim.tv_nsec);
    return text;
  }();
  return *id;
}

void ForgetCode() {
  dl_iterate_phdr(ForgetIfOwn, nullptr);
}

void GuardAtExit(Stoppable* stoppable) {
  static const bool once = [] {
    pthread_atfork(nullptr, nullptr, InChild);
    std::atexit(StopAll);
    return true;
  }();
  (void)once;
  std::lock_guard<std::mutex> lock(All().mutex);
  All().list.push_back(stoppable);
}

void Unguard(Stoppable* stoppable) {
  if (WasForked()) return;  // whoever held the lock is not here
  std::lock_guard<std::mutex> lock(All().mutex);
  std::erase(All().list, stoppable);
}

bool WasForked() {
  return forked.load(std::memory_order_relaxed);
}

}  // namespace tokamak
