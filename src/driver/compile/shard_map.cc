#include "driver/compile/shard_map.h"

#include <algorithm>
#include <string>

#include "interp/groups.h"

namespace tokamak {
namespace {

Error CannotShard(const std::string& why) {
  return MakeError(ErrorCode::kNeedsPartitioning, "sharding: " + why);
}

Result<ShardMap> Checked(ShardMap shard_map, const Dims& dims) {
  bool whole = true;
  for (size_t d = 0; d < dims.size(); ++d) {
    whole = whole && shard_map.parts[d] == 1;
    if (shard_map.parts[d] < 1 || dims[d] % shard_map.parts[d] != 0)
      return CannotShard("dimension " + std::to_string(d) + " is " + std::to_string(dims[d]) +
                         ", its shards are " + std::to_string(shard_map.parts[d]));
  }
  return whole ? ShardMap() : shard_map;
}

Result<ShardMap> OverMesh(const Sharding& sharding, const Mesh& mesh, const Dims& dims,
                          int64_t devices) {
  MeshView view(mesh);
  if (view.DeviceCount() != devices)
    return CannotShard("mesh @" + mesh.name + " has " + std::to_string(view.DeviceCount()) +
                       " devices, the program " + std::to_string(devices));
  ShardMap shard_map;
  shard_map.parts.assign(dims.size(), 1);
  shard_map.shard_indices.assign(static_cast<size_t>(devices), Dims(dims.size(), 0));
  for (size_t d = 0; d < dims.size() && d < sharding.dims.size(); ++d) {
    const std::vector<AxisRef>& axes = sharding.dims[d].axes;
    for (const AxisRef& axis : axes) shard_map.parts[d] *= std::max<int64_t>(view.SizeOf(axis), 1);
    if (axes.empty()) continue;
    for (int64_t device = 0; device < devices; ++device) {
      int64_t n = view.IndexOf(device);
      if (n < 0)
        return CannotShard("device " + std::to_string(device) + " is not in mesh @" + mesh.name);
      shard_map.shard_indices[static_cast<size_t>(device)][d] = view.PositionOf(n, axes);
    }
  }
  return Checked(std::move(shard_map), dims);
}

// The devices of a tile assignment in row-major order of its tiles.
std::vector<int64_t> ListTiles(const TileDevices& tiles) {
  if (!tiles.list.empty()) return tiles.list;
  size_t rank = tiles.reshape.size();
  Dims permutation = tiles.permutation;
  if (permutation.empty())
    for (size_t i = 0; i < rank; ++i) permutation.push_back(static_cast<int64_t>(i));
  Dims strides(rank, 1);
  for (size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * tiles.reshape[i];
  std::vector<int64_t> list = {0};
  for (int64_t axis : permutation) {
    std::vector<int64_t> longer;
    for (int64_t begin : list)
      for (int64_t i = 0; i < tiles.reshape[static_cast<size_t>(axis)]; ++i)
        longer.push_back(begin + i * strides[static_cast<size_t>(axis)]);
    list = std::move(longer);
  }
  return list;
}

Result<ShardMap> OverTiles(const Sharding& sharding, const Dims& dims, int64_t devices) {
  std::vector<int64_t> list = ListTiles(sharding.tile_devices);
  int64_t tiles = 1;
  for (int64_t count : sharding.tile) tiles *= count;
  if (static_cast<int64_t>(list.size()) != devices || tiles != devices ||
      sharding.tile.size() < dims.size())
    return CannotShard("a tile assignment of " + std::to_string(list.size()) +
                       " devices, the program has " + std::to_string(devices));
  ShardMap shard_map;
  shard_map.parts.assign(sharding.tile.begin(),
                         sharding.tile.begin() + static_cast<ptrdiff_t>(dims.size()));
  shard_map.shard_indices.assign(static_cast<size_t>(devices), Dims(dims.size(), 0));
  for (size_t n = 0; n < list.size(); ++n) {
    if (list[n] < 0 || list[n] >= devices)
      return CannotShard("a tile assignment names device " + std::to_string(list[n]));
    auto rest = static_cast<int64_t>(n);
    for (size_t d = sharding.tile.size(); d-- > 0;) {
      int64_t shard_index = rest % sharding.tile[d];
      rest /= sharding.tile[d];
      if (d < dims.size()) shard_map.shard_indices[static_cast<size_t>(list[n])][d] = shard_index;
    }
  }
  return Checked(std::move(shard_map), dims);
}

bool SaysParts(const Sharding& sharding) {
  if (sharding.kind == ShardingKind::kTiled) return true;
  if (sharding.kind != ShardingKind::kMesh) return false;
  return std::any_of(sharding.dims.begin(), sharding.dims.end(),
                     [](const DimSharding& dim) { return !dim.axes.empty(); });
}

// Follows a result to the op that specifies its sharding, through ops that preserve the position of
// every element.
const Sharding* Follow(const Instr* instr, size_t element) {
  for (int steps = 0; steps < 100; ++steps) {
    if (instr->extras().sharding) {
      const Sharding& own = *instr->extras().sharding;
      if (own.kind != ShardingKind::kTuple) return &own;
      if (element < own.elements.size()) return &own.elements[element];
    }
    switch (instr->op()) {
      case Op::kManualComputation: {
        const auto& shardings = instr->attrs<ManualComputationAttrs>().out_shardings;
        return element < shardings.size() ? &shardings[element] : nullptr;
      }
      case Op::kShardingConstraint:
      case Op::kReshard:
        return &instr->attrs<ShardingOpAttrs>().sharding;
      case Op::kGetTupleElement:
        element = static_cast<size_t>(instr->attrs<TupleIndexAttrs>().index);
        instr = instr->operand(0);
        continue;
      case Op::kTuple:
        instr = instr->operand(element);
        element = 0;
        continue;
      case Op::kCall:
        instr = instr->called(0)->root();
        continue;
      default:
        break;
    }
    if (!instr->info().Is(kElementwise)) return nullptr;
    const Instr* same = nullptr;
    for (const Instr* operand : instr->operands())
      if (operand->op() != Op::kConstant && operand->shape().dims() == instr->shape().dims())
        same = same == nullptr ? operand : same;
    if (same == nullptr) return nullptr;
    instr = same;
  }
  return nullptr;
}

}  // namespace

Dims ShardMap::ShardDims(const Dims& dims) const {
  Dims shard = dims;
  for (size_t d = 0; d < parts.size(); ++d) shard[d] /= parts[d];
  return shard;
}

Dims ShardMap::Begin(size_t device, const Dims& dims) const {
  Dims begin(dims.size(), 0);
  for (size_t d = 0; d < parts.size(); ++d)
    begin[d] = shard_indices[device][d] * (dims[d] / parts[d]);
  return begin;
}

Result<ShardMap> ShardMapOf(const Sharding& sharding, const Module& module, const Dims& dims,
                            int64_t devices) {
  if (!SaysParts(sharding)) return ShardMap();
  if (sharding.kind == ShardingKind::kTiled) return OverTiles(sharding, dims, devices);
  const Mesh* mesh = FindMesh(module, sharding.mesh);
  if (mesh == nullptr) return CannotShard("there is no mesh @" + sharding.mesh);
  return OverMesh(sharding, *mesh, dims, devices);
}

const Instr* NeedsPartitioner(const Module& module) {
  const Instr* first = nullptr;
  for (const auto& computation : module.computations()) {
    for (const Instr* instr : computation->Instrs()) {
      if (instr->op() == Op::kManualComputation) return nullptr;
      bool says = instr->extras().sharding && SaysParts(*instr->extras().sharding);
      if (instr->op() == Op::kShardingConstraint || instr->op() == Op::kReshard)
        says = says || SaysParts(instr->attrs<ShardingOpAttrs>().sharding);
      if (says && first == nullptr) first = instr;
    }
    for (const ResultInfo& result : computation->results)
      if (first == nullptr && result.sharding && SaysParts(*result.sharding))
        first = computation->root();
  }
  return first;
}

const Sharding* ShardingOfResult(const Module& module, size_t i) {
  const Computation& entry = *module.entry();
  if (i < entry.results.size() && entry.results[i].sharding) return &*entry.results[i].sharding;
  const Instr* root = entry.root();
  if (root->op() == Op::kTuple) return Follow(root->operand(i), 0);
  return Follow(root, i);
}

}  // namespace tokamak
