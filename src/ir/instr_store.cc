#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <sys/mman.h>

#include "ir/ir.h"

namespace tokamak {
namespace {

// Instructions in the first slab. Chosen.
constexpr size_t kFirstSlab = 16;
// Bytes of a huge page (2 MiB on Linux with 4 KiB base pages). With small pages, TLB misses
// dominate traversals of large programs.
constexpr size_t kLargePage = size_t{2} << 20;

void* AllocateSlab(size_t bytes) {
  if (bytes < kLargePage / 2) return ::operator new(bytes, std::align_val_t(alignof(Instr)));
  void* data = ::operator new(kLargePage, std::align_val_t(kLargePage));
  madvise(data, kLargePage, MADV_HUGEPAGE);  // only a hint: if it fails, pages are small
  return data;
}

void FreeSlab(void* data, size_t bytes) {
  if (bytes < kLargePage / 2)
    ::operator delete(data, std::align_val_t(alignof(Instr)));
  else
    ::operator delete(data, std::align_val_t(kLargePage));
}

}  // namespace

void UseList::Grow(size_t count) {
  auto capacity = static_cast<uint32_t>(std::max(count, size_t{capacity_} * 2));
  constexpr size_t kOne = sizeof(Instr*) + sizeof(uint32_t);
  auto* heap = static_cast<Instr**>(::operator new(capacity* kOne));
  std::memcpy(heap, instrs().data(), size_ * sizeof(Instr*));
  std::memcpy(heap + capacity, numbers().data(), size_ * sizeof(uint32_t));
  if (!is_inline()) Free();
  own_.heap = heap;
  capacity_ = capacity;
}

void UseList::Free() {
  ::operator delete(own_.heap);
}

InstrStore::~InstrStore() {
  for (Slab& slab : slabs_) {
    std::destroy_n(slab.instrs, slab.size);
    FreeSlab(slab.instrs, slab.capacity * sizeof(Instr));
  }
}

Instr& InstrStore::Add(Instr instr) {
  if (slabs_.empty() || slabs_.back().size == slabs_.back().capacity) {
    size_t most = kLargePage / sizeof(Instr);
    size_t capacity = slabs_.empty() ? kFirstSlab : std::min(2 * slabs_.back().capacity, most);
    slabs_.push_back({static_cast<Instr*>(AllocateSlab(capacity * sizeof(Instr))), 0, capacity});
  }
  Slab& slab = slabs_.back();
  Instr* made = new (slab.instrs + slab.size) Instr(std::move(instr));
  ++slab.size;
  ++size_;
  return *made;
}

}  // namespace tokamak
