#include "runtime/process.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <mutex>
#include <pthread.h>
#include <span>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "support/digest.h"

namespace tokamak {
namespace {

std::atomic<bool> forked{false};

struct Guarded {
  std::mutex mutex;
  std::vector<Stoppable*> list;
};

// Never destroyed: it is used while static objects are destroyed.
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

// Whether a loaded file is the one that contains this function.
bool IsOwnFile(const struct dl_phdr_info& loaded) {
  auto own = reinterpret_cast<uintptr_t>(&IsOwnFile);
  return std::ranges::any_of(
      std::span(loaded.dlpi_phdr, loaded.dlpi_phnum), [&](const auto& segment) {
        uintptr_t begin = loaded.dlpi_addr + segment.p_vaddr;
        return segment.p_type == PT_LOAD && own >= begin && own - begin < segment.p_memsz;
      });
}

// The build ID among the ELF notes of a segment: sizes of name and contents, type, then both, each
// padded to a multiple of four bytes. Empty if there is none.
std::string BuildIdIn(std::string_view notes) {
  auto whole = [](size_t size) { return (size + 3) / 4 * 4; };
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes.data(), sizeof note);
    notes.remove_prefix(sizeof note);
    size_t name = whole(note.n_namesz), contents = whole(note.n_descsz);
    if (name > notes.size() || contents > notes.size() - name) break;
    if (note.n_type == NT_GNU_BUILD_ID && notes.starts_with(std::string_view("GNU", 4)))
      return std::string(notes.substr(name, note.n_descsz));
    notes.remove_prefix(name + contents);
  }
  return "";
}

int FindBuildId(struct dl_phdr_info* loaded, size_t, void* found) {
  if (!IsOwnFile(*loaded)) return 0;
  auto& id = *static_cast<std::string*>(found);
  for (const auto& segment : std::span(loaded->dlpi_phdr, loaded->dlpi_phnum))
    if (segment.p_type == PT_NOTE && id.empty())
      id = BuildIdIn(
          {reinterpret_cast<const char*>(loaded->dlpi_addr + segment.p_vaddr), segment.p_memsz});
  return 1;
}

// Releases the pages of read-only segments if `loaded` is the file that contains this function.
int ForgetIfOwn(struct dl_phdr_info* loaded, size_t, void*) {
  if (!IsOwnFile(*loaded)) return 0;
  auto begin_of = [&](const auto& segment) { return loaded->dlpi_addr + segment.p_vaddr; };
  std::span segments(loaded->dlpi_phdr, loaded->dlpi_phnum);
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
    std::string linked;
    dl_iterate_phdr(FindBuildId, &linked);
    if (dladdr(reinterpret_cast<const void*>(&BuildId), &loaded) != 0 &&
        loaded.dli_fname != nullptr && stat(loaded.dli_fname, &info) == 0)
      *text = HexOf(linked) + "." + std::to_string(info.st_size) + "." +
              std::to_string(info.st_mtim.tv_sec) + "." + std::to_string(info.st_mtim.tv_nsec);
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
  if (WasForked()) return;  // the parent's lock may be held by a thread that does not exist here
  std::lock_guard<std::mutex> lock(All().mutex);
  std::erase(All().list, stoppable);
}

bool WasForked() {
  return forked.load(std::memory_order_relaxed);
}

}  // namespace tokamak
