#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/shape.h"

namespace tokamak {

// Shardings: how a value is distributed over devices. HLO's shardings (tiles over a list of
// devices) and sdy's (axes of a named mesh) are two kinds of one attribute.

struct MeshAxis {
  std::string name;
  int64_t size = 1;
  bool operator==(const MeshAxis&) const = default;
};

// An entry of the module's mesh table. No axes and one device id: a maximal mesh.
struct Mesh {
  std::string name;
  std::vector<MeshAxis> axes;
  Dims device_ids;  // empty: 0, 1, 2 ...
  bool operator==(const Mesh&) const = default;
};

// A mesh axis or, with pre_size and size, a sub-axis: "x":(2)4.
struct AxisRef {
  std::string name;
  int64_t pre_size = 0, size = 0;  // both 0: the whole axis
  bool operator==(const AxisRef&) const = default;
};

struct DimSharding {
  std::vector<AxisRef> axes;
  bool is_closed = true;  // open: propagation may add axes ('?')
  int64_t priority = -1;  // p1; -1: no priority
  bool operator==(const DimSharding&) const = default;
};

// Devices of a tile assignment: a list, or the numbers 0..n-1 in shape `reshape`, transposed by
// `permutation` and read in order ([2,2]<=[4] T(1,0)).
struct TileDevices {
  Dims list;
  Dims reshape, permutation;
  bool operator==(const TileDevices&) const = default;
};

enum class ShardingKind : uint8_t {
  kReplicated,
  kMaximal,  // one device holds the whole value: tile_devices.list[0]
  kManual,   // the program manages the shards itself
  kUnknown,
  kUnreduced,
  kTiled,  // devices=[2,1]<=[2]
  kMesh,   // axes of a mesh
  kTuple,
};

struct Sharding {
  ShardingKind kind = ShardingKind::kReplicated;

  // kTiled. The last `subgroups.size()` tile dimensions are not dimensions of the array: each entry
  // of `subgroups` states what the devices along it hold.
  Dims tile;
  TileDevices tile_devices;
  std::vector<ShardingKind> subgroups;  // kReplicated, kManual, kUnreduced ...
  bool replicate_last_tile_dim = false;

  // kMesh
  std::string mesh;  // a row of Module::meshes()
  std::vector<DimSharding> dims;
  std::vector<AxisRef> replicated, unreduced, manual;
  std::string reduction;  // the pending reduction over the `unreduced` axes; "": sum

  // kTuple
  std::vector<Sharding> elements;

  int64_t shard_as = -1, shard_like = -1;  // sharding groups that must (shard_as) or should
                                           // (shard_like) agree

  bool operator==(const Sharding&) const = default;
};

// sdy.sharding_rule: how the factors of an op map onto the dimensions of its values.
struct ShardingRule {
  Dims factor_sizes;
  std::vector<std::vector<Dims>> operands, results;  // per value, per dimension: factors
  Dims reduction, need_replication, permutation, blocked_propagation;
  bool is_custom = false;
  bool operator==(const ShardingRule&) const = default;
};

uint64_t HashOf(const Sharding& sharding);

}  // namespace tokamak
