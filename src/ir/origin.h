#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace tokamak {

// Where an instruction came from: lines of the user's Python, mostly. A
// rewrite that makes one instruction out of several merges their origins.

enum class FrameId : uint32_t { kNone = 0 };
enum class OriginId : uint32_t { kNone = 0 };  // a set of origins

// A line of source and who called it.
struct Frame {
  std::string file, function;
  int32_t line = 0, column = 0, end_line = 0, end_column = 0;
  FrameId caller = FrameId::kNone;
  bool operator==(const Frame&) const = default;
};

struct Origin {
  std::string op_name;  // "jit(f)/jit(main)/add"
  std::string op_type;  // "add"; HLO metadata only
  std::string other;    // the rest of HLO's metadata, as it was written
  FrameId frame = FrameId::kNone;
  bool operator==(const Origin&) const = default;
};

// Interns frames and sets of origins. Ids are dense and in order of first use.
class OriginTable {
 public:
  OriginTable();

  FrameId AddFrame(const Frame& frame);
  OriginId Add(const Origin& origin);  // the set of one
  OriginId Merge(OriginId a, OriginId b);

  const Frame& frame(FrameId id) const { return frames_[static_cast<size_t>(id)]; }
  // The origins of a set, in order of first use.
  std::vector<const Origin*> Of(OriginId set) const;
  size_t set_count() const { return sets_.size(); }

 private:
  OriginId InternSet(std::vector<uint32_t> members);

  std::vector<Frame> frames_;
  std::vector<Origin> origins_;
  std::vector<std::vector<uint32_t>> sets_;  // sorted indices of origins_
  std::unordered_multimap<uint64_t, uint32_t> frame_index_, origin_index_, set_index_;
};

}  // namespace tokamak
