#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "runtime/thread_pool.h"

// LSD radix sort: stable, and independent of the distribution of the keys. A long array is divided
// into chunks; each chunk counts its digits, and then scatters its elements to their final
// positions.

namespace tokamak::sorting {

// Lines of at least kLongLine elements are divided into up to kMaxSortChunks chunks. The number
// follows from the length alone. Chosen; no measurement on record.
inline constexpr int64_t kLongLine = 1 << 16, kMaxSortChunks = 64;
inline int64_t ChunksOfLine(int64_t length) {
  return length < kLongLine ? 1 : std::min(kMaxSortChunks, length / (kLongLine / 2));
}

// Runs body(chunk, begin, end) for each chunk of a line, in parallel.
template <typename Body>
void ForChunks(int64_t length, Body&& body) {
  int64_t chunks = ChunksOfLine(length);
  if (chunks == 1) return body(int64_t{0}, int64_t{0}, length);
  int64_t chunk_length = (length + chunks - 1) / chunks;
  ThreadPool::OfProcess().For(chunks, 1, [&](int64_t first, int64_t last) {
    for (int64_t p = first; p < last; ++p) {
      int64_t begin = std::min(p * chunk_length, length),
              end = std::min(begin + chunk_length, length);
      body(p, begin, end);
    }
  });
}

// Bytes. Longer lines buffer elements per digit and move them one cache line at a time
// (Distribute). Chosen; no measurement on record.
inline constexpr int64_t kGathered = 1 << 20;

using DigitCounts = std::array<int64_t, 256>;

// The bits of the key that the elements of a line are sorted by, 8 per pass.
struct KeyBits {
  int first = 0, count = 0;
};

// A key of up to 64 bits, and the original position of the element.
struct WideItem {
  uint64_t key, position;
  bool operator<(const WideItem& other) const {
    return key != other.key ? key < other.key : position < other.position;
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

// Scatters elements to the positions of their digits. Elements of one digit are buffered until they
// fill a cache line: the 256 destinations often conflict in the cache.
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

// One pass by one digit, from one array into the other. Returns false, and moves nothing, if all
// elements have the same digit.
template <typename Item>
bool RadixPass(const Item* from, Item* to, int64_t length, int shift, DigitCounts* counts) {
  int64_t chunks = ChunksOfLine(length);
  ForChunks(length, [&](int64_t chunk, int64_t begin, int64_t end) {
    DigitCounts& own = counts[chunk];
    own.fill(0);
    for (int64_t i = begin; i < end; ++i) ++own[Digits(from[i]) >> shift & 255];
  });
  int64_t next = 0;
  for (size_t digit = 0; digit < 256; ++digit) {
    int64_t before = next;
    for (int64_t chunk = 0; chunk < chunks; ++chunk)
      next += std::exchange(counts[chunk][digit], next);
    if (next - before == length) return false;
  }
  ForChunks(length, [&](int64_t chunk, int64_t begin, int64_t end) {
    DigitCounts own = counts[chunk];
    if (length * static_cast<int64_t>(sizeof(Item)) >= kGathered)
      return Distribute(from, to, begin, end, shift, own);
    for (int64_t i = begin; i < end; ++i) to[own[Digits(from[i]) >> shift & 255]++] = from[i];
  });
  return true;
}

// Lines of up to this many elements per digit are sorted by comparison. Chosen; no measurement on
// record.
inline constexpr int64_t kShortLine = 16;

// Sorts items by their bits; the items are distinct, or are their keys. The result is in `items`,
// or in `other` if this returns true. `counts`: one per chunk.
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
