// The k greatest or least elements of lines. A small k keeps the candidates sorted by insertion; a
// large k collects candidates, partitions them whenever the buffer is full, and sorts at the end.
// Long lines are divided into chunks whose results are merged.

#include <type_traits>

#include "runtime/radix_sort.h"
#include "runtime/sort.h"
#include "runtime/sort_keys.h"

namespace tokamak {
namespace top_k {

// An element that may be among the k.
template <typename Raw>
struct Candidate {
  Raw key;  // the least are selected
  uint32_t position;
  bool operator<(const Candidate& other) const {
    return key != other.key ? key < other.key : position < other.position;
  }
};

}  // namespace top_k

namespace {

using sorting::KeyOf;
using sorting::kSign;
using sorting::WithBytes;
using sorting::WithOrder;
using top_k::Candidate;

// Maximum blocks of lines, and minimum elements per thread. Chosen; no measurement on record.
constexpr int64_t kTopKMostBlocks = 32, kTopKFewElements = 8192;
// Up to this k, candidates are kept sorted while the line is read. Chosen; no measurement on
// record.
constexpr int64_t kFewKept = 64;
// Minimum capacity for candidates of a larger k. Chosen; no measurement on record.
constexpr int64_t kLeastRoom = 1024;
// Lines from kLongTopLine elements on are divided into up to kMaxTopKChunks chunks if there are at
// most kFewLines lines. Chosen; no measurement on record.
constexpr int64_t kLongTopLine = 1 << 15, kFewLines = 16, kMaxTopKChunks = 32;

int64_t AlignedTopK(int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

// Keys of elements, transformed such that the least are selected.
template <SortOrder order, typename Raw>
struct Keys {
  const Raw* data;
  Raw infinity, flipped;
  Raw At(int64_t i) const { return static_cast<Raw>(KeyOf<order>(data[i], infinity) ^ flipped); }
};

// Whether any of a segment of elements precedes `worst`. Compares signed integers, which vectors of
// every machine support.
template <int64_t segment, typename Keys, typename Raw>
bool AnyBefore(const Keys& keys, int64_t begin, Raw worst) {
  using Signed = std::make_signed_t<Raw>;
  auto limit = static_cast<Signed>(worst ^ kSign<Raw>);
  Signed hits = 0;
  for (int64_t j = 0; j < segment; ++j) {
    auto key = static_cast<Signed>(keys.At(begin + j) ^ kSign<Raw>);
    hits |= static_cast<Signed>(key < limit);
  }
  return hits != 0;
}

// The first k of the elements begin .. end - 1; requires at least k. Later elements are inserted
// only before greater keys, so equal ones stay in order.
template <typename Keys, typename Raw>
void KeepFew(const Keys& keys, int64_t begin, int64_t end, int64_t k, Candidate<Raw>* kept) {
  int64_t count = 0;
  auto insert = [&](Raw key, int64_t i) {
    int64_t at = count < k ? count++ : k - 1;
    for (; at > 0 && key < kept[at - 1].key; --at) kept[at] = kept[at - 1];
    kept[at] = {key, static_cast<uint32_t>(i)};
  };
  int64_t i = begin;
  for (; i < begin + k; ++i) insert(keys.At(i), i);
  auto look = [&](int64_t last) {
    for (; i < last; ++i)
      if (Raw key = keys.At(i); key < kept[k - 1].key) insert(key, i);
  };
  // Most elements are not candidates: segments are tested at once.
  constexpr int64_t kLong = 64, kShort = 16;
  auto look_at = [&](int64_t last) {
    while (i + kShort <= last) {
      if (AnyBefore<kShort>(keys, i, kept[k - 1].key)) {
        look(i + kShort);
      } else {
        i += kShort;
      }
    }
  };
  while (i + kLong <= end) {
    if (AnyBefore<kLong>(keys, i, kept[k - 1].key)) {
      look_at(i + kLong);
    } else {
      i += kLong;
    }
  }
  look_at(end);
  look(end);
}

// KeepFew for any k: collects elements that precede the k-th of those seen so far, and partitions
// them when there are `room` of them.
template <typename Keys, typename Raw>
void KeepMany(const Keys& keys, int64_t begin, int64_t end, int64_t k, int64_t room,
              Candidate<Raw>* kept) {
  int64_t count = std::min(room, end - begin), i = begin;
  for (; i < begin + count; ++i) kept[i - begin] = {keys.At(i), static_cast<uint32_t>(i)};
  Raw worst{};
  auto choose = [&] {
    if (k < count) std::nth_element(kept, kept + k - 1, kept + count);
    count = k;
    worst = kept[k - 1].key;
  };
  choose();
  // Elements that are tested at once. Chosen; no measurement on record.
  constexpr int64_t kTopKSegment = 32;
  auto look = [&](int64_t last) {
    for (; i < last; ++i) {
      Raw key = keys.At(i);
      kept[count] = {key, static_cast<uint32_t>(i)};
      count += key < worst ? 1 : 0;
      if (count == room) choose();
    }
  };
  while (i + kTopKSegment <= end) {
    if (AnyBefore<kTopKSegment>(keys, i, worst)) {
      look(i + kTopKSegment);
    } else {
      i += kTopKSegment;
    }
  }
  look(end);
  choose();
  std::sort(kept, kept + k);
}

}  // namespace

TopKCall::TopKCall(TopKForm form) : form_(form) {
  if (form_.k > kFewKept) room_ = std::min(form_.length, std::max(4 * form_.k, kLeastRoom));
  blocks_ = std::clamp<int64_t>(form_.lines, 1, kTopKMostBlocks);
  int64_t chunk = std::max(kLongTopLine, 16 * form_.k);
  if (form_.lines <= kFewLines && form_.length >= 2 * chunk) {
    chunks_ = std::min(kMaxTopKChunks, form_.length / chunk);
    blocks_ = form_.lines * chunks_;
    join_bytes_ = AlignedTopK(chunks_ * form_.k * 16);
  }
  // One extra slot: an element is written before it is known whether it is a candidate.
  if (room_ > 0 || chunks_ > 1) block_bytes_ = AlignedTopK((std::max(room_, form_.k) + 1) * 16);
}

template <typename Raw>
void TopKCall::RunLine(std::span<void* const> arguments, int64_t line, int64_t block) const {
  using Kept = Candidate<Raw>;
  auto scratch = [&](int64_t number) {
    return reinterpret_cast<Kept*>(static_cast<std::byte*>(arguments[3]) + number * block_bytes_);
  };
  const Raw* data = static_cast<const Raw*>(arguments[0]) + line * form_.length;
  Raw flipped = form_.key.is_descending ? static_cast<Raw>(~Raw{0}) : Raw{0};
  std::array<Kept, kFewKept> few;
  Kept* chosen = room_ == 0 && chunks_ == 1 ? few.data() : scratch(block);
  int64_t chunk = block % chunks_;
  int64_t begin = form_.length * chunk / chunks_, end = form_.length * (chunk + 1) / chunks_;
  WithOrder(form_.key.order, [&]<SortOrder order>() {
    Keys<order, Raw> keys{data, static_cast<Raw>(form_.key.infinity), flipped};
    if (room_ > 0) return KeepMany(keys, begin, end, form_.k, room_, chosen);
    KeepFew(keys, begin, end, form_.k, chosen);
  });
  if (chunks_ == 1) Store<Raw>(arguments, line, chosen);
}

template <typename Raw>
void TopKCall::Store(std::span<void* const> arguments, int64_t line, const void* chosen) const {
  const auto* from = static_cast<const Candidate<Raw>*>(chosen);
  const Raw* data = static_cast<const Raw*>(arguments[0]) + line * form_.length;
  Raw* values = static_cast<Raw*>(arguments[1]) + line * form_.k;
  for (int64_t i = 0; i < form_.k; ++i) values[i] = data[from[i].position];
  WithBytes(form_.index_bytes, [&]<typename Index>() {
    Index* indices = static_cast<Index*>(arguments[2]) + line * form_.k;
    for (int64_t i = 0; i < form_.k; ++i) indices[i] = static_cast<Index>(from[i].position);
  });
}

// Merges the results of the chunks of a line.
template <typename Raw>
void TopKCall::JoinChunks(std::span<void* const> arguments, int64_t line) const {
  using Kept = Candidate<Raw>;
  auto* scratch = static_cast<std::byte*>(arguments[3]);
  auto* all = reinterpret_cast<Kept*>(scratch + blocks_ * block_bytes_);
  for (int64_t chunk = 0; chunk < chunks_; ++chunk) {
    const auto* kept =
        reinterpret_cast<const Kept*>(scratch + (line * chunks_ + chunk) * block_bytes_);
    std::copy(kept, kept + form_.k, all + chunk * form_.k);
  }
  std::nth_element(all, all + form_.k - 1, all + chunks_ * form_.k);
  std::sort(all, all + form_.k);
  Store<Raw>(arguments, line, all);
}

void TopKCall::Run(std::span<void* const> arguments, const std::atomic<bool>* stop) const {
  int64_t elements = std::max<int64_t>(1, form_.lines * form_.length);
  int64_t min_chunk = std::max<int64_t>(1, kTopKFewElements * blocks_ / elements);
  WithBytes(form_.bytes, [&]<typename Raw>() {
    ThreadPool::OfProcess().For(blocks_, min_chunk, [&](int64_t first, int64_t last) {
      for (int64_t block = first; block < last; ++block) {
        int64_t lines = form_.lines * chunks_;  // chunks of them
        int64_t begin = lines * block / blocks_, end = lines * (block + 1) / blocks_;
        for (int64_t line = begin; line < end; ++line) {
          if (stop != nullptr && stop->load(std::memory_order_relaxed)) return;
          RunLine<Raw>(arguments, line / chunks_, block);
        }
      }
    });
    if (chunks_ == 1) return;
    for (int64_t line = 0; line < form_.lines; ++line) JoinChunks<Raw>(arguments, line);
  });
}

std::string TopKCall::Text() const {
  return std::to_string(form_.k) + " of each of " + std::to_string(form_.lines) + " x " +
         std::to_string(form_.length);
}

double TopKCall::Micros() const {
  // Microseconds per element and per kept candidate. Rough estimates.
  constexpr double kElement = 0.0005, kKept = 0.01;
  return static_cast<double>(form_.lines) *
         (kElement * static_cast<double>(form_.length) + kKept * static_cast<double>(form_.k));
}

}  // namespace tokamak
