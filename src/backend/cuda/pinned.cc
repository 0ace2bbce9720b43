#include "backend/cuda/pinned.h"

namespace tokamak::cuda {

Result<PinnedSlot> PinnedSlots::Take() {
  std::unique_lock<std::mutex> lock(mutex_);
  bool is_free =
      !free_.empty() && (!free_.front().is_pending || api_.query(free_.front().event) == 0);
  if (!is_free && (made_ < most_ || free_.empty())) {
    PinnedSlot slot;
    int result = api_.allocate_host(&slot.data, bytes_, 0);
    if (result == 0) result = api_.create_event(&slot.event, kEventNoTiming);
    if (result == 0) {
      ++made_;
      return slot;
    }
    if (slot.data != nullptr) api_.free_host(slot.data);
    if (free_.empty())
      return MakeError(ErrorCode::kOutOfMemory,
                       "cuda: no memory of the host to copy through: " + api_.TextOf(result));
  }
  PinnedSlot slot = free_.front();
  free_.pop_front();
  lock.unlock();
  if (slot.is_pending) api_.wait(slot.event);
  slot.is_pending = false;
  return slot;
}

void PinnedSlots::Release(PinnedSlot slot) {
  std::lock_guard<std::mutex> lock(mutex_);
  // Slots that are free are used before those that the device still uses.
  if (slot.is_pending) {
    free_.push_back(slot);
  } else {
    free_.push_front(slot);
  }
}

}  // namespace tokamak::cuda
