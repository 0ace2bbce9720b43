#pragma once

#include <cstdint>
#include <span>
#include <utility>

namespace tokamak {

class Instr;

// One end of the uses of an instruction: the instruction at the other end of each use and the index
// there. Two entries are stored inline, because most instructions have no more.
class UseList {
 public:
  UseList() = default;
  UseList(UseList&& other) noexcept
      : size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, kInlineSlots)),
        own_(other.own_) {}
  UseList& operator=(UseList&& other) noexcept {
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    std::swap(own_, other.own_);
    return *this;
  }
  ~UseList() {
    if (!is_inline()) Free();
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::span<Instr* const> instrs() const {
    return {is_inline() ? own_.inline_slots.instrs : own_.heap, size_};
  }
  std::span<Instr*> instrs() { return {is_inline() ? own_.inline_slots.instrs : own_.heap, size_}; }
  std::span<uint32_t> numbers() {
    return {is_inline() ? own_.inline_slots.numbers
                        : reinterpret_cast<uint32_t*>(own_.heap + capacity_),
            size_};
  }

  void Reserve(size_t count) {
    if (count > capacity_) Grow(count);
  }
  void Add(Instr* instr, uint32_t number) {
    if (size_ == capacity_) Grow(size_t{size_} + 1);
    ++size_;
    instrs()[size_ - 1] = instr;
    numbers()[size_ - 1] = number;
  }
  void DropLast() { --size_; }
  void Clear() { size_ = 0; }

 private:
  static constexpr uint32_t kInlineSlots = 2;
  bool is_inline() const { return capacity_ == kInlineSlots; }
  void Grow(size_t count);
  void Free();

  uint32_t size_ = 0, capacity_ = kInlineSlots;
  struct InPlace {
    Instr* instrs[kInlineSlots];
    uint32_t numbers[kInlineSlots];
  };
  union Own {
    InPlace inline_slots;
    Instr** heap;  // capacity_ instructions, then capacity_ indices
  } own_{};
};

}  // namespace tokamak
