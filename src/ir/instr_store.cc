#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <sys/mman.h>

#include "ir/ir.h"

namespace tokamak {
namespace {

constexpr size_t kFirstPiece = 16;
// Walks over a large program would else spend most of their time on looking up its pages.
constexpr size_t kLargePage = size_t{2} << 20;

void* AllocatePiece(size_t bytes) {
  if (bytes < kLargePage / 2) return ::operator new(bytes, std::align_val_t(alignof(Instr)));
  void* data = ::operator new(kLargePage, std::align_val_t(kLargePage));
  madvise(data, kLargePage, MADV_HUGEPAGE);  // a wish: without it pages are small
  return data;
}

void FreePiece(void* data, size_t bytes) {
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
  if (!is_in_place()) Free();
  own_.heap = heap;
  capacity_ = capacity;
}

void UseList::Free() {
  ::operator delete(own_.heap);
}

InstrStore::~InstrStore() {
  for (Piece& piece : pieces_) {
    std::destroy_n(piece.instrs, piece.size);
    FreePiece(piece.instrs, piece.capacity * sizeof(Instr));
  }
}

Instr& InstrStore::Add(Instr instr) {
  if (pieces_.empty() || pieces_.back().size == pieces_.back().capacity) {
    size_t most = kLargePage / sizeof(Instr);
    size_t capacity = pieces_.empty() ? kFirstPiece : std::min(2 * pieces_.back().capacity, most);
    pieces_.push_back({static_cast<Instr*>(AllocatePiece(capacity * sizeof(Instr))), 0, capacity});
  }
  Piece& piece = pieces_.back();
  Instr* made = new (piece.instrs + piece.size) Instr(std::move(instr));
  ++piece.size;
  ++size_;
  return *made;
}

}  // namespace tokamak
