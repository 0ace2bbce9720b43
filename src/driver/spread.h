#pragma once

#include <cstdint>
#include <vector>

#include "ir/ir.h"
#include "ir/sharding.h"
#include "support/result.h"

namespace tokamak {

// How one array is spread over the devices of a program: cut into equal parts along its dimensions,
// each device holding one. Several devices may hold the same.
struct Spread {
  Dims parts;                // along each dimension; empty: every device holds all
  std::vector<Dims> places;  // per device: which part along each dimension

  bool IsWhole() const { return parts.empty(); }
  Dims ShardDims(const Dims& dims) const;
  // Where the part of a device begins.
  Dims Begin(size_t device, const Dims& dims) const;
  bool operator==(const Spread&) const = default;
};

// What a sharding says of an array of `dims` on `devices` devices. TK6108 for what cannot be cut
// evenly, or is meant for other devices.
Result<Spread> SpreadOf(const Sharding& sharding, const Module& module, const Dims& dims,
                        int64_t devices);

// Whether shardings alone, and no manual computation, say how the program is spread: null when not,
// else the instruction that says so first.
const Instr* NeedsPartitioner(const Module& module);

// The sharding of result i of the entry: as written, or that of the manual computation, constraint
// or parameter which gives it. Null: none, it is whole everywhere.
const Sharding* ShardingOfResult(const Module& module, size_t i);

}  // namespace tokamak
