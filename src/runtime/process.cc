#include "runtime/process.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <mutex>
#include <pthread.h>
#include <sys/stat.h>
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
