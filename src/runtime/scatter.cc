// Scatter of single elements on the CPU, without atomics: threads own disjoint ranges of the array,
// and each scans the indices of all updates for those in its range.
//
//   indices   7 900 3 512 901 8      thread 0, [0, 512): 7 3 8      thread 1: 900 512 901
//
// Updates of one element are applied by one thread in their order, so results do not depend on the
// number of threads. The scan compares 16 indices at a time (AVX-512) and compresses hits; unsigned
// subtraction tests both bounds at once and drops negative indices. Cost: each thread reads all
// indices, count * threads in total, but an update that misses the cache costs far more. Ranges
// that exceed the cache are prefetched or cut further.

#include "runtime/scatter.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <type_traits>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "runtime/thread_pool.h"

namespace tokamak {
namespace {

// Updates that are scanned at once, and padding that vector stores may overwrite. Chosen.
constexpr int64_t kBlock = 2048, kBehind = 16;
// Bytes of the array per chunk, so that a chunk stays in the cache, and the maximum number of
// chunks for this purpose. Chosen; no measurement on record.
constexpr int64_t kMaxRangeBytes = 1 << 21, kMaxScatterChunks = 8;
// Ranges of up to kAtHand bytes are not prefetched; for larger ones, the number of updates to
// prefetch ahead. Chosen; no measurement on record.
constexpr int64_t kAtHand = 1 << 18, kPrefetchDistance = 16;
// Minimum elements per thread of a copy. Chosen; no measurement on record.
constexpr int64_t kCopied = 1 << 16;

// The updates of a block that fall into a range of the array: their indices, and their values if
// those have 32 bits, else their numbers.
struct Found {
  alignas(64) uint32_t index[kBlock + kBehind];
  alignas(64) uint32_t what[kBlock + kBehind];
};

// The range of the array to scan for.
struct Range {
  uint32_t first, size;
};

// A block of updates; `values` may be null.
struct Block {
  const int32_t* indices;
  const uint32_t* values;
  int64_t size;
};

// Scans from update `begin` on; `count` were found already.
int64_t FindPlain(const Block& block, int64_t begin, const Range& range, int64_t count,
                  Found& found) {
  for (int64_t i = begin; i < block.size; ++i) {
    auto index = static_cast<uint32_t>(block.indices[i]);
    found.index[count] = index;
    found.what[count] = block.values == nullptr ? static_cast<uint32_t>(i) : block.values[i];
    count += index - range.first < range.size ? 1 : 0;
  }
  return count;
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) int64_t FindInVectors(const Block& block, const Range& range,
                                                         Found& found) {
  __m512i first = _mm512_set1_epi32(static_cast<int>(range.first));
  __m512i limit = _mm512_set1_epi32(static_cast<int>(range.size));
  __m512i number = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  __m512i step = _mm512_set1_epi32(16);
  int64_t count = 0, i = 0;
  for (; i + 16 <= block.size; i += 16) {
    __m512i index = _mm512_loadu_si512(block.indices + i);
    __m512i what = block.values == nullptr ? number : _mm512_loadu_si512(block.values + i);
    __mmask16 here = _mm512_cmplt_epu32_mask(_mm512_sub_epi32(index, first), limit);
    _mm512_storeu_si512(found.index + count, _mm512_maskz_compress_epi32(here, index));
    _mm512_storeu_si512(found.what + count, _mm512_maskz_compress_epi32(here, what));
    count += __builtin_popcount(here);
    number = _mm512_add_epi32(number, step);
  }
  return FindPlain(block, i, range, count, found);
}
#endif

int64_t Find(const Block& block, const Range& range, Found& found) {
#if defined(__x86_64__)
  static const bool has_vectors = __builtin_cpu_supports("avx512f") != 0;
  if (has_vectors) return FindInVectors(block, range, found);
#endif
  return FindPlain(block, 0, range, 0, found);
}

// A bf16 number; rounds to nearest, ties to even.
struct BFloat {
  uint16_t bits;
  BFloat() = default;
  explicit BFloat(float x) {
    auto wide = std::bit_cast<uint32_t>(x);
    uint32_t rounded = wide + 0x7FFF + (wide >> 16 & 1);
    bits = static_cast<uint16_t>((x != x ? wide | 0x400000 : rounded) >> 16);
  }
  operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
};

// The greater or lesser of two numbers: NaN if either is; zeros are ordered by sign.
template <bool greater, typename T, typename Number>
T Chosen(T old, T update, Number a, Number b) {
  if constexpr (!std::is_floating_point_v<Number>) {
    return (greater ? a > b : a < b) ? old : update;
  } else {
    // Both are zero: rare, unlike one of them being zero.
    using Word = std::conditional_t<sizeof(Number) == 4, uint32_t, uint64_t>;
    auto both = static_cast<Word>(std::bit_cast<Word>(a) | std::bit_cast<Word>(b));
    if (both << 1 == 0) return std::signbit(a) == greater ? update : old;
    Number one = greater ? (a > b ? a : b) : (a < b ? a : b);  // one instruction
    return T(a != a ? a : one);
  }
}

template <typename T, ScatterOp op>
T Combined(T old, T update) {
  using Number = std::conditional_t<std::is_same_v<T, BFloat>, float, T>;
  Number a = old, b = update;
  if constexpr (op == ScatterOp::kSet) return update;
  if constexpr (op == ScatterOp::kAdd) return T(a + b);
  if constexpr (op == ScatterOp::kMultiply) return T(a * b);
  return Chosen<op == ScatterOp::kMaximum>(old, update, a, b);
}

// Applies the updates of one range of the array.
template <typename T, ScatterOp op>
void Scatter(const ScatterForm& form, std::span<void* const> arguments, const Range& range,
             const std::atomic<bool>* stop) {
  const auto* indices = static_cast<const int32_t*>(arguments[1]);
  const T* values = static_cast<const T*>(arguments[2]);
  T* array = static_cast<T*>(arguments[3]);
  bool exceeds_cache = static_cast<int64_t>(range.size * sizeof(T)) > kAtHand;
  Found found;
  for (int64_t begin = 0; begin < form.count; begin += kBlock) {
    if (stop != nullptr && stop->load(std::memory_order_relaxed)) return;
    const uint32_t* words = nullptr;
    if constexpr (sizeof(T) == 4) words = reinterpret_cast<const uint32_t*>(values + begin);
    Block block{indices + begin, words, std::min(kBlock, form.count - begin)};
    int64_t count = Find(block, range, found);
    auto put = [&](int64_t k) {
      T& element = array[found.index[k]];
      if constexpr (sizeof(T) == 4) {
        element = Combined<T, op>(element, std::bit_cast<T>(found.what[k]));
      } else {
        element = Combined<T, op>(element, values[begin + found.what[k]]);
      }
    };
    int64_t k = 0;
    for (; exceeds_cache && k + kPrefetchDistance < count; ++k) {
      __builtin_prefetch(&array[found.index[k + kPrefetchDistance]], 1);
      put(k);
    }
    for (; k < count; ++k) put(k);
  }
}

// Calls f.operator()<T, op>().
template <typename T, typename F>
void WithOp(ScatterOp op, F&& f) {
  switch (op) {
    case ScatterOp::kSet:
      return f.template operator()<T, ScatterOp::kSet>();
    case ScatterOp::kAdd:
      return f.template operator()<T, ScatterOp::kAdd>();
    case ScatterOp::kMultiply:
      return f.template operator()<T, ScatterOp::kMultiply>();
    case ScatterOp::kMinimum:
      return f.template operator()<T, ScatterOp::kMinimum>();
    case ScatterOp::kMaximum:
      return f.template operator()<T, ScatterOp::kMaximum>();
  }
}

template <typename F>
void WithElement(const ScatterForm& form, F&& f) {
  switch (form.element) {
    case ScatterElement::kF32:
      return WithOp<float>(form.op, f);
    case ScatterElement::kF64:
      return WithOp<double>(form.op, f);
    case ScatterElement::kBF16:
      return WithOp<BFloat>(form.op, f);
    case ScatterElement::kS32:
      return WithOp<int32_t>(form.op, f);
    case ScatterElement::kU32:
      return WithOp<uint32_t>(form.op, f);
    case ScatterElement::kS64:
      return WithOp<int64_t>(form.op, f);
    case ScatterElement::kU64:
      return WithOp<uint64_t>(form.op, f);
    case ScatterElement::k8Bits:
      return WithOp<uint8_t>(form.op, f);
    case ScatterElement::k16Bits:
      return WithOp<uint16_t>(form.op, f);
  }
}

int64_t BytesOf(ScatterElement element) {
  int64_t bytes = 0;
  WithElement({.op = ScatterOp::kSet, .element = element},
              [&]<typename T, ScatterOp>() { bytes = sizeof(T); });
  return bytes;
}

}  // namespace

ScatterCall::ScatterCall(ScatterForm form) : form_(form), bytes_(BytesOf(form.element)) {}

void ScatterCall::Run(std::span<void* const> arguments, const std::atomic<bool>* stop) const {
  ThreadPool& pool = ThreadPool::OfProcess();
  if (arguments[0] != arguments[3]) {
    pool.For(form_.size, kCopied, [&](int64_t begin, int64_t end) {
      std::memcpy(static_cast<std::byte*>(arguments[3]) + begin * bytes_,
                  static_cast<const std::byte*>(arguments[0]) + begin * bytes_,
                  static_cast<size_t>((end - begin) * bytes_));
    });
  }
  // Results do not depend on the number of chunks.
  int64_t chunks = pool.threads();
  if (form_.count >= form_.size / 16)
    while (chunks < kMaxScatterChunks && form_.size * bytes_ / chunks > kMaxRangeBytes)
      chunks += pool.threads();
  int64_t chunk = (form_.size + chunks - 1) / chunks;
  WithElement(form_, [&]<typename T, ScatterOp op>() {
    pool.For(chunks, 1, [&](int64_t first, int64_t last) {
      for (int64_t p = first; p < last; ++p) {
        int64_t begin = p * chunk, end = std::min(form_.size, begin + chunk);
        if (begin >= end) return;
        Range range{static_cast<uint32_t>(begin), static_cast<uint32_t>(end - begin)};
        Scatter<T, op>(form_, arguments, range, stop);
      }
    });
  });
}

std::string ScatterCall::Text() const {
  return std::to_string(form_.count) + " elements into " + std::to_string(form_.size);
}

double ScatterCall::Micros() const {
  // Microseconds per update and per element. Rough estimates.
  constexpr double kUpdate = 0.002, kElement = 0.0005;
  return kUpdate * static_cast<double>(form_.count) + kElement * static_cast<double>(form_.size);
}

}  // namespace tokamak
