#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/block_allocator.h"
#include "runtime/event.h"
#include "support/result.h"

namespace tokamak {

struct DeviceInfo {
  std::string name;      // "NVIDIA H200"
  std::string versions;  // "sm_90, CUDA 13.0"
  int multiprocessors = 1;
  int64_t memory_bytes = 0;
  // What it says of itself; 0: nothing.
  int compute_major = 0;                    // of its compute capability
  int clock_khz = 0, memory_clock_khz = 0;  // at most
  int memory_bus_bits = 0, l2_bytes = 0;
  int threads = 0, registers = 0, shared_bytes = 0;  // of a multiprocessor
};

// A device with memory that the host cannot touch. What it is asked to do goes into one queue, and
// is done in the order in which it was asked: memory may be freed as soon as all that uses it has
// been asked for. A fault of the device stays: all that is asked for later gives it again. Any
// thread may call any of this.
class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;

  // Aligned to 256 bytes. `user` says what for, in TK4204.
  virtual Result<void*> Allocate(size_t bytes, std::string_view user) = 0;
  virtual void Free(void* memory) = 0;
  virtual BlockStats MemoryStats() const = 0;
  virtual void ClearMemoryPeaks() = 0;

  // `from` is the host's, and free again when this returns.
  virtual Status CopyIn(void* to, const void* from, size_t bytes) = 0;
  virtual Status CopyWithin(void* to, const void* from, size_t bytes) = 0;
  virtual Status Fill(void* to, uint8_t byte, size_t bytes) = 0;
  // After all that was asked for before; the bytes are there when this returns.
  virtual Status CopyOut(void* to, const void* from, size_t bytes) = 0;

  // The same without waiting: the event fires, on a thread of the device, when the bytes are there.
  // Memory at both ends must stay until then.
  virtual void CopyOutThen(void* to, const void* from, size_t bytes, Ref<Event> event) = 0;
  // Up to so many bytes it does not wait in between, either.
  static constexpr size_t kSmallCopy = size_t{64} << 10;

  // Fires the event, on a thread of the device, when all that was asked for before has been done.
  virtual void FireWhenDone(Ref<Event> event) = 0;
  virtual Status Synchronize() = 0;
};

// Memory of a device, freed with this.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  static Result<DeviceMemory> Take(Device& device, size_t bytes, std::string_view user) {
    TOK_TRY(void* taken, device.Allocate(bytes, user));
    DeviceMemory memory;
    memory.device_ = &device;
    memory.data_ = taken;
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
