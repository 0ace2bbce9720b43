#pragma once

// A vector whose first elements lie in the object itself: a short one needs no allocation. For
// values that are created often and have a few elements, such as one per dimension.

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>
#include <vector>

namespace tokamak {

template <typename T, size_t kInline>
class InlineVector {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T* data() const { return size_ <= kInline ? few_.data() : many_.data(); }
  T* data() { return size_ <= kInline ? few_.data() : many_.data(); }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T& operator[](size_t i) const { return data()[i]; }
  T& operator[](size_t i) { return data()[i]; }
  const T& back() const { return data()[size_ - 1]; }

  void push_back(const T& element) {
    if (size_ < kInline) {
      few_[size_++] = element;
      return;
    }
    if (size_ == kInline) many_.assign(few_.begin(), few_.end());
    many_.push_back(element);
    ++size_;
  }
  void clear() {
    size_ = 0;
    many_.clear();
  }

 private:
  size_t size_ = 0;
  std::array<T, kInline> few_;  // the elements while they are at most kInline
  std::vector<T> many_;         // all elements if they are more
};

}  // namespace tokamak
