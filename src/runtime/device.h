#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/block_allocator.h"
#include "runtime/event.h"
#include "support/result.h"

// The interface of a device with separate memory: allocation, copies and completion events.
namespace tokamak {

struct DeviceInfo {
  std::string name;  // "NVIDIA H200"
  int multiprocessors = 1;
  int64_t memory_bytes = 0;
  // Properties reported by the device; 0 if not reported.
  int compute_major = 0;                    // of its compute capability
  int clock_khz = 0, memory_clock_khz = 0;  // maximum
  int memory_bus_bits = 0, l2_bytes = 0;
  int threads = 0, registers = 0, shared_bytes = 0;  // per SM
};

// A device with memory that the host cannot access. All work goes into one in-order queue, so
// memory may be freed as soon as all work that uses it has been enqueued. A device error is sticky:
// all later calls return it. Thread-safe.
class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;

  // Aligned to 256 bytes. `user` names the purpose in TK4204.
  virtual Result<void*> Allocate(size_t bytes, std::string_view user) = 0;
  virtual void Free(void* memory) = 0;
  virtual BlockStats MemoryStats() const = 0;
  virtual void ClearMemoryPeaks() = 0;

  // `from` is host memory and may be reused when this returns.
  virtual Status CopyIn(void* to, const void* from, size_t bytes) = 0;
  virtual Status CopyWithin(void* to, const void* from, size_t bytes) = 0;
  virtual Status Fill(void* to, uint8_t byte, size_t bytes) = 0;
  // Runs after all work enqueued before; the bytes have been copied when this returns.
  virtual Status CopyOut(void* to, const void* from, size_t bytes) = 0;

  // Asynchronous CopyOut: fires the event on a thread of the device when the bytes have been
  // copied. The memory at both ends must stay valid until then.
  virtual void CopyOutThen(void* to, const void* from, size_t bytes, Ref<Event> event) = 0;
  // Copies of at most this many bytes do not block the caller even while they are enqueued. Chosen;
  // no measurement on record; small pinned slots have this size.
  static constexpr size_t kSmallCopy = size_t{64} << 10;

  // Fires the event on a thread of the device when all work enqueued before is done.
  virtual void FireWhenDone(Ref<Event> event) = 0;
  virtual Status Synchronize() = 0;
};

// Owns an allocation on a device.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  static Result<DeviceMemory> Take(Device& device, size_t bytes, std::string_view user) {
    TOK_TRY(void* allocated, device.Allocate(bytes, user));
    DeviceMemory memory;
    memory.device_ = &device;
    memory.data_ = allocated;
    return memory;
  }
  DeviceMemory(DeviceMemory&& other) noexcept
      : device_(other.device_), data_(std::exchange(other.data_, nullptr)) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~DeviceMemory() {
    if (data_ != nullptr) device_->Free(data_);
  }
  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  Device* device_ = nullptr;
  void* data_ = nullptr;
};

}  // namespace tokamak
