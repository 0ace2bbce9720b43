#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "kernel/kernel.h"

namespace tokamak::cuda {

// Meetings of a cluster's blocks that need no barrier. What is stored goes to the copies of team
// memory of all blocks; a block that counts the bytes that arrive in its own knows when all have
// stored. That no one overwrites what others still read follows where, between two meetings, every
// warp first reads and then stores: who has what was stored for the later meeting knows that all
// are done with what they read after the earlier one.
struct Arrivals {
  LoopId loop{};  // of rounds: all stores and meetings are statements of its body
  // Of each meeting of a round, what arrives in a block before it.
  std::vector<int64_t> bytes;
  std::map<const Stmt*, size_t> meetings;  // stores and barriers: which meeting they belong to
  std::set<const Stmt*> sending;           // statements of the body that are, or hold, such stores
};
// Nothing where meetings have to be barriers.
std::optional<Arrivals> ArrivalsOf(const Kernel& kernel);

}  // namespace tokamak::cuda
