#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/ref.h"
#include "support/result.h"

namespace tokamak {

class Device;

// Bytes of one memory that buffers take, for whoever asks. Outlives every storage.
struct MemoryCounter {
  std::atomic<int64_t> in_use{0}, peak{0}, allocations{0}, largest{0};
  void Add(int64_t bytes);
  void Remove(int64_t bytes) { in_use.fetch_sub(bytes, std::memory_order_relaxed); }
};

inline constexpr size_t kAlignment = 64;

// The bytes of a buffer: our own, or borrowed from the host. Held by the buffers that show them and
// by the work that reads them, so a deleted buffer does not pull them away from under anybody.
class Storage final : public RefCounted {
 public:
  // Aligned to kAlignment, not initialised: memory of HostAllocator where it is much. TK5002 when
  // the machine has no more.
  static Result<Ref<Storage>> Allocate(size_t bytes, MemoryCounter* counter);
  // The same, but its memory is only taken when somebody asks for it (Provide), if it is much: what
  // many calls that wait in a row give is not all there at once, and each writes where the one
  // before has just been.
  static Result<Ref<Storage>> Promise(size_t bytes, MemoryCounter* counter);
  // In the memory of a device, for `user`, which is told to whom there is no more: TK4204.
  static Result<Ref<Storage>> AllocateOn(Device& device, size_t bytes, std::string_view user);
  // Takes the memory, if that was not done. TK5002. Any thread may ask.
  Status Provide();
  // Bytes of somebody else; `release(user)` runs when the last hold goes. `writable`: a program may
  // write there.
  using ReleaseFn = void (*)(void* user);
  static Ref<Storage> Borrow(void* data, size_t bytes, bool writable, ReleaseFn release, void* user,
                             Device* device = nullptr);

  // Null while it is but promised.
  std::byte* data() const { return data_.load(std::memory_order_acquire); }
  size_t size() const { return size_; }
  // Whose memory it is; null: the host's.
  Device* device() const { return device_; }
  bool writable() const { return writable_; }

  // A hold of work that will fill the bytes, and that every reader waits for.
  void AddWriter() {
    AddRef();
    writers_.fetch_add(1, std::memory_order_relaxed);
  }
  void ReleaseWriter() {
    writers_.fetch_sub(1, std::memory_order_release);
    Release();
  }
  // The asker's hold is the only one, but for those who wrote before: what waited for them may
  // write.
  bool MayBeTakenOver() const {
    // Holds first: a writer that leaves between the two makes the answer "no".
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
