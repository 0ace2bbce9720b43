#include "ir/sharding.h"

#include "support/hash.h"

namespace tokamak {
namespace {

void AddDims(Hasher& hasher, const Dims& dims) {
  hasher.Add(dims.size());
  for (int64_t d : dims) hasher.Add(d);
}

void AddAxes(Hasher& hasher, const std::vector<AxisRef>& axes) {
  hasher.Add(axes.size());
  for (const AxisRef& axis : axes) {
    hasher.Add(std::string_view(axis.name));
    hasher.Add(axis.pre_size);
    hasher.Add(axis.size);
  }
}

}  // namespace

uint64_t HashOf(const Sharding& sharding) {
  Hasher hasher;
  hasher.Add(sharding.kind);
  AddDims(hasher, sharding.tile);
  AddDims(hasher, sharding.tile_devices.list);
  AddDims(hasher, sharding.tile_devices.reshape);
  AddDims(hasher, sharding.tile_devices.permutation);
  for (ShardingKind kind : sharding.subgroups) hasher.Add(kind);
  hasher.Add(sharding.replicate_last_tile_dim);
  hasher.Add(std::string_view(sharding.mesh));
  for (const DimSharding& dim : sharding.dims) {
    AddAxes(hasher, dim.axes);
    hasher.Add(dim.is_closed);
    hasher.Add(dim.priority);
  }
  AddAxes(hasher, sharding.replicated);
  AddAxes(hasher, sharding.unreduced);
  AddAxes(hasher, sharding.manual);
  hasher.Add(std::string_view(sharding.reduction));
  for (const Sharding& element : sharding.elements) hasher.Add(HashOf(element));
  hasher.Add(sharding.shard_as);
  hasher.Add(sharding.shard_like);
  return hasher.digest();
}

}  // namespace tokamak
