#pragma once

#include <cstdint>
#include <string>

#include "driver/compile/shard_map.h"
#include "ir/ir.h"

// What a caller of a program needs to know: its arrays, its work, its memory.

namespace tokamak {

// A parameter or result of a program, as one device stores it: a dense row-major array; elements
// narrower than a byte occupy one byte. A token is a pred[] whose value has no meaning.
struct ArrayInfo {
  ElementType type = ElementType::kPred;
  Dims dims;
  Dims whole_dims;  // the unsharded dimensions; `dims` is one device's shard
  ShardMap shard_map;
  int64_t bytes = 1;
  std::string memory_kind = "device";
  bool is_token = false;
};

struct ParameterInfo : ArrayInfo {
  bool donated = false;       // the run consumes the caller's buffer
  int64_t alias_result = -1;  // donated: the result that reuses its memory; -1 if none
};

struct CostAnalysis {
  double flops = 0, transcendentals = 0, bytes_accessed = 0;
};

struct MemoryAnalysis {
  int64_t code = 0, arguments = 0, results = 0, aliased = 0, temporary = 0;
};

}  // namespace tokamak
