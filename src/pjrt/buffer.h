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

// PJRT buffers: reference-counted storage with events for its readiness.

namespace tokamak {

// A spin lock for critical sections of a few instructions.
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

// Dimensions without a heap allocation for the usual ranks.
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

// References that keep a buffer's contents alive during work on them.
struct HeldBuffer {
  Ref<Storage> storage;
  Ref<Event> ready;  // fires when the bytes are valid
  // Device memory only; fires before `ready`: the work that produces the bytes has been enqueued,
  // so that later work on the device sees them. Empty: use `ready`.
  Ref<Event> issued = {};
  // Fires when work that uses the bytes may be enqueued.
  const Ref<Event>& usable() const { return issued ? issued : ready; }
};

// The caller's handle of an array on a device. Threads may use and delete it concurrently.
struct PJRT_Buffer {
  PJRT_Buffer(PJRT_Memory* in, ElementType element_type, std::span<const int64_t> shape,
              HeldBuffer contents);
  ~PJRT_Buffer() = default;

  // Returns TK6102 if it was deleted or donated.
  Result<HeldBuffer> Hold();
  // Holds the contents and marks the buffer as deleted.
  Result<HeldBuffer> Take();
  void Delete();

  Ref<PJRT_Client> client;
  PJRT_Memory* memory;
  ElementType type;
  InlineDims dims;
  size_t bytes;
  std::atomic<bool> deleted{false};
  std::atomic<int> external_references{0};

  SpinLock lock;  // guards the members below
  Ref<Storage> storage;
  Ref<Event> ready, issued;  // stay valid after deletion
  Ref<Storage> external_hold;
};

// The size of an array in bytes, or TK6110.
Result<size_t> BytesOfArray(ElementType type, std::span<const int64_t> dims);

}  // namespace tokamak
