#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace tokamak {

// A hash table whose keys are views into the text being parsed. Clearing it takes time linear in
// the number of entries, so thousands of small computations can reuse one table.
template <typename T>
class NameTable {
 public:
  // Returns null if the name is absent. The pointer is valid until the next insertion.
  const T* Find(std::string_view name) const {
    if (slots_.empty()) return nullptr;
    for (size_t i = Hash(name) & mask_;; i = (i + 1) & mask_) {
      const Slot& slot = slots_[i];
      if (slot.name.data() == nullptr) return nullptr;
      if (slot.name == name) return &slot.value;
    }
  }

  // Returns false if the name is already present.
  bool Add(std::string_view name, T value) {
    if (slots_.size() < 2 * (used_.size() + 1)) Grow();
    size_t i = Hash(name) & mask_;
    for (; slots_[i].name.data() != nullptr; i = (i + 1) & mask_)
      if (slots_[i].name == name) return false;
    slots_[i].name = name;
    slots_[i].value = std::move(value);
    used_.push_back(static_cast<uint32_t>(i));
    return true;
  }

  // In the order in which they were added.
  std::vector<std::string_view> Names() const {
    std::vector<std::string_view> names;
    for (uint32_t i : used_) names.push_back(slots_[i].name);
    return names;
  }

  void Clear() {
    for (uint32_t i : used_) slots_[i] = {};
    used_.clear();
  }

 private:
  struct Slot {
    std::string_view name;
    T value{};
  };

  static uint64_t Hash(std::string_view name) {
    uint64_t hash = name.size() * 0x9e3779b97f4a7c15u;
    const char* p = name.data();
    size_t left = name.size();
    for (; left >= 8; p += 8, left -= 8) {
      uint64_t word;
      std::memcpy(&word, p, 8);
      hash = (hash ^ word) * 0xd6e8feb86659fd93u;
      hash ^= hash >> 32;
    }
    uint64_t tail = 0;
    if (left > 0) std::memcpy(&tail, p, left);
    hash = (hash ^ tail) * 0xd6e8feb86659fd93u;
    return hash ^ (hash >> 29);
  }

  void Grow() {
    std::vector<Slot> old = std::move(slots_);
    slots_ = std::vector<Slot>(old.empty() ? 64 : old.size() * 2);
    mask_ = slots_.size() - 1;
    for (uint32_t& at : used_) {
      size_t i = Hash(old[at].name) & mask_;
      while (slots_[i].name.data() != nullptr) i = (i + 1) & mask_;
      slots_[i] = std::move(old[at]);
      at = static_cast<uint32_t>(i);
    }
  }

  std::vector<Slot> slots_;
  std::vector<uint32_t> used_;
  size_t mask_ = 0;
};

}  // namespace tokamak
