#pragma once

#include <string>

#include "driver/compile/shard_map.h"

namespace tokamak {

// The sharding of an array as a serialized OpSharding of XLA.
std::string WriteOpSharding(const ShardMap& shard_map, int64_t devices);

}  // namespace tokamak
