#include "runtime/host_memory.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <sys/mman.h>
#include <unistd.h>

namespace tokamak {
namespace {

// The number in a file; SIZE_MAX if it has none ("max").
size_t NumberIn(const char* path) {
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) return SIZE_MAX;
  unsigned long long number = 0;
  int read = std::fscanf(file, "%llu", &number);
  std::fclose(file);
  return read == 1 && number > 0 ? static_cast<size_t>(number) : SIZE_MAX;
}

size_t Ask() {
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  size_t all =
      pages > 0 && page > 0 ? static_cast<size_t>(pages) * static_cast<size_t>(page) : SIZE_MAX;
  return std::min({all, NumberIn("/sys/fs/cgroup/memory.max"),
                   NumberIn("/sys/fs/cgroup/memory/memory.limit_in_bytes")});
}

}  // namespace

size_t HostMemory() {
  static const size_t bytes = Ask();
  return bytes;
}

void WishForLargePages(void* data, size_t bytes) {
  // Bytes (x86-64, and aarch64 with 4 KiB pages).
  constexpr uintptr_t kLargePage = uintptr_t{2} << 20;
  uintptr_t begin = (reinterpret_cast<uintptr_t>(data) + kLargePage - 1) / kLargePage * kLargePage;
  uintptr_t end = (reinterpret_cast<uintptr_t>(data) + bytes) / kLargePage * kLargePage;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace tokamak
