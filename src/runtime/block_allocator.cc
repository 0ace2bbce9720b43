#include "runtime/block_allocator.h"

#include <algorithm>

namespace tokamak {
namespace {

// Bytes of a slab. Chosen; no measurement on record.
constexpr size_t kMinSlabBytes = size_t{32} << 20, kMaxSlabBytes = size_t{8} << 30;
constexpr size_t kSlabGranule = size_t{2} << 20;  // bytes: the page size of a GPU
// Largest users that an out-of-memory message lists.
constexpr size_t kUsersNamed = 3;

constexpr size_t RoundUp(size_t bytes, size_t granule) {
  return (bytes + granule - 1) / granule * granule;
}

}  // namespace

BlockAllocator::BlockAllocator(SlabSource& source, int64_t limit) : source_(source) {
  stats_.limit = limit;
}

BlockAllocator::~BlockAllocator() {
  for (const Slab& slab : slabs_)
    if (slab.bytes > 0) source_.FreeSlab(reinterpret_cast<void*>(slab.begin), slab.bytes);
}

Result<void*> BlockAllocator::Allocate(size_t bytes, std::string_view user) {
  size_t rounded = RoundUp(std::max<size_t>(bytes, 1), kGranule);
  std::lock_guard<std::mutex> lock(mutex_);
  void* allocated = rounded < bytes ? nullptr : TakeLocked(rounded, user);
  if (allocated == nullptr && rounded >= bytes && GrowLocked(rounded))
    allocated = TakeLocked(rounded, user);
  if (allocated == nullptr) return OutOfMemoryLocked(bytes, user);
  return allocated;
}

void* BlockAllocator::TakeLocked(size_t bytes, std::string_view user) {
  auto best = free_.lower_bound({bytes, 0});
  if (best == free_.end()) return nullptr;
  auto [size, begin] = *best;
  free_.erase(best);
  Block& block = blocks_[begin];
  if (size > bytes) {
    blocks_[begin + bytes] = {size - bytes, block.slab, true, {}};
    free_.insert({size - bytes, begin + bytes});
  }
  block.bytes = bytes;
  block.is_free = false;
  block.user = user;
  auto allocated = static_cast<int64_t>(bytes);
  stats_.in_use += allocated;
  stats_.peak = std::max(stats_.peak, stats_.in_use);
  stats_.largest = std::max(stats_.largest, allocated);
  ++stats_.allocations;
  return reinterpret_cast<void*>(begin);
}

// Slabs grow with the reserved memory, so that there are few; if that fails, exactly what is
// needed.
bool BlockAllocator::GrowLocked(size_t bytes) {
  size_t wanted = std::clamp(static_cast<size_t>(stats_.reserved), kMinSlabBytes, kMaxSlabBytes);
  size_t least = RoundUp(bytes, kSlabGranule);
  if (AddSlabLocked(std::max(wanted, least)) || AddSlabLocked(least)) return true;
  return ShrinkLocked() && (free_.lower_bound({bytes, 0}) != free_.end() || AddSlabLocked(least));
}

bool BlockAllocator::AddSlabLocked(size_t bytes) {
  if (static_cast<int64_t>(bytes) > stats_.limit - stats_.reserved) return false;
  void* allocated = source_.AllocateSlab(bytes);
  if (allocated == nullptr) return false;
  auto begin = reinterpret_cast<uintptr_t>(allocated);
  blocks_[begin] = {bytes, slabs_.size(), true, {}};
  free_.insert({bytes, begin});
  slabs_.push_back({begin, bytes});
  stats_.reserved += static_cast<int64_t>(bytes);
  stats_.peak_reserved = std::max(stats_.peak_reserved, stats_.reserved);
  return true;
}

bool BlockAllocator::ShrinkLocked() {
  bool any = false;
  for (Slab& slab : slabs_) {
    if (slab.bytes == 0) continue;
    auto at = blocks_.find(slab.begin);
    if (!at->second.is_free || at->second.bytes != slab.bytes) continue;
    free_.erase({slab.bytes, slab.begin});
    blocks_.erase(at);
    source_.FreeSlab(reinterpret_cast<void*>(slab.begin), slab.bytes);
    stats_.reserved -= static_cast<int64_t>(slab.bytes);
    slab.bytes = 0;
    any = true;
  }
  return any;
}

void BlockAllocator::Free(void* memory) {
  if (memory == nullptr) return;
  std::lock_guard<std::mutex> lock(mutex_);
  auto at = blocks_.find(reinterpret_cast<uintptr_t>(memory));
  stats_.in_use -= static_cast<int64_t>(at->second.bytes);
  at->second.is_free = true;
  at->second.user.clear();
  auto join = [&](Blocks::iterator low, Blocks::iterator high) {
    low->second.bytes += high->second.bytes;
    blocks_.erase(high);
  };
  auto next = std::next(at);
  if (next != blocks_.end() && next->second.is_free && next->second.slab == at->second.slab) {
    free_.erase({next->second.bytes, next->first});
    join(at, next);
  }
  if (at != blocks_.begin()) {
    auto before = std::prev(at);
    if (before->second.is_free && before->second.slab == at->second.slab) {
      free_.erase({before->second.bytes, before->first});
      join(before, at);
      at = before;
    }
  }
  free_.insert({at->second.bytes, at->first});
}

BlockStats BlockAllocator::Stats() const {
  std::lock_guard<std::mutex> lock(mutex_);
  BlockStats stats = stats_;
  if (!free_.empty()) stats.largest_free = static_cast<int64_t>(free_.rbegin()->first);
  return stats;
}

void BlockAllocator::ClearPeaks() {
  std::lock_guard<std::mutex> lock(mutex_);
  stats_.peak = stats_.in_use;
  stats_.peak_reserved = stats_.reserved;
  stats_.largest = stats_.allocations = 0;
}

Error BlockAllocator::OutOfMemoryLocked(size_t bytes, std::string_view user) const {
  struct Use {
    int64_t bytes = 0, blocks = 0;
  };
  std::map<std::string_view, Use> users;
  for (const auto& [begin, block] : blocks_) {
    if (block.is_free) continue;
    Use& use = users[block.user];
    use.bytes += static_cast<int64_t>(block.bytes);
    ++use.blocks;
  }
  std::vector<std::pair<std::string_view, Use>> most(users.begin(), users.end());
  std::sort(most.begin(), most.end(),
            [](const auto& x, const auto& y) { return x.second.bytes > y.second.bytes; });
  Error error = MakeError(ErrorCode::kDeviceMemory,
                          "device: " + std::to_string(bytes) + " bytes for " + std::string(user) +
                              " are not available: " + std::to_string(stats_.in_use) +
                              " bytes are in use, " + std::to_string(stats_.reserved) +
                              " reserved on the device, limit " + std::to_string(stats_.limit));
  for (size_t i = 0; i < most.size() && i < kUsersNamed; ++i)
    error.notes.push_back(std::string(most[i].first) + ": " + std::to_string(most[i].second.bytes) +
                          " bytes in " + std::to_string(most[i].second.blocks) + " blocks");
  return error;
}

}  // namespace tokamak
