// OpSharding: 1 type (0 replicated, 3 other), 3 tile_assignment_dimensions,
// 4 tile_assignment_devices, 6 replicate_on_last_tile_dim.

#include "pjrt/op_sharding.h"

#include <algorithm>
#include <numeric>

#include "pjrt/proto.h"

namespace tokamak {

std::string WriteOpSharding(const ShardMap& shard_map, int64_t devices) {
  std::string out;
  if (shard_map.IsWhole()) {
    PutInt(out, 1, 0);
    return out;
  }
  std::vector<int64_t> order(static_cast<size_t>(devices));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return shard_map.shard_indices[static_cast<size_t>(a)] <
           shard_map.shard_indices[static_cast<size_t>(b)];
  });
  int64_t tiles = 1;
  std::string dims, list;
  for (int64_t parts : shard_map.parts) {
    tiles *= parts;
    PutVarint(dims, static_cast<uint64_t>(parts));
  }
  if (tiles < devices) PutVarint(dims, static_cast<uint64_t>(devices / tiles));
  for (int64_t device : order) PutVarint(list, static_cast<uint64_t>(device));
  PutInt(out, 1, 3);
  PutBytes(out, 3, dims);
  PutBytes(out, 4, list);
  if (tiles < devices) PutInt(out, 6, 1);
  return out;
}

}  // namespace tokamak
