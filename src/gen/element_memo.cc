#include "gen/element_memo.h"

#include <algorithm>

#include "support/splitmix.h"

namespace tokamak {
namespace {

// Slots of the first table. Chosen: most kernels compute fewer than 32 elements.
constexpr size_t kFirstSlots = 64;
// Slots per element, at least. Chosen: with half of the slots free, most lookups take one step.
constexpr size_t kSlotsPerElement = 2;

}  // namespace

uint64_t ElementMemo::HashOf(const Instr& instr, size_t result_index, Position at) {
  uint64_t hash = MixBits(static_cast<uint64_t>(instr.id()) + result_index);
  for (const Scalar& coordinate : at) hash = MixBits(hash + static_cast<uint64_t>(coordinate.id()));
  return hash;
}

bool ElementMemo::IsAt(const Entry& entry, uint64_t hash, const Instr& instr, size_t result_index,
                       Position at) const {
  return entry.hash == hash && entry.instr == &instr && entry.result_index == result_index &&
         entry.rank == at.size() &&
         std::equal(at.begin(), at.end(), ids_.begin() + entry.begin,
                    [](const Scalar& coordinate, ValueId id) { return coordinate.id() == id; });
}

size_t ElementMemo::SlotOf(uint64_t hash, const Instr& instr, size_t result_index,
                           Position at) const {
  size_t mask = slots_.size() - 1, slot = hash & mask;
  while (slots_[slot] != kFree && !IsAt(entries_[slots_[slot]], hash, instr, result_index, at))
    slot = (slot + 1) & mask;
  return slot;
}

const Element* ElementMemo::Find(const Instr& instr, size_t result_index, Position at) const {
  if (entries_.empty()) return nullptr;
  size_t slot = SlotOf(HashOf(instr, result_index, at), instr, result_index, at);
  return slots_[slot] == kFree ? nullptr : &entries_[slots_[slot]].value;
}

Element& ElementMemo::FindOrAdd(const Instr& instr, size_t result_index, Position at,
                                const Element& value) {
  if (kSlotsPerElement * (entries_.size() + 1) > slots_.size()) Grow();
  uint64_t hash = HashOf(instr, result_index, at);
  uint32_t& number = slots_[SlotOf(hash, instr, result_index, at)];
  if (number == kFree) {
    number = static_cast<uint32_t>(entries_.size());
    entries_.push_back({&instr, hash, static_cast<uint32_t>(result_index),
                        static_cast<uint32_t>(ids_.size()), static_cast<uint32_t>(at.size()),
                        value});
    for (const Scalar& coordinate : at) ids_.push_back(coordinate.id());
  }
  return entries_[number].value;
}

void ElementMemo::Add(const Instr& instr, size_t result_index, Position at, const Element& value) {
  FindOrAdd(instr, result_index, at, value);
}

void ElementMemo::Set(const Instr& instr, size_t result_index, Position at, const Element& value) {
  FindOrAdd(instr, result_index, at, value) = value;
}

void ElementMemo::Clear() {
  if (entries_.empty()) return;
  std::fill(slots_.begin(), slots_.end(), kFree);
  entries_.clear();
  ids_.clear();
}

void ElementMemo::Grow() {
  slots_.assign(std::max(slots_.size() + slots_.size(), kFirstSlots), kFree);
  size_t mask = slots_.size() - 1;
  for (size_t i = 0; i < entries_.size(); ++i) {
    size_t slot = entries_[i].hash & mask;
    while (slots_[slot] != kFree) slot = (slot + 1) & mask;
    slots_[slot] = static_cast<uint32_t>(i);
  }
}

}  // namespace tokamak
