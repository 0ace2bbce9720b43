#pragma once

#include <cstdint>
#include <vector>

#include "ir/ir.h"
#include "ir/sharding.h"
#include "support/result.h"

namespace tokamak {

// How one array is sharded over the devices of a program: split into equal shards along its
// dimensions, one per device. Several devices may hold the same shard (replication).
struct ShardMap {
  Dims parts;                       // shards along each dimension; empty: replicated
  std::vector<Dims> shard_indices;  // per device: the index of its shard along each dimension

  bool IsWhole() const { return parts.empty(); }
  Dims ShardDims(const Dims& dims) const;
  // Start of a device's shard in the whole array.
  Dims Begin(size_t device, const Dims& dims) const;
  bool operator==(const ShardMap&) const = default;
};

// The shard map of a sharding for an array of `dims` on `devices` devices. Returns TK6108 if the
// array cannot be split evenly or the sharding is for other devices.
Result<ShardMap> ShardMapOf(const Sharding& sharding, const Module& module, const Dims& dims,
                            int64_t devices);

// The first instruction whose sharding requires automatic partitioning. Null if only manual
// computations shard the program.
const Instr* NeedsPartitioner(const Module& module);

// The sharding of result i of the entry: as written, or that of the manual computation, constraint
// or parameter that produces it. Null if there is none (the result is replicated).
const Sharding* ShardingOfResult(const Module& module, size_t i);

}  // namespace tokamak
