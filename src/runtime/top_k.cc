// The greatest or least elements of lines: those before them are kept in order while they are few,
// else chosen first and sorted then. Long lines are cut into parts, whose elements meet again.

#include <type_traits>

#include "runtime/radix_sort.h"
#include "runtime/sort.h"
#include "runtime/sort_keys.h"

namespace tokamak {
namespace {

using sorting::KeyOf;
using sorting::kSign;
using sorting::WithBytes;
using sorting::WithOrder;

constexpr int64_t kMostBlocks = 32, kFewElements = 8192;
// So many are kept in order while the line is read.
constexpr int64_t kFewKept = 64;
// Parts of a long line, when there are few lines.
constexpr int64_t kLongTopLine = 1 << 15, kFewLines = 16, kMostTopParts = 32;

int64_t Aligned(int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

template <typename Raw>
struct Candidate {
  Raw key;  // the least is wanted
  uint32_t place;
  bool operator<(const Candidate& other) const {
    return key != other.key ? key < other.key : place < other.place;
  }
};

// Keys of elements, such that the least are wanted.
template <SortOrder order, typename Raw>
struct Keys {
  const Raw* data;
  Raw infinity, turned;
  Raw At(int64_t i) const { return static_cast<Raw>(KeyOf<order>(data[i], infinity) ^ turned); }
};

// Whether one of a stretch of elements comes before `worst`. Signed numbers are what vectors of
// every machine compare.
template <int64_t stretch, typename Keys, typename Raw>
bool AnyBefore(const Keys& keys, int64_t begin, Raw worst) {
  using Signed = std::make_signed_t<Raw>;
  auto limit = static_cast<Signed>(worst ^ kSign<Raw>);
  Signed hits = 0;
  for (int64_t j = 0; j < stretch; ++j) {
    auto key = static_cast<Signed>(keys.At(begin + j) ^ kSign<Raw>);
    hits |= static_cast<Signed>(key < limit);
  }
  return hits != 0;
}

// The first k of the elements begin .. end - 1, which are at least as many. Later elements only go
// before those with greater keys, so that equal ones stay in order.
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
  // Most elements are none: stretches of them are looked at together.
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

template <typename Keys, typename Raw>
void Choose(const Keys& keys, int64_t length, int64_t k, Candidate<Raw>* all) {
  for (int64_t i = 0; i < length; ++i) all[i] = {keys.At(i), static_cast<uint32_t>(i)};
  if (k < length) std::nth_element(all, all + k, all + length);
  std::sort(all, all + k);
}

}  // namespace

TopKCall::TopKCall(TopKForm form) : form_(form) {
  blocks_ = std::clamp<int64_t>(form_.lines, 1, kMostBlocks);
  if (form_.k > kFewKept) {
    block_bytes_ = Aligned(form_.length * 16);
  } else if (form_.lines <= kFewLines && form_.length >= 2 * kLongTopLine) {
    parts_ = std::min(kMostTopParts, form_.length / kLongTopLine);
    blocks_ = form_.lines * parts_;
    block_bytes_ = Aligned(form_.k * 16);
  }
}

template <typename Raw>
void TopKCall::RunLine(std::span<void* const> arguments, int64_t line, int64_t block) const {
  using Kept = Candidate<Raw>;
  auto scratch = [&](int64_t number) {
    return reinterpret_cast<Kept*>(static_cast<std::byte*>(arguments[3]) + number * block_bytes_);
  };
  const Raw* data = static_cast<const Raw*>(arguments[0]) + line * form_.length;
  Raw turned = form_.key.is_descending ? static_cast<Raw>(~Raw{0}) : Raw{0};
  std::array<Kept, kFewKept> few;
  Kept* chosen = form_.k <= kFewKept && parts_ == 1 ? few.data() : scratch(block);
  WithOrder(form_.key.order, [&]<SortOrder order>() {
    Keys<order, Raw> keys{data, static_cast<Raw>(form_.key.infinity), turned};
    if (form_.k > kFewKept) return Choose(keys, form_.length, form_.k, chosen);
    int64_t part = block % parts_;
    KeepFew(keys, form_.length * part / parts_, form_.length * (part + 1) / parts_, form_.k,
            chosen);
  });
  if (parts_ == 1) Store<Raw>(arguments, line, chosen);
}

template <typename Raw>
void TopKCall::Store(std::span<void* const> arguments, int64_t line, const void* chosen) const {
  const auto* from = static_cast<const Candidate<Raw>*>(chosen);
  const Raw* data = static_cast<const Raw*>(arguments[0]) + line * form_.length;
  Raw* values = static_cast<Raw*>(arguments[1]) + line * form_.k;
  for (int64_t i = 0; i < form_.k; ++i) values[i] = data[from[i].place];
  WithBytes(form_.index_bytes, [&]<typename Index>() {
    Index* places = static_cast<Index*>(arguments[2]) + line * form_.k;
    for (int64_t i = 0; i < form_.k; ++i) places[i] = static_cast<Index>(from[i].place);
  });
}

// What the parts of a line kept, as one.
template <typename Raw>
void TopKCall::JoinParts(std::span<void* const> arguments, int64_t line) const {
  std::array<Candidate<Raw>, 2 * kFewKept> all;
  auto k = static_cast<size_t>(form_.k);
  for (int64_t part = 0; part < parts_; ++part) {
    const auto* kept = reinterpret_cast<const Candidate<Raw>*>(
        static_cast<const std::byte*>(arguments[3]) + (line * parts_ + part) * block_bytes_);
    std::copy(kept, kept + k, all.begin() + (part == 0 ? 0 : form_.k));
    if (part > 0) std::inplace_merge(all.begin(), all.begin() + form_.k, all.begin() + 2 * form_.k);
  }
  Store<Raw>(arguments, line, all.data());
}

void TopKCall::Run(std::span<void* const> arguments, const std::atomic<bool>* stop) const {
  int64_t elements = std::max<int64_t>(1, form_.lines * form_.length);
  int64_t grain = std::max<int64_t>(1, kFewElements * blocks_ / elements);
  WithBytes(form_.bytes, [&]<typename Raw>() {
    ThreadPool::OfProcess().For(blocks_, grain, [&](int64_t first, int64_t last) {
      for (int64_t block = first; block < last; ++block) {
        int64_t lines = form_.lines * parts_;  // parts of them
        int64_t begin = lines * block / blocks_, end = lines * (block + 1) / blocks_;
        for (int64_t line = begin; line < end; ++line) {
          if (stop != nullptr && stop->load(std::memory_order_relaxed)) return;
          RunLine<Raw>(arguments, line / parts_, block);
        }
      }
    });
    if (parts_ == 1) return;
    for (int64_t line = 0; line < form_.lines; ++line) JoinParts<Raw>(arguments, line);
  });
}

std::string TopKCall::Text() const {
  return std::to_string(form_.k) + " of each of " + std::to_string(form_.lines) + " x " +
         std::to_string(form_.length);
}

double TopKCall::Micros() const {
  constexpr double kElement = 0.0005, kKept = 0.01;
  return static_cast<double>(form_.lines) *
         (kElement * static_cast<double>(form_.length) + kKept * static_cast<double>(form_.k));
}

}  // namespace tokamak
