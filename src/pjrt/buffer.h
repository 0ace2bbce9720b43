#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ir/element_type.h"
#include "ir/shape.h"
#include "pjrt/abi.h"
#include "pjrt/client.h"
#include "runtime/event.h"
#include "runtime/storage.h"
#include "support/result.h"

namespace tokamak {

// A lock for a few instructions.
class SpinLock {
 public:
  void lock() {
    while (flag_.test_and_set(std::memory_order_acquire)) {
    }
  }
  void unlock() { flag_.clear(std::memory_order_release); }

 private:
  std::atomic_flag flag_;
};

// Dimensions without an allocation for the usual ranks.
class InlineDims {
 public:
  explicit InlineDims(std::span<const int64_t> dims) : size_(dims.size()) {
    if (size_ > few_.size()) many_.reset(new int64_t[size_]);
    std::copy(dims.begin(), dims.end(), many_ ? many_.get() : few_.data());
  }
  std::span<const int64_t> span() const { return {many_ ? many_.get() : few_.data(), size_}; }

 private:
  size_t size_;
  std::array<int64_t, 6> few_{};
  std::unique_ptr<int64_t[]> many_;
};

// What work needs of a buffer, for as long as it needs it.
struct HeldBuffer {
  Ref<Storage> storage;
  Ref<Event> ready;  // the bytes are there
  // Of a device's memory, earlier: the device has been asked for the bytes, and whatever it is
  // asked for later finds them. Empty: when they are ready.
  Ref<Event> issued = {};
  // When work that uses the bytes may be asked for.
  const Ref<Event>& usable() const { return issued ? issued : ready; }
};

// The caller's handle of an array on a device. May be used and deleted by several threads at a
// time.
struct PJRT_Buffer {
  PJRT_Buffer(PJRT_Memory* in, ElementType element_type, std::span<const int64_t> shape,
              HeldBuffer contents);
  ~PJRT_Buffer() = default;

  // TK6102 when it was deleted or donated.
  Result<HeldBuffer> Hold();
  // Hold, and it counts as deleted from here on.
  Result<HeldBuffer> Take();
  void Delete();

  Ref<PJRT_Client> client;
  PJRT_Memory* memory;
  ElementType type;
  InlineDims dims;
  size_t bytes;
  std::atomic<bool> deleted{false};
  std::atomic<int> external_references{0};

  SpinLock lock;  // of what follows
  Ref<Storage> storage;
  Ref<Event> ready, issued;  // stay after deletion
  Ref<Storage> external_hold;
};

// The size of an array, or TK6110.
Result<size_t> BytesOfArray(ElementType type, std::span<const int64_t> dims);

}  // namespace tokamak
