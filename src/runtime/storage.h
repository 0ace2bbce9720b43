#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/ref.h"
#include "support/result.h"

// Reference-counted storage of buffers, on the host or a device.
namespace tokamak {

class Device;

// Statistics of the memory that buffers use. Must outlive every storage.
struct MemoryCounter {
  std::atomic<int64_t> in_use{0}, peak{0}, allocations{0}, largest{0};
  void Add(int64_t bytes);
  void Remove(int64_t bytes) { in_use.fetch_sub(bytes, std::memory_order_relaxed); }
};

// Bytes: a cache line, and the width of the widest vectors.
inline constexpr size_t kAlignment = 64;

// The bytes of a buffer, owned or borrowed. Referenced by the buffers that view them and by the
// work that reads them, so deleting a buffer does not free memory in use.
class Storage final : public RefCounted {
 public:
  // Aligned to kAlignment, not initialised; large ones come from HostAllocator. Returns TK5002 if
  // out of memory.
  static Result<Ref<Storage>> Allocate(size_t bytes, MemoryCounter* counter);
  // Allocates lazily, on Provide, if the storage is large. A sequence of queued calls then does not
  // hold the memory of all its results at once, and each call writes memory that the one before has
  // just used (and is in the cache).
  static Result<Ref<Storage>> Promise(size_t bytes, MemoryCounter* counter);
  // In the memory of a device. `user` names the purpose in the message of TK4204.
  static Result<Ref<Storage>> AllocateOn(Device& device, size_t bytes, std::string_view user);
  // Allocates the memory unless that was done. TK5002. Thread-safe.
  Status Provide();
  // Borrowed bytes; `release(user)` runs when the last reference is dropped. `writable`: a program
  // may write to them.
  using ReleaseFn = void (*)(void* user);
  static Ref<Storage> Borrow(void* data, size_t bytes, bool writable, ReleaseFn release, void* user,
                             Device* device = nullptr);

  // Null until a lazily allocated storage is provided.
  std::byte* data() const { return data_.load(std::memory_order_acquire); }
  size_t size() const { return size_; }
  // The device of the memory; null: the host.
  Device* device() const { return device_; }
  bool writable() const { return writable_; }

  // A reference held by work that will fill the bytes; every reader waits for it.
  void AddWriter() {
    AddRef();
    writers_.fetch_add(1, std::memory_order_relaxed);
  }
  void ReleaseWriter() {
    writers_.fetch_sub(1, std::memory_order_release);
    Release();
  }
  // Whether the caller's reference is the only one, apart from earlier writers: work that waited
  // for them may overwrite the bytes.
  bool CanReuse() const {
    // References first: a writer that leaves between the two loads makes the answer false.
    int32_t holds = HoldCount();
    return writable_ && holds <= 1 + writers_.load(std::memory_order_acquire);
  }

 private:
  Storage(std::byte* data, size_t size, bool writable)
      : data_(data), size_(size), writable_(writable) {}
  ~Storage() override;
  void Dispose() override;

  std::atomic<std::byte*> data_;
  size_t size_;
  bool writable_;
  std::atomic<int32_t> writers_{0};
  enum class Owner : uint8_t { kSomebody, kThis, kAllocator, kDevice };
  Owner owner_ = Owner::kSomebody;  // kThis: the bytes follow this object in one allocation
  MemoryCounter* counter_ = nullptr;
  Device* device_ = nullptr;
  ReleaseFn release_ = nullptr;
  void* user_ = nullptr;
};

}  // namespace tokamak
