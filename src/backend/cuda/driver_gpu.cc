// Memory and copies of a GPU through the CUDA driver. Work is enqueued on one stream in program
// order; only large copies to the host use a second stream, which first waits for the work enqueued
// before.
//
//   host array  <->  pinned slot  <->  device       asynchronous copies need pinned memory
//
// A copy to the device returns when the host array has been copied to a slot: the caller may change
// the array, while the transfer is still pending. A slot is reused when its event has completed.
//
// After some errors (kernel faults) a CUDA context is unusable: every later call fails. The first
// such error is kept and returned by Enter, so that all users see the cause, with the names of the
// last launches. has_fault_ only avoids the mutex on the fast path; fault_ is read and written
// under the mutex.

#include "backend/cuda/driver_gpu.h"

#include <algorithm>
#include <cstring>
#include <set>

#include <fmt/format.h>

#include "runtime/host_memory.h"
#include "runtime/thread_pool.h"

namespace tokamak::cuda {
namespace {

// Fraction of the device's memory that we use. Chosen: leaves the rest to the driver and to other
// processes.
constexpr double kFraction = 0.92;
// Bytes and number of pinned slots for small and large copies. Chosen; no measurement on record.
constexpr size_t kSmallSlot = Device::kSmallCopy, kLargeSlot = size_t{4} << 20;
constexpr size_t kSmallSlots = 256, kLargeSlots = 16;
// Oldest supported compute capability (major).
constexpr int kDriverLeastMajor = 8;

Address AddressOf(const void* memory) {
  return reinterpret_cast<uintptr_t>(memory);
}

// Copies with several threads: one thread is slower than the bus, and first touches of pages take
// time.
void CopyOnHost(void* to, const void* from, size_t bytes) {
  // Bytes per task of a parallel copy. Chosen; no measurement on record.
  constexpr int64_t kPinnedChunkBytes = int64_t{1} << 18;
  if (bytes <= static_cast<size_t>(2 * kPinnedChunkBytes)) {
    std::memcpy(to, from, bytes);
    return;
  }
  ThreadPool::OfProcess().For(
      static_cast<int64_t>(bytes), kPinnedChunkBytes, [&](int64_t begin, int64_t end) {
        std::memcpy(static_cast<std::byte*>(to) + begin,
                    static_cast<const std::byte*>(from) + begin, static_cast<size_t>(end - begin));
      });
}

// Errors after which the context is unusable ("sticky" errors of cuda.h).
bool IsForEver(int result) {
  constexpr int kFaults[] = {700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 999};
  return std::find(std::begin(kFaults), std::end(kFaults), result) != std::end(kFaults);
}

}  // namespace

// Uses the primary context, which libraries such as cuBLASLt share. Its streams do not synchronize
// with the default stream.
Result<std::unique_ptr<DriverGpu>> DriverGpu::Open(const DriverApi& driver, int number) {
  const DriverApi* api = &driver;
  auto failed = [&](int result) {
    return MakeError(ErrorCode::kNoDevice,
                     fmt::format("cuda: GPU {} cannot be used: {}", number, api->TextOf(result)));
  };
  int count = 0, device = 0, major = 0, minor = 0;
  if (int result = api->device_count(&count); result != 0) return failed(result);
  if (number >= count)
    return MakeError(ErrorCode::kNoDevice, fmt::format("cuda: the machine has {} GPUs", count));
  Opened opened;
  opened.api = api;
  char name[128] = "";
  size_t bytes = 0;
  for (int result :
       {api->device(&device, number), api->device_name(name, sizeof name, device),
        api->device_memory(&bytes, device), api->device_attribute(&major, kAttributeMajor, device),
        api->device_attribute(&minor, kAttributeMinor, device),
        api->device_attribute(&opened.info.multiprocessors, kAttributeMultiprocessors, device)})
    if (result != 0) return failed(result);
  if (major < kDriverLeastMajor)
    return MakeError(ErrorCode::kNoDevice,
                     fmt::format("cuda: {} is of compute capability {}.{}, needed is {}.0 or later",
                                 name, major, minor, kDriverLeastMajor));
  for (int result : {api->retain_context(&opened.context, device), api->set_current(opened.context),
                     api->create_stream(&opened.stream, kStreamNonBlocking),
                     api->create_stream(&opened.copy_stream, kStreamNonBlocking)})
    if (result != 0) return failed(result);
  // Only estimates depend on these: it is not an error if the driver does not report them.
  for (auto [value, attribute] : {std::pair(&opened.info.clock_khz, kAttributeClock),
                                  std::pair(&opened.info.memory_clock_khz, kAttributeMemoryClock),
                                  std::pair(&opened.info.memory_bus_bits, kAttributeBusWidth),
                                  std::pair(&opened.info.l2_bytes, kAttributeL2),
                                  std::pair(&opened.info.threads, kAttributeThreads),
                                  std::pair(&opened.info.registers, kAttributeRegisters),
                                  std::pair(&opened.info.shared_bytes, kAttributeShared)})
    if (api->device_attribute(value, attribute, device) != 0) *value = 0;
  opened.info.compute_major = major;
  opened.info.name = name;
  opened.info.memory_bytes = static_cast<int64_t>(bytes);
  // All code of a Hopper GPU has its own features: one architecture per device keeps batches and
  // the cache simple.
  opened.architecture = major == 9 && minor == 0 ? kHopper : fmt::format("sm_{}{}", major, minor);
  return std::unique_ptr<DriverGpu>(new DriverGpu(std::move(opened)));
}

DriverGpu::DriverGpu(Opened opened)
    : api_(*opened.api),
      context_(opened.context),
      stream_(opened.stream),
      copy_stream_(opened.copy_stream),
      info_(std::move(opened.info)),
      architecture_(std::move(opened.architecture)),
      blocks_(*this, static_cast<int64_t>(kFraction * static_cast<double>(info_.memory_bytes))),
      small_slots_(api_, kSmallSlot, kSmallSlots),
      large_slots_(api_, kLargeSlot, kLargeSlots),
      completions_(api_, context_, *this) {}

// ---- errors

Status DriverGpu::Enter() {
  if (has_fault_.load(std::memory_order_acquire)) [[unlikely]] {
    std::lock_guard<std::mutex> lock(fault_mutex_);
    return *fault_;
  }
  return Check(api_.set_current(context_), "the context");
}

Status DriverGpu::Check(int result, std::string_view what) {
  if (result == 0) [[likely]]
    return Ok();
  return DeviceError(result, what);
}

Error DriverGpu::DeviceError(int result, std::string_view what) {
  if (result == kOutOfDeviceMemory)
    return MakeError(ErrorCode::kDeviceMemory,
                     fmt::format("cuda: {}: {}", what, api_.TextOf(result)));
  Error error =
      MakeError(ErrorCode::kDeviceFault, fmt::format("cuda: {}: {}", what, api_.TextOf(result)));
  if (!IsForEver(result)) return error;
  size_t count = launches_.load();
  std::string names;
  for (size_t i = 0; i < std::min(count, kRecent); ++i)
    if (const std::string* name = recent_[(count - 1 - i) % kRecent].load())
      names += (names.empty() ? "" : ", ") + *name;
  if (!names.empty()) error.notes.push_back("launched last, the last one first: " + names);
  std::lock_guard<std::mutex> lock(fault_mutex_);
  if (fault_ == nullptr) fault_ = std::make_shared<const Error>(error);
  has_fault_.store(true, std::memory_order_release);
  return *fault_;
}

SharedError DriverGpu::ErrorOf(int result) {
  return std::make_shared<const Error>(DeviceError(result, "the work of a program"));
}

// ---- memory

void* DriverGpu::AllocateSlab(size_t bytes) {
  Address address = 0;
  if (!Enter().ok() || api_.allocate(&address, bytes) != 0) return nullptr;
  return reinterpret_cast<void*>(static_cast<uintptr_t>(address));
}

// Enqueued work may still use the slab.
void DriverGpu::FreeSlab(void* slab, size_t) {
  if (!Enter().ok()) return;
  api_.synchronize(stream_);
  api_.free(AddressOf(slab));
}

// ---- copies

Status DriverGpu::CopyIn(void* to, const void* from, size_t bytes) {
  TOK_RETURN_IF_ERROR(Enter());
  auto* bytes_left = static_cast<const std::byte*>(from);
  Address at = AddressOf(to);
  while (bytes > 0) {
    PinnedSlots& slots = bytes <= kSmallSlot ? small_slots_ : large_slots_;
    size_t chunk = std::min(bytes, slots.bytes());
    TOK_TRY(PinnedSlot slot, slots.Take());
    CopyOnHost(slot.data, bytes_left, chunk);
    int result = api_.copy_in(at, slot.data, chunk, stream_);
    if (result == 0) result = api_.record(slot.event, stream_);
    slot.is_pending = result == 0;
    slots.Release(slot);
    TOK_RETURN_IF_ERROR(Check(result, "a copy to the device"));
    bytes_left += chunk;
    at += chunk;
    bytes -= chunk;
  }
  return Ok();
}

Status DriverGpu::CopyWithin(void* to, const void* from, size_t bytes) {
  if (bytes == 0 || to == from) return Ok();
  TOK_RETURN_IF_ERROR(Enter());
  return Check(api_.copy_within(AddressOf(to), AddressOf(from), bytes, stream_),
               "a copy on the device");
}

Status DriverGpu::Fill(void* to, uint8_t byte, size_t bytes) {
  if (bytes == 0) return Ok();
  TOK_RETURN_IF_ERROR(Enter());
  return Check(api_.fill(AddressOf(to), byte, bytes, stream_), "filling memory");
}

Status DriverGpu::CopyOut(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return Ok();
  TOK_RETURN_IF_ERROR(Enter());
  if (bytes <= kSmallSlot) return CopyOutSmall(to, AddressOf(from), bytes);
  return CopyOutLarge(static_cast<std::byte*>(to), AddressOf(from), bytes);
}

Status DriverGpu::CopyOutSmall(void* to, Address from, size_t bytes) {
  TOK_TRY(PinnedSlot slot, small_slots_.Take());
  int result = api_.copy_out(slot.data, from, bytes, stream_);
  if (result == 0) result = api_.record(slot.event, stream_);
  if (result == 0) result = api_.wait(slot.event);
  if (result == 0) std::memcpy(to, slot.data, bytes);
  small_slots_.Release(slot);
  return Check(result, "a copy from the device");
}

// Uses a separate stream that waits for all work enqueued before; later work proceeds concurrently.
// Double-buffered: while one chunk is copied to the caller's memory, the next is transferred.
Status DriverGpu::CopyOutLarge(std::byte* to, Address from, size_t bytes) {
  std::lock_guard<std::mutex> lock(large_mutex_);
  WishForLargePages(to, bytes);  // usually fresh memory
  PinnedSlot slots[2];
  for (PinnedSlot& slot : slots) {
    Result<PinnedSlot> taken = large_slots_.Take();
    if (!taken.ok()) {
      if (slots[0].data != nullptr) large_slots_.Release(slots[0]);
      return std::move(taken.error());
    }
    slot = taken.value();
  }
  int result = api_.record(slots[0].event, stream_);
  if (result == 0) result = api_.stream_wait(copy_stream_, slots[0].event, 0);
  size_t asked = 0, done = 0;
  for (size_t turn = 0; result == 0 && done < bytes; ++turn) {
    if (asked < bytes) {
      PinnedSlot& slot = slots[turn % 2];
      size_t chunk = std::min(bytes - asked, kLargeSlot);
      result = api_.copy_out(slot.data, from + asked, chunk, copy_stream_);
      if (result == 0) result = api_.record(slot.event, copy_stream_);
      asked += chunk;
    }
    if (result != 0 || turn == 0) continue;
    PinnedSlot& before = slots[(turn - 1) % 2];
    result = api_.wait(before.event);
    size_t chunk = std::min(bytes - done, kLargeSlot);
    if (result == 0) CopyOnHost(to + done, before.data, chunk);
    done += chunk;
  }
  if (result != 0) api_.synchronize(copy_stream_);
  for (const PinnedSlot& slot : slots) large_slots_.Release(slot);
  return Check(result, "a copy from the device");
}

// Small copies are asynchronous: the completion thread copies the slot to `to` and fires the event.
// Fires the event in every case, with an error if the copy fails.
void DriverGpu::CopyOutThen(void* to, const void* from, size_t bytes, Ref<Event> event) {
  auto start = [&]() -> Status {
    TOK_RETURN_IF_ERROR(Enter());
    if (bytes > kSmallCopy || bytes == 0) {
      TOK_RETURN_IF_ERROR(CopyOut(to, from, bytes));
      event->Fire();
      return Ok();
    }
    TOK_TRY(PinnedSlot slot, small_slots_.Take());
    int result = api_.copy_out(slot.data, AddressOf(from), bytes, stream_);
    if (result != 0) small_slots_.Release(slot);
    TOK_RETURN_IF_ERROR(Check(result, "a copy from the device"));
    completions_.Add(stream_, event, {&small_slots_, slot, to, bytes});
    return Ok();
  };
  if (Status status = start(); !status.ok())
    event->Fire(std::make_shared<const Error>(std::move(status.error())));
}

void DriverGpu::FireWhenDone(Ref<Event> event) {
  if (Status status = Enter(); !status.ok()) {
    event->Fire(std::make_shared<const Error>(std::move(status.error())));
  } else {
    completions_.Add(stream_, std::move(event));
  }
}

Status DriverGpu::Synchronize() {
  TOK_RETURN_IF_ERROR(Enter());
  return Check(api_.synchronize(stream_), "the work of a program");
}

Result<Gpu*> OpenGpu() {
  // Never freed: threads may use it until the process ends.
  static const auto* opened = new Result<std::unique_ptr<DriverGpu>>([] {
    Result<const DriverApi*> api = DriverApi::Open();
    return api.ok() ? DriverGpu::Open(*api.value(), 0)
                    : Result<std::unique_ptr<DriverGpu>>(std::move(api.error()));
  }());
  if (!opened->ok()) return opened->error();
  return opened->value().get();
}

}  // namespace tokamak::cuda
