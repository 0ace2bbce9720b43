#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

namespace tokamak {

// A 64-bit hash that is equal in every process and on every machine, so it may be written to disk.
// Not resistant to adversaries.
class Hasher {
 public:
  void Add(uint64_t word) {
    state_ = Mix(state_ ^ word);
    ++count_;
  }
  template <typename T>
  requires(std::is_enum_v<T> ||
           (std::is_integral_v<T> && !std::is_same_v<T, uint64_t>)) void Add(T value) {
    Add(static_cast<uint64_t>(value));
  }
  void Add(double value) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    Add(bits);
  }
  void AddBytes(const void* data, size_t size) {
    auto* p = static_cast<const unsigned char*>(data);
    Add(size);
    for (; size >= 8; p += 8, size -= 8) {
      uint64_t word;
      std::memcpy(&word, p, 8);
      Add(word);
    }
    if (size == 0) return;  // `data` may be null here
    uint64_t tail = 0;
    std::memcpy(&tail, p, size);
    Add(tail);
  }
  void Add(std::string_view text) { AddBytes(text.data(), text.size()); }

  uint64_t digest() const { return Mix(state_ + count_); }

 private:
  static uint64_t Mix(uint64_t x) {
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    return x;
  }
  uint64_t state_ = 0x9e3779b97f4a7c15u;
  uint64_t count_ = 0;
};

}  // namespace tokamak
