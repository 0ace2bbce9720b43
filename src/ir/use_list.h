#pragma once

#include <cstdint>
#include <span>
#include <utility>

namespace tokamak {

class Instr;

// One end of some uses: the instruction at the other end of each, and the number under which that
// one has it. Two are held in place, as most instructions have no more.
class UseList {
 public:
  UseList() = default;
  UseList(UseList&& other) noexcept
      : size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, kInPlace)),
        own_(other.own_) {}
  UseList& operator=(UseList&& other) noexcept {
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    std::swap(own_, other.own_);
    return *this;
  }
  ~UseList() {
    if (!is_in_place()) Free();
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::span<Instr* const> instrs() const {
    return {is_in_place() ? own_.in_place.instrs : own_.heap, size_};
  }
  std::span<Instr*> instrs() { return {is_in_place() ? own_.in_place.instrs : own_.heap, size_}; }
  std::span<uint32_t> numbers() {
    return {
        is_in_place() ? own_.in_place.numbers : reinterpret_cast<uint32_t*>(own_.heap + capacity_),
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
  static constexpr uint32_t kInPlace = 2;
  bool is_in_place() const { return capacity_ == kInPlace; }
  void Grow(size_t count);
  void Free();

  uint32_t size_ = 0, capacity_ = kInPlace;
  struct InPlace {
    Instr* instrs[kInPlace];
    uint32_t numbers[kInPlace];
  };
  union Own {
    InPlace in_place;
    Instr** heap;  // capacity_ instructions, then as many numbers
  } own_{};
};

}  // namespace tokamak
