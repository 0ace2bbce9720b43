#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace tokamak {

// Reads the primitives of MLIR bytecode from a window of a file and never reads outside it. The
// cursor keeps the first error and returns zero for every later read, so a decoder can read a whole
// entry and check for errors once. `Count` bounds loops by the number of bytes left.
class BytecodeCursor {
 public:
  BytecodeCursor(const std::byte* base, size_t begin, size_t end)
      : base_(base), at_(begin), end_(end) {}

  size_t offset() const { return at_; }
  size_t end() const { return end_; }
  size_t left() const { return end_ - at_; }
  bool failed() const { return failed_; }
  // The position of the first item that was truncated or malformed.
  size_t failed_at() const { return failed_at_; }

  uint8_t Byte() {
    if (at_ == end_) return static_cast<uint8_t>(Fail());
    return static_cast<uint8_t>(base_[at_++]);
  }
  uint64_t Varint() {
    if (at_ == end_) return Fail();
    const auto first = static_cast<uint8_t>(base_[at_]);
    if ((first & 1) != 0) {
      ++at_;
      return first >> 1;
    }
    return LongVarint(first);
  }
  int64_t SignedVarint() {
    const uint64_t v = Varint();
    return static_cast<int64_t>((v >> 1) ^ (~(v & 1) + 1));
  }
  // Reads the number of items that follow, each of at least `item_bytes`. A count that exceeds the
  // remaining bytes is an error.
  size_t Count(size_t item_bytes = 1) {
    const size_t start = at_;
    return CheckCount(Varint(), item_bytes, start);
  }
  size_t CheckCount(uint64_t count, size_t item_bytes, size_t start) {
    if (count > left() / item_bytes) {
      at_ = start;
      return Fail();
    }
    return static_cast<size_t>(count);
  }
  std::span<const std::byte> Take(uint64_t size) {
    if (size > left()) {
      Fail();
      return {};
    }
    at_ += size;
    return {base_ + at_ - size, static_cast<size_t>(size)};
  }
  std::span<const std::byte> Blob() { return Take(Varint()); }
  // An integer of `bits` width, zero-extended. At most 64 bits.
  uint64_t Integer(int bits) {
    if (bits <= 8) return Byte();
    const auto value = static_cast<uint64_t>(SignedVarint());
    return bits >= 64 ? value : value & ((uint64_t{1} << bits) - 1);
  }
  std::string_view NulTerminated() {
    const void* nul = left() == 0 ? nullptr : std::memchr(base_ + at_, 0, left());
    if (nul == nullptr) {
      Fail();
      return {};
    }
    const auto* begin = reinterpret_cast<const char*>(base_ + at_);
    std::string_view text(begin, static_cast<size_t>(static_cast<const char*>(nul) - begin));
    at_ += text.size() + 1;
    return text;
  }
  // Returns the next `size` bytes as a separate cursor.
  BytecodeCursor Nested(uint64_t size) {
    const auto bytes = Take(size);
    BytecodeCursor nested(base_, at_ - bytes.size(), at_);
    nested.failed_ = failed_;
    nested.failed_at_ = failed_at_;
    return nested;
  }

 private:
  uint64_t LongVarint(uint8_t first) {
    const auto extra = first == 0 ? size_t{8} : static_cast<size_t>(std::countr_zero(first));
    if (left() < extra + 1) return Fail();
    uint64_t value = 0;
    if (extra == 8) {
      std::memcpy(&value, base_ + at_ + 1, 8);
    } else {
      std::memcpy(&value, base_ + at_, extra + 1);
      value >>= extra + 1;
    }
    at_ += extra + 1;
    return value;
  }
  uint64_t Fail() {
    if (!failed_) failed_at_ = at_;
    failed_ = true;
    at_ = end_;
    return 0;
  }

  const std::byte* base_;
  size_t at_, end_;
  size_t failed_at_ = 0;
  bool failed_ = false;
};

}  // namespace tokamak
