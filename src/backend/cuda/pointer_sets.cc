#include "backend/cuda/pointer_sets.h"

#include <algorithm>

namespace tokamak::cuda {
namespace {

// A hash of zero means an empty entry of the recent runs.
uint64_t HashOf(std::span<void* const> pointers) {
  uint64_t hash = 0xcbf29ce484222325;
  for (void* pointer : pointers) {
    hash = (hash ^ reinterpret_cast<uintptr_t>(pointer)) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  }
  return hash | 1;
}

}  // namespace

PointerSets::Kind PointerSets::Find(std::span<void* const> pointers) {
  uint64_t hash = HashOf(pointers);
  ++runs_;
  for (size_t i = 0; i < sets_.size(); ++i) {
    Set& set = sets_[i];
    if (set.hash != hash || !std::ranges::equal(set.pointers, pointers)) continue;
    set.used = runs_;
    slot_ = i;
    return Kind::kKept;
  }
  bool recurs = std::ranges::find(recent_, hash) != recent_.end();
  recent_[runs_ % kRecentRuns] = hash;
  if (!recurs) return Kind::kOther;
  Set added{hash, {pointers.begin(), pointers.end()}, runs_};
  if (sets_.size() < kMaxSets) {
    slot_ = sets_.size();
    sets_.push_back(std::move(added));
    return Kind::kAdded;
  }
  auto oldest = std::ranges::min_element(sets_, {}, &Set::used);
  if (runs_ - oldest->used < kUnusedRuns) return Kind::kOther;
  slot_ = static_cast<size_t>(oldest - sets_.begin());
  *oldest = std::move(added);
  return Kind::kAdded;
}

void PointerSets::Drop() {
  sets_[slot_] = Set{};
}

}  // namespace tokamak::cuda
