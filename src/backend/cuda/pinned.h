#pragma once

#include <cstddef>
#include <deque>
#include <mutex>

#include "backend/cuda/driver_api.h"
#include "support/result.h"

// Page-locked staging buffers for copies between host and device.
namespace tokamak::cuda {

// Host memory that the device reads and writes by DMA.
struct PinnedSlot {
  void* data = nullptr;
  Handle event = nullptr;
  bool is_pending = false;  // the device may use it until the event has completed
};

// Slots of one size, allocated on demand, at most `most`; Take blocks while all are in use.
class PinnedSlots {
 public:
  PinnedSlots(const DriverApi& api, size_t bytes, size_t most)
      : api_(api), bytes_(bytes), most_(most) {}

  size_t bytes() const { return bytes_; }
  Result<PinnedSlot> Take();
  void Release(PinnedSlot slot);

 private:
  const DriverApi& api_;
  size_t bytes_, most_;
  std::mutex mutex_;
  std::deque<PinnedSlot> free_;  // in the order in which the device finishes with them
  size_t made_ = 0;
};

}  // namespace tokamak::cuda
