#include "runtime/storage.h"

#include <cstdlib>
#include <new>
#include <string>

#include "runtime/device.h"
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

Error NoMemory(size_t bytes) {
  return MakeError(ErrorCode::kOutOfMemory,
                   "buffer: " + std::to_string(bytes) + " bytes cannot be allocated");
}

}  // namespace

void MemoryCounter::Add(int64_t bytes) {
  int64_t now = in_use.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  allocations.fetch_add(1, std::memory_order_relaxed);
  RaiseTo(peak, now);
  RaiseTo(largest, bytes);
}

Result<Ref<Storage>> Storage::Promise(size_t bytes, MemoryCounter* counter) {
  if (bytes >= HostAllocator::kLarge) {
    auto* storage = new Storage(nullptr, bytes, true);
    storage->owner_ = Owner::kAllocator;
    storage->counter_ = counter;
    if (counter != nullptr) counter->Add(static_cast<int64_t>(bytes));
    return Ref<Storage>::Adopt(storage);
  }
  // Object and bytes in one allocation: small buffers are created with every call.
  constexpr size_t kHead = RoundUp(sizeof(Storage));
  void* block = std::aligned_alloc(kAlignment, RoundUp(kHead + bytes));
  if (block == nullptr) return NoMemory(bytes);
  auto* storage = new (block) Storage(static_cast<std::byte*>(block) + kHead, bytes, true);
  storage->owner_ = Owner::kThis;
  storage->counter_ = counter;
  if (counter != nullptr) counter->Add(static_cast<int64_t>(bytes));
  return Ref<Storage>::Adopt(storage);
}

Status Storage::Provide() {
  if (data() != nullptr) return Ok();
  auto* made = static_cast<std::byte*>(HostAllocator::OfProcess().Allocate(size_));
  if (made == nullptr) return NoMemory(size_);
  std::byte* none = nullptr;
  if (!data_.compare_exchange_strong(none, made, std::memory_order_acq_rel))
    HostAllocator::OfProcess().Free(made, size_);  // another thread was first
  return Ok();
}

Result<Ref<Storage>> Storage::Allocate(size_t bytes, MemoryCounter* counter) {
  TOK_TRY(Ref<Storage> storage, Promise(bytes, counter));
  TOK_RETURN_IF_ERROR(storage->Provide());
  return storage;
}

Result<Ref<Storage>> Storage::AllocateOn(Device& device, size_t bytes, std::string_view user) {
  TOK_TRY(void* allocated, device.Allocate(bytes, user));
  auto* storage = new Storage(static_cast<std::byte*>(allocated), bytes, true);
  storage->owner_ = Owner::kDevice;
  storage->device_ = &device;
  return Ref<Storage>::Adopt(storage);
}

Ref<Storage> Storage::Borrow(void* data, size_t bytes, bool writable, ReleaseFn release, void* user,
                             Device* device) {
  auto* storage = new Storage(static_cast<std::byte*>(data), bytes, writable);
  storage->release_ = release;
  storage->user_ = user;
  storage->device_ = device;
  return Ref<Storage>::Adopt(storage);
}

Storage::~Storage() {
  if (counter_ != nullptr) counter_->Remove(static_cast<int64_t>(size_));
  if (release_ != nullptr) release_(user_);
}

void Storage::Dispose() {
  if (owner_ != Owner::kThis) {
    if (owner_ == Owner::kAllocator) HostAllocator::OfProcess().Free(data(), size_);
    if (owner_ == Owner::kDevice) device_->Free(data());
    delete this;
    return;
  }
  this->~Storage();
  std::free(this);
}

}  // namespace tokamak
