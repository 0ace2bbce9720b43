#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tokamak {

// Source locations of instructions, mostly lines of the user's Python. A rewrite that replaces
// several instructions by one merges their origins.

enum class FrameId : uint32_t { kNone = 0 };
enum class OriginId : uint32_t { kNone = 0 };  // a set of origins

// A line of source and its caller.
struct Frame {
  std::string file, function;
  int32_t line = 0, column = 0, end_line = 0, end_column = 0;
  FrameId caller = FrameId::kNone;
  bool operator==(const Frame&) const = default;
};

struct Origin {
  std::string op_name;  // "jit(f)/jit(main)/add"
  std::string op_type;  // "add"; HLO metadata only
  std::string other;    // the rest of HLO's metadata, verbatim
  FrameId frame = FrameId::kNone;
  bool operator==(const Origin&) const = default;
};

// A hash index over a list of items. Most instructions have a distinct origin, so every parser runs
// this for each instruction: one probe in one array, no allocation per item.
class OriginIndex {
 public:
  // Returns the id of the item with this hash for which same(id) holds. Otherwise adds and returns
  // `next`.
  template <typename Same>
  uint32_t FindOrAdd(uint64_t hash, uint32_t next, Same&& same) {
    if (slots_.size() < 2 * (count_ + 1)) Grow();
    size_t mask = slots_.size() - 1;
    size_t i = hash & mask;
    for (; slots_[i].second != 0; i = (i + 1) & mask)
      if (slots_[i].first == hash && same(slots_[i].second - 1)) return slots_[i].second - 1;
    slots_[i] = {hash, next + 1};
    ++count_;
    return next;
  }

 private:
  void Grow();

  std::vector<std::pair<uint64_t, uint32_t>> slots_;  // hash and id + 1; 0: free
  size_t count_ = 0;
};

// Interns frames and sets of origins. Ids are dense, in order of first use.
class OriginTable {
 public:
  OriginTable();

  FrameId AddFrame(const Frame& frame);
  OriginId Add(const Origin& origin);  // the set with this one origin
  // Constant time and memory per call, whatever the size of the sets.
  OriginId Merge(OriginId a, OriginId b);

  const Frame& frame(FrameId id) const { return frames_[static_cast<size_t>(id)]; }
  // The origins of a set, in order of first use.
  std::vector<const Origin*> Of(OriginId set) const;

  // A mark is a number, at least 0, that an instruction keeps through rewrites, as Origin::other:
  // "kernel=12" with the name "kernel=".
  OriginId AddMark(std::string_view name, int64_t number);  // the set with this one mark
  // The numbers of all marks of this name in a set, ascending.
  std::vector<int64_t> MarksOf(OriginId set, std::string_view name) const;

 private:
  // Small sets list sorted indices into origins_; large sets store only the two sets they were
  // merged from.
  struct Set {
    std::vector<uint32_t> members;
    OriginId left = OriginId::kNone, right = OriginId::kNone;
    bool operator==(const Set&) const = default;
    bool is_large() const { return left != OriginId::kNone; }
  };
  static uint64_t HashOf(const Set& set);
  OriginId InternSet(Set set);

  std::vector<Frame> frames_;
  std::vector<Origin> origins_;
  std::vector<Set> sets_;
  OriginIndex frame_index_, origin_index_, set_index_;
};

}  // namespace tokamak
