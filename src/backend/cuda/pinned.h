#pragma once

#include <cstddef>
#include <deque>
#include <mutex>

#include "backend/cuda/driver_api.h"
#include "support/result.h"

namespace tokamak::cuda {

// Memory of the host that the device copies from and to by itself.
struct PinnedSlot {
  void* data = nullptr;
  Handle event = nullptr;
  bool is_pending = false;  // the device uses it until the event has come
};

// Slots of one size, made when they are wanted, `most` at most: then whoever wants one waits.
class PinnedSlots {
 public:
  PinnedSlots(const DriverApi& api, size_t bytes, size_t most)
      : api_(api), bytes_(bytes), most_(most) {}

  size_t bytes() const { return bytes_; }
  Result<PinnedSlot> Take();
  void Give(PinnedSlot slot);

 private:
  const DriverApi& api_;
  size_t bytes_, most_;
  std::mutex mutex_;
  std::deque<PinnedSlot> free_;  // those that the device is done with first, first
  size_t made_ = 0;
};

}  // namespace tokamak::cuda
