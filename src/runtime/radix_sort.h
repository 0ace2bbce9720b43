#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "runtime/thread_pool.h"

// Sorting by digits, the least first: stable, and as quick for any keys. A long array is cut into
// parts, each of which counts its digits and then moves its elements to where they belong.

namespace tokamak::sorting {

// Parts follow from the length alone.
inline constexpr int64_t kLongLine = 1 << 16, kMostParts = 64;
inline int64_t PartsOfLine(int64_t length) {
  return length < kLongLine ? 1 : std::min(kMostParts, length / (kLongLine / 2));
}

// Runs body(begin, end) for each part of a line.
template <typename Body>
void ForParts(int64_t length, Body&& body) {
  int64_t parts = PartsOfLine(length);
  if (parts == 1) return body(int64_t{0}, int64_t{0}, length);
  int64_t piece = (length + parts - 1) / parts;
  ThreadPool::OfProcess().For(parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t p = first; p < last; ++p) {
      int64_t begin = std::min(p * piece, length), end = std::min(begin + piece, length);
      body(p, begin, end);
    }
  });
}

// Bytes of a line whose elements are moved a line of the cache at a time.
inline constexpr int64_t kGathered = 1 << 20;

using DigitCounts = std::array<int64_t, 256>;

// What the elements of a line are sorted by: one digit after the other of their key.
struct KeyBits {
  int first = 0, count = 0;
};

// A key of up to 64 bits, and where the element was.
struct WideItem {
  uint64_t key, place;
  bool operator<(const WideItem& other) const {
    return key != other.key ? key < other.key : place < other.place;
  }
};
inline uint64_t Digits(uint32_t item) {
  return item;
}
inline uint64_t Digits(uint64_t item) {
  return item;
}
inline uint64_t Digits(const WideItem& item) {
  return item.key;
}

// Moves elements to where their digits belong. Those of one digit are gathered until they fill a
// line of the cache: the places that they go to are many, and often in each other's way.
template <typename Item>
void Distribute(const Item* from, Item* to, int64_t begin, int64_t end, int shift,
                DigitCounts& next) {
  constexpr int64_t kLine = 64 / sizeof(Item);
  alignas(64) Item lines[256][kLine];
  std::array<uint8_t, 256> filled{};
  for (int64_t i = begin; i < end; ++i) {
    size_t digit = Digits(from[i]) >> shift & 255;
    lines[digit][filled[digit]] = from[i];
    if (++filled[digit] < kLine) continue;
    std::memcpy(to + next[digit], lines[digit], sizeof lines[digit]);
    next[digit] += kLine;
    filled[digit] = 0;
  }
  for (size_t digit = 0; digit < 256; ++digit)
    std::copy(lines[digit], lines[digit] + filled[digit], to + next[digit]);
}

// Sorts by one digit, from one array into the other. No: all have the same, and nothing is moved.
template <typename Item>
bool RadixPass(const Item* from, Item* to, int64_t length, int shift, DigitCounts* counts) {
  int64_t parts = PartsOfLine(length);
  ForParts(length, [&](int64_t part, int64_t begin, int64_t end) {
    DigitCounts& own = counts[part];
    own.fill(0);
    for (int64_t i = begin; i < end; ++i) ++own[Digits(from[i]) >> shift & 255];
  });
  int64_t next = 0;
  for (size_t digit = 0; digit < 256; ++digit) {
    int64_t before = next;
    for (int64_t part = 0; part < parts; ++part) next += std::exchange(counts[part][digit], next);
    if (next - before == length) return false;
  }
  ForParts(length, [&](int64_t part, int64_t begin, int64_t end) {
    DigitCounts own = counts[part];
    if (length * static_cast<int64_t>(sizeof(Item)) >= kGathered)
      return Distribute(from, to, begin, end, shift, own);
    for (int64_t i = begin; i < end; ++i) to[own[Digits(from[i]) >> shift & 255]++] = from[i];
  });
  return true;
}

// Lines of up to so many elements for each digit are sorted by comparing.
inline constexpr int64_t kShortLine = 16;

// Sorts items that are all different, or are their keys, by their bits; the result is in `items`
// or, then true is the answer, in `other`. `counts`: as many as there are parts.
template <typename Item>
bool SortItems(Item* items, Item* other, int64_t length, KeyBits bits, DigitCounts* counts) {
  if (length <= kShortLine * bits.count / 8) {
    std::sort(items, items + length);
    return false;
  }
  bool moved = false;
  for (int shift = bits.first; shift < bits.first + bits.count; shift += 8)
    if (RadixPass(moved ? other : items, moved ? items : other, length, shift, counts))
      moved = !moved;
  return moved;
}

}  // namespace tokamak::sorting
