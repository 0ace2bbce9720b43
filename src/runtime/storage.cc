#include "runtime/storage.h"

#include <cstdlib>
#include <new>
#include <string>

#include "runtime/host_allocator.h"

namespace tokamak {
namespace {

constexpr size_t RoundUp(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

void RaiseTo(std::atomic<int64_t>& peak, int64_t value) {
  int64_t seen = peak.load(std::memory_order_relaxed);
  while (seen < value && !peak.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

void MemoryCounter::Add(int64_t bytes) {
  int64_t now = in_use.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  allocations.fetch_add(1, std::memory_order_relaxed);
  RaiseTo(peak, now);
  RaiseTo(largest, bytes);
}

Result<Ref<Storage>> Storage::Allocate(size_t bytes, MemoryCounter* counter) {
  // Object and bytes in one allocation: small buffers come and go with every call.
  constexpr size_t kHead = RoundUp(sizeof(Storage));
  bool is_large = bytes >= HostAllocator::kLarge;
  void* block = is_large ? HostAllocator::OfProcess().Allocate(bytes)
                         : std::aligned_alloc(kAlignment, RoundUp(kHead + bytes));
  if (block == nullptr)
    return MakeError(ErrorCode::kOutOfMemory,
                     "buffer: " + std::to_string(bytes) + " bytes cannot be had from the machine");
  auto* data = static_cast<std::byte*>(block);
  Storage* storage = nullptr;
  if (is_large) {
    storage = new Storage(data, bytes, true);
    storage->owner_ = Owner::kAllocator;
  } else {
    storage = new (block) Storage(data + kHead, bytes, true);
    storage->owner_ = Owner::kThis;
  }
  storage->counter_ = counter;
  if (counter != nullptr) counter->Add(static_cast<int64_t>(bytes));
  return Ref<Storage>::Adopt(storage);
}

Ref<Storage> Storage::Borrow(void* data, size_t bytes, bool writable, ReleaseFn release,
                             void* user) {
  auto* storage = new Storage(static_cast<std::byte*>(data), bytes, writable);
  storage->release_ = release;
  storage->user_ = user;
  return Ref<Storage>::Adopt(storage);
}

Storage::~Storage() {
  if (counter_ != nullptr) counter_->Remove(static_cast<int64_t>(size_));
  if (release_ != nullptr) release_(user_);
}

void Storage::Dispose() {
  if (owner_ != Owner::kThis) {
    if (owner_ == Owner::kAllocator) HostAllocator::OfProcess().Free(data_, size_);
    delete this;
    return;
  }
  this->~Storage();
  std::free(this);
}

}  // namespace tokamak
