#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/ir.h"

namespace tokamak {

// Where instructions come from, as HLO text writes it: metadata={...}, and the
// tables of files, functions and stack frames between header and computations.
class HloOriginWriter {
 public:
  explicit HloOriginWriter(const OriginTable& table) : table_(table) {}

  // First: numbers the frames that these computations need.
  void Collect(std::span<Computation* const> computations);
  void AppendTables(std::string& out) const;  // nothing when no frame needs them
  void Append(std::string& out, OriginId origins) const;

 private:
  void AddFrame(FrameId id);
  void AppendMetadata(std::string& out, const Origin& origin) const;

  const OriginTable& table_;
  std::vector<FrameId> frames_;
  std::unordered_map<FrameId, int64_t> frame_ids_;  // from 1
};

}  // namespace tokamak
