#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/ir.h"
#include "kernel/builder.h"
#include "kernel/formulas.h"

namespace tokamak {

// The elements that ElementEmitter has emitted, by instruction, result and SSA values of the
// coordinates. Every element of every kernel is looked up here: one flat table, and one array for
// the coordinates of all elements.
class ElementMemo {
 public:
  using Position = std::span<const Scalar>;

  // The element at a position; null if it is not known. Valid until the next change.
  const Element* Find(const Instr& instr, size_t result_index, Position at) const;
  // Records an element that is not known; otherwise changes nothing.
  void Add(const Instr& instr, size_t result_index, Position at, const Element& value);
  // Records an element, or replaces it.
  void Set(const Instr& instr, size_t result_index, Position at, const Element& value);
  void Clear();

 private:
  struct Entry {
    const Instr* instr = nullptr;
    uint64_t hash = 0;
    uint32_t result_index = 0, begin = 0,
             rank = 0;  // the coordinates are ids_[begin, begin + rank)
    Element value;
  };
  static uint64_t HashOf(const Instr& instr, size_t result_index, Position at);
  bool IsAt(const Entry& entry, uint64_t hash, const Instr& instr, size_t result_index,
            Position at) const;
  // The slot of an element, or the free one where it belongs. The table must not be empty.
  size_t SlotOf(uint64_t hash, const Instr& instr, size_t result_index, Position at) const;
  Element& FindOrAdd(const Instr& instr, size_t result_index, Position at, const Element& value);
  void Grow();

  static constexpr uint32_t kFree = UINT32_MAX;
  std::vector<uint32_t> slots_;  // numbers of entries; the size is a power of two
  std::vector<Entry> entries_;
  std::vector<ValueId> ids_;
};

}  // namespace tokamak
