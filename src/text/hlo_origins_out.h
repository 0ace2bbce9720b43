#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/ir.h"

namespace tokamak {

// Writes the origins of instructions as HLO text: metadata={...}, and the tables of files,
// functions and stack frames between the header and the computations.
class HloOriginWriter {
 public:
  explicit HloOriginWriter(const OriginTable& table) : table_(table) {}

  // Call first: numbers the frames that these computations reference.
  void Collect(std::span<Computation* const> computations);
  void AppendTables(std::string& out) const;  // writes nothing if no frame needs them
  void Append(std::string& out, OriginId origins) const;

 private:
  void AddFrame(FrameId id);
  void AppendMetadata(std::string& out, const Origin& origin) const;

  const OriginTable& table_;
  std::vector<FrameId> frames_;
  std::unordered_map<FrameId, int64_t> frame_ids_;  // from 1
};

}  // namespace tokamak
