// Stable sorts of lines by radix. Keys are mapped to unsigned integers with the same order
// (descending: complemented) and sorted by digits.
//
//   one array that is its own key    KeyLine: sorts the keys, maps them back to elements
//   several operands or keys         OrderLine: sorts (key, position) items, then permutes operands
//
// Several keys are sorted from the last to the first; each sort is stable. Elements that compare
// equal but have different bits (zeros, NaNs) share a key and keep their original order. A
// comparator that leaves NaN unordered is not an order: then the interpreter's merge sort is
// repeated exactly. Either lines or chunks of one long line are distributed over threads, never
// both.

#include "runtime/sort.h"

#include <numeric>

#include "runtime/radix_sort.h"
#include "runtime/sort_keys.h"

namespace tokamak {
namespace {

using sorting::BitsOf;
using sorting::ChunksOfLine;
using sorting::DigitCounts;
using sorting::Digits;
using sorting::ForChunks;
using sorting::IsNan;
using sorting::KeyOf;
using sorting::kSign;
using sorting::SortItems;
using sorting::WideItem;
using sorting::WithBytes;
using sorting::WithOrder;

// Lines are distributed over at most kSortMostBlocks blocks, each with its own scratch; a thread
// takes at least kSortFewElements elements. Chosen; no measurement on record.
constexpr int64_t kSortMostBlocks = 32, kSortFewElements = 4096;

int64_t AlignedSort(int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

// One line of an operand: element i is at data + i * step elements.
struct Line {
  const std::byte* data;
  int64_t step;
};

// Enumerates the keys of a line; `Raw` is the operand's element type.
template <typename Raw, typename Body>
void ForKeys(const SortKey& key, const Line& line, int64_t begin, int64_t end, Body&& body) {
  const Raw* data = reinterpret_cast<const Raw*>(line.data);
  auto infinity = static_cast<Raw>(key.infinity);
  Raw flipped = key.is_descending ? static_cast<Raw>(~Raw{0}) : Raw{0};
  WithOrder(key.order, [&]<SortOrder order>() {
    for (int64_t i = begin; i < end; ++i)
      body(i, static_cast<Raw>(KeyOf<order>(data[i * line.step], infinity) ^ flipped));
  });
}

// ---- one array that is its own key

template <typename Raw, typename Item>
class KeyLine {
 public:
  KeyLine(const SortKey& key, const Line& from, Raw* to, int64_t length, std::byte* scratch)
      : key_(key), from_(from), to_(to), length_(length) {
    items_ = reinterpret_cast<Item*>(scratch);
    other_ = items_ + length;
    counts_ = reinterpret_cast<DigitCounts*>(
        scratch + AlignedSort(2 * length * static_cast<int64_t>(sizeof(Item))));
  }

  void Sort() {
    ForChunks(length_, [&](int64_t, int64_t begin, int64_t end) {
      ForKeys<Raw>(key_, from_, begin, end, [&](int64_t i, Raw key) { items_[i] = key; });
    });
    if (SortItems(items_, other_, length_, {0, 8 * static_cast<int>(sizeof(Raw))}, counts_))
      std::swap(items_, other_);
    Raw flipped = key_.is_descending ? static_cast<Raw>(~Raw{0}) : Raw{0};
    ForChunks(length_, [&](int64_t, int64_t begin, int64_t end) {
      WithOrder(key_.order, [&]<SortOrder order>() {
        for (int64_t i = begin; i < end; ++i)
          to_[i * from_.step] =
              BitsOf<order>(static_cast<Raw>(static_cast<Raw>(items_[i]) ^ flipped));
      });
    });
    if (key_.order == SortOrder::kFloatNanLast) RestoreEqual();
  }

 private:
  // Zeros of both signs, and all NaNs, compare equal but have different bits: restores their
  // original order.
  void RestoreEqual() {
    auto infinity = static_cast<Raw>(key_.infinity);
    const Raw* data = reinterpret_cast<const Raw*>(from_.data);
    Raw flipped = key_.is_descending ? static_cast<Raw>(~Raw{0}) : Raw{0};
    auto bucket_of = [&](Raw key) {
      return std::lower_bound(items_, items_ + length_, static_cast<Raw>(key ^ flipped)) - items_;
    };
    int64_t zero = bucket_of(kSign<Raw>), nan = bucket_of(static_cast<Raw>(~Raw{0}));
    bool has_zeros = zero < length_ && items_[zero] == static_cast<Raw>(kSign<Raw> ^ flipped);
    bool has_nans = nan < length_ && items_[nan] == static_cast<Raw>(~Raw{0} ^ flipped);
    if (!has_zeros && !has_nans) return;
    for (int64_t i = 0; i < length_; ++i) {
      Raw bits = data[i * from_.step];
      if (IsNan(bits, infinity)) {
        to_[nan++ * from_.step] = bits;
      } else if (static_cast<Raw>(bits & ~kSign<Raw>) == 0) {
        to_[zero++ * from_.step] = bits;
      }
    }
  }

  const SortKey& key_;
  Line from_;
  Raw* to_;
  int64_t length_;
  Item *items_, *other_;
  DigitCounts* counts_;
};

// ---- several arrays, or several keys

// A key of up to 32 bits above its original position.
uint64_t MadeItem(uint64_t, uint32_t key, int64_t position) {
  return uint64_t{key} << 32 | static_cast<uint64_t>(position);
}
WideItem MadeItem(const WideItem&, uint64_t key, int64_t position) {
  return {key, static_cast<uint64_t>(position)};
}
int64_t IndexOf(uint64_t item) {
  return static_cast<int64_t>(item & 0xFFFFFFFF);
}
int64_t IndexOf(const WideItem& item) {
  return static_cast<int64_t>(item.position);
}

// The interpreter's merge sort: a comparison that is not an order gives the same result.
template <typename Item, typename Less>
Item* MergeSorted(Item* items, Item* other, int64_t length, Less&& less) {
  for (int64_t width = 1; width < length; width *= 2) {
    for (int64_t start = 0; start < length; start += 2 * width) {
      int64_t middle = std::min(start + width, length), end = std::min(start + 2 * width, length);
      int64_t left = start, right = middle;
      for (int64_t out = start; out < end; ++out) {
        bool take_right = left == middle || (right < end && less(items[right], items[left]));
        other[out] = take_right ? items[right++] : items[left++];
      }
    }
    std::swap(items, other);
  }
  return items;
}

// The sorted positions of a line's elements.
template <typename Item>
class OrderLine {
 public:
  OrderLine(const SortForm& form, std::byte* scratch) : form_(form), length_(form.length) {
    items_ = reinterpret_cast<Item*>(scratch);
    other_ = items_ + length_;
    scratch += AlignedSort(2 * length_ * static_cast<int64_t>(sizeof(Item)));
    order_ = reinterpret_cast<int64_t*>(scratch);
    if (form.keys.size() > 1) scratch += AlignedSort(length_ * 8);
    counts_ = reinterpret_cast<DigitCounts*>(scratch);
  }

  // `lines`: per operand.
  void Sort(std::span<const Line> lines) {
    for (size_t k = form_.keys.size(); k-- > 0;) {
      const SortKey& key = form_.keys[k];
      WithBytes(form_.bytes[key.operand],
                [&]<typename Raw>() { SortBy<Raw>(key, lines[key.operand], k); });
    }
  }

  // For a sort by one key: recovers the elements from the keys, except zeros and NaNs, whose keys
  // are merged.
  template <typename Raw>
  void StoreKeys(const Line& from, std::byte* to) const {
    const SortKey& key = form_.keys[0];
    const Raw* source = reinterpret_cast<const Raw*>(from.data);
    Raw* target = reinterpret_cast<Raw*>(to);
    Raw flipped = key.is_descending ? static_cast<Raw>(~Raw{0}) : Raw{0};
    ForChunks(length_, [&](int64_t, int64_t begin, int64_t end) {
      WithOrder(key.order, [&]<SortOrder order>() {
        for (int64_t i = begin; i < end; ++i) {
          auto own = static_cast<Raw>(KeyOfItem<Raw>(items_[i]) ^ flipped);
          bool alike = order == SortOrder::kFloatNanLast &&
                       (own == kSign<Raw> || own == static_cast<Raw>(~Raw{0}));
          target[i * from.step] =
              alike ? source[IndexOf(items_[i]) * from.step] : BitsOf<order>(own);
        }
      });
    });
  }

  int64_t At(int64_t i) const { return form_.keys.size() > 1 ? order_[i] : IndexOf(items_[i]); }

 private:
  template <typename Raw>
  void SortBy(const SortKey& key, const Line& line, size_t number) {
    bool is_first = number + 1 == form_.keys.size();
    if (is_first) {
      ForChunks(length_, [&](int64_t, int64_t begin, int64_t end) {
        ForKeys<Raw>(key, line, begin, end,
                     [&](int64_t i, Raw own) { items_[i] = MadeItem(Item{}, own, i); });
      });
    } else {
      // Applies the order by the later keys to the keys.
      ForChunks(length_, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          ForKeys<Raw>(key, line, order_[i], order_[i] + 1,
                       [&](int64_t, Raw own) { items_[i] = MadeItem(Item{}, own, i); });
      });
    }
    if (key.order == SortOrder::kFloatIeee && HasNan<Raw>(key, line)) {
      SortWithNan<Raw>(key);
    } else {
      int first = sizeof(Item) == sizeof(WideItem) ? 0 : 32;
      if (SortItems(items_, other_, length_, {first, 8 * static_cast<int>(sizeof(Raw))}, counts_))
        std::swap(items_, other_);
    }
    if (form_.keys.size() > 1) Reorder(is_first);
  }

  void Reorder(bool is_first) {
    auto* next = reinterpret_cast<int64_t*>(other_);  // at least as large
    ForChunks(length_, [&](int64_t, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        next[i] = is_first ? IndexOf(items_[i]) : order_[IndexOf(items_[i])];
    });
    ForChunks(length_, [&](int64_t, int64_t begin, int64_t end) {
      std::copy(next + begin, next + end, order_ + begin);
    });
  }

  template <typename Raw>
  bool HasNan(const SortKey& key, const Line& line) const {
    const Raw* data = reinterpret_cast<const Raw*>(line.data);
    for (int64_t i = 0; i < length_; ++i)
      if (IsNan(data[i * line.step], static_cast<Raw>(key.infinity))) return true;
    return false;
  }

  template <typename Raw>
  static Raw KeyOfItem(const Item& item) {
    return static_cast<Raw>(sizeof(Item) == sizeof(WideItem) ? Digits(item) : Digits(item) >> 32);
  }

  template <typename Raw>
  void SortWithNan(const SortKey& key) {
    auto nan = static_cast<Raw>(key.is_descending ? Raw{0} : ~Raw{0});
    items_ = MergeSorted(items_, other_, length_, [&](const Item& x, const Item& y) {
      Raw a = KeyOfItem<Raw>(x), b = KeyOfItem<Raw>(y);
      return a != nan && b != nan && a < b;
    });
  }

  const SortForm& form_;
  int64_t length_;
  Item *items_, *other_;
  int64_t* order_;
  DigitCounts* counts_;
};

struct Wide {
  uint64_t low, high;
};

// Permutes the elements of one operand.
template <typename Order>
void Permute(const Order& order, int64_t bytes, const Line& from, std::byte* to, int64_t length) {
  auto move = [&]<typename Raw>() {
    const Raw* source = reinterpret_cast<const Raw*>(from.data);
    Raw* target = reinterpret_cast<Raw*>(to);
    ForChunks(length, [&](int64_t, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) target[i * from.step] = source[order.At(i) * from.step];
    });
  };
  if (bytes == 16) return move.template operator()<Wide>();
  WithBytes(bytes, move);
}

// Stores positions for operands that are an iota.
template <typename Order>
void StorePositions(const Order& order, int64_t bytes, std::byte* to, int64_t step,
                    int64_t length) {
  WithBytes(bytes, [&]<typename Raw>() {
    Raw* target = reinterpret_cast<Raw*>(to);
    ForChunks(length, [&](int64_t, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) target[i * step] = static_cast<Raw>(order.At(i));
    });
  });
}

}  // namespace

SortCall::SortCall(SortForm form) : form_(std::move(form)) {
  lines_ = form_.outer * form_.inner;
  form_.counted.resize(form_.bytes.size());
  keys_alone_ = form_.bytes.size() == 1 && form_.keys.size() == 1 &&
                form_.keys[0].order != SortOrder::kFloatIeee;
  bool wide = form_.length > int64_t{UINT32_MAX};
  for (const SortKey& key : form_.keys) wide = wide || form_.bytes[key.operand] == 8;
  item_bytes_ = keys_alone_ ? (wide ? 8 : 4) : wide ? 16 : 8;
  line_bytes_ = AlignedSort(2 * form_.length * item_bytes_);
  if (form_.keys.size() > 1) line_bytes_ += AlignedSort(form_.length * 8);
  int64_t chunks = ChunksOfLine(form_.length);
  block_bytes_ = line_bytes_ + chunks * static_cast<int64_t>(sizeof(DigitCounts));
  // Either lines or chunks of lines are distributed over the threads.
  blocks_ = chunks > 1 ? 1 : std::clamp<int64_t>(lines_, 1, kSortMostBlocks);
}

void SortCall::Run(std::span<void* const> arguments, const std::atomic<bool>* stop) const {
  auto* scratch = static_cast<std::byte*>(arguments[2 * form_.bytes.size()]);
  int64_t min_chunk = std::max<int64_t>(
      1, kSortFewElements * blocks_ / std::max<int64_t>(1, lines_ * form_.length));
  ThreadPool::OfProcess().For(blocks_, min_chunk, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      int64_t begin = lines_ * block / blocks_, end = lines_ * (block + 1) / blocks_;
      for (int64_t line = begin; line < end; ++line) {
        if (stop != nullptr && stop->load(std::memory_order_relaxed)) return;
        RunLine(arguments, line, scratch + block * block_bytes_);
      }
    }
  });
}

// An operand that is the only key is recovered from the sorted keys, an iota from the positions:
// both avoid random reads.
void SortCall::RunLine(std::span<void* const> arguments, int64_t line, std::byte* scratch) const {
  size_t count = form_.bytes.size();
  int64_t base = line / form_.inner * form_.inner * form_.length + line % form_.inner;
  auto from = [&](size_t k) {
    return Line{static_cast<const std::byte*>(arguments[k]) + base * form_.bytes[k], form_.inner};
  };
  auto to = [&](size_t k) {
    return static_cast<std::byte*>(arguments[count + k]) + base * form_.bytes[k];
  };
  if (keys_alone_) {
    return WithBytes(form_.bytes[0], [&]<typename Raw>() {
      using Item = std::conditional_t<sizeof(Raw) == 8, uint64_t, uint32_t>;
      KeyLine<Raw, Item>(form_.keys[0], from(0), reinterpret_cast<Raw*>(to(0)), form_.length,
                         scratch)
          .Sort();
    });
  }
  auto sort = [&](auto&& order) {
    std::vector<Line> lines;
    for (size_t k = 0; k < count; ++k) lines.push_back(from(k));
    order.Sort(lines);
    for (size_t k = 0; k < count; ++k) {
      if (form_.counted[k]) {
        StorePositions(order, form_.bytes[k], to(k), form_.inner, form_.length);
      } else if (form_.keys.size() == 1 && form_.keys[0].operand == k) {
        WithBytes(form_.bytes[k],
                  [&]<typename Raw>() { order.template StoreKeys<Raw>(lines[k], to(k)); });
      } else {
        Permute(order, form_.bytes[k], lines[k], to(k), form_.length);
      }
    }
  };
  if (item_bytes_ == 8) return sort(OrderLine<uint64_t>(form_, scratch));
  sort(OrderLine<WideItem>(form_, scratch));
}

std::string SortCall::Text() const {
  return "sort of " + std::to_string(lines_) + " x " + std::to_string(form_.length) + " by " +
         std::to_string(form_.keys.size()) + (form_.keys.size() == 1 ? " key" : " keys");
}

double SortCall::Micros() const {
  // Microseconds per element. A rough estimate.
  constexpr double kElement = 0.01;
  return kElement * static_cast<double>(lines_ * form_.length) *
         static_cast<double>(form_.keys.size() + form_.bytes.size());
}

}  // namespace tokamak
