#include "pjrt/buffer.h"

#include <algorithm>
#include <mutex>

#include "pjrt/event.h"
#include "pjrt/slots.h"

namespace tokamak {
namespace {

Error DeletedError() {
  return MakeError(ErrorCode::kBufferDeleted, "buffer: it was deleted or donated before");
}

size_t KnownBytes(ElementType type, std::span<const int64_t> dims) {
  size_t bytes = static_cast<size_t>(BytesOf(type));
  for (int64_t dim : dims) bytes *= static_cast<size_t>(dim);
  return bytes;
}

}  // namespace

Result<size_t> BytesOfArray(ElementType type, std::span<const int64_t> dims) {
  Dims list(dims.begin(), dims.end());
  std::optional<int64_t> count = CheckedElementCount(list);
  if (!count || *count > kMaxElements / 16)
    return MakeError(ErrorCode::kHostBuffer,
                     "buffer: a dimension is negative, or there are too many elements");
  return static_cast<size_t>(*count) * static_cast<size_t>(BytesOf(type));
}

PJRT_Buffer::PJRT_Buffer(PJRT_Memory* in, ElementType element_type, std::span<const int64_t> shape,
                         HeldBuffer contents)
    : client(Ref<PJRT_Client>::Share(in->client)),
      memory(in),
      type(element_type),
      dims(shape),
      bytes(KnownBytes(element_type, shape)),
      storage(std::move(contents.storage)),
      ready(std::move(contents.ready)),
      issued(std::move(contents.issued)) {}

Result<HeldBuffer> PJRT_Buffer::Hold() {
  std::lock_guard<SpinLock> guard(lock);
  if (!storage) return DeletedError();
  return HeldBuffer{storage, ready, issued};
}

Result<HeldBuffer> PJRT_Buffer::Take() {
  std::lock_guard<SpinLock> guard(lock);
  if (!storage) return DeletedError();
  deleted.store(true, std::memory_order_release);
  return HeldBuffer{std::move(storage), ready, issued};
}

void PJRT_Buffer::Delete() {
  Ref<Storage> dropped;  // destroyed outside the lock: it may call the host's release function
  std::lock_guard<SpinLock> guard(lock);
  deleted.store(true, std::memory_order_release);
  dropped = std::move(storage);
}

PJRT_Error* PJRT_Buffer_Destroy(PJRT_Buffer_Destroy_Args& args) {
  delete args.buffer;
  return nullptr;
}

PJRT_Error* PJRT_Buffer_ElementType(PJRT_Buffer_ElementType_Args& args) {
  args.type = TypeToPjrt(args.buffer->type);
  return nullptr;
}

PJRT_Error* PJRT_Buffer_Dimensions(PJRT_Buffer_Dimensions_Args& args) {
  args.dims = args.buffer->dims.span().data();
  args.num_dims = args.buffer->dims.span().size();
  return nullptr;
}

PJRT_Error* PJRT_Buffer_UnpaddedDimensions(PJRT_Buffer_UnpaddedDimensions_Args& args) {
  args.unpadded_dims = args.buffer->dims.span().data();
  args.num_dims = args.buffer->dims.span().size();
  return nullptr;
}

PJRT_Error* PJRT_Buffer_DynamicDimensionIndices(PJRT_Buffer_DynamicDimensionIndices_Args& args) {
  args.dynamic_dim_indices = nullptr;
  args.num_dynamic_dims = 0;
  return nullptr;
}

// Row-major, for any supported rank.
PJRT_Error* PJRT_Buffer_GetMemoryLayout(PJRT_Buffer_GetMemoryLayout_Args& args) {
  static const auto* descending = [] {
    auto* order = new std::array<int64_t, kMaxRank>;
    for (size_t i = 0; i < order->size(); ++i) (*order)[i] = static_cast<int64_t>(kMaxRank - 1 - i);
    return order;
  }();
  size_t rank = args.buffer->dims.span().size();
  args.layout = {};
  args.layout.struct_size = kStructSize<PJRT_Buffer_MemoryLayout>;
  args.layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  args.layout.tiled.struct_size = kStructSize<PJRT_Buffer_MemoryLayout_Tiled>;
  args.layout.tiled.minor_to_major =
      descending->data() + (kMaxRank - std::min<size_t>(rank, kMaxRank));
  args.layout.tiled.minor_to_major_size = rank;
  return nullptr;
}

PJRT_Error* PJRT_Buffer_OnDeviceSizeInBytes(PJRT_Buffer_OnDeviceSizeInBytes_Args& args) {
  args.on_device_size_in_bytes = args.buffer->bytes;
  return nullptr;
}

PJRT_Error* PJRT_Buffer_Device(PJRT_Buffer_Device_Args& args) {
  args.device = args.buffer->memory->device;
  return nullptr;
}

PJRT_Error* PJRT_Buffer_Memory(PJRT_Buffer_Memory_Args& args) {
  args.memory = args.buffer->memory;
  return nullptr;
}

PJRT_Error* PJRT_Buffer_Delete(PJRT_Buffer_Delete_Args& args) {
  args.buffer->Delete();
  return nullptr;
}

PJRT_Error* PJRT_Buffer_IsDeleted(PJRT_Buffer_IsDeleted_Args& args) {
  args.is_deleted = args.buffer->deleted.load(std::memory_order_acquire);
  return nullptr;
}

// The bytes are in host memory, but JAX must not read them directly: they may not be ready.
PJRT_Error* PJRT_Buffer_IsOnCpu(PJRT_Buffer_IsOnCpu_Args& args) {
  args.is_on_cpu = false;
  return nullptr;
}

PJRT_Error* PJRT_Buffer_ReadyEvent(PJRT_Buffer_ReadyEvent_Args& args) {
  args.event = ReturnEvent(args.buffer->ready);
  return nullptr;
}

PJRT_Error* PJRT_Buffer_UnsafePointer(PJRT_Buffer_UnsafePointer_Args& args) {
  TOK_PJRT_TRY(HeldBuffer held, args.buffer->Hold());
  if (Status there = held.storage->Provide(); !there.ok()) return Fail(there.error());
  args.buffer_pointer = reinterpret_cast<uintptr_t>(held.storage->data());
  return nullptr;
}

PJRT_Error* PJRT_Buffer_OpaqueDeviceMemoryDataPointer(
    PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args& args) {
  TOK_PJRT_TRY(HeldBuffer held, args.buffer->Hold());
  if (Status there = held.storage->Provide(); !there.ok()) return Fail(there.error());
  args.device_memory_ptr = held.storage->data();
  return nullptr;
}

// While external references exist, the bytes stay allocated and are not overwritten.
PJRT_Error* PJRT_Buffer_IncreaseExternalReferenceCount(
    PJRT_Buffer_IncreaseExternalReferenceCount_Args& args) {
  PJRT_Buffer& buffer = *args.buffer;
  std::lock_guard<SpinLock> guard(buffer.lock);
  if (buffer.external_references == 0) {
    if (!buffer.storage) return Fail(DeletedError());
    buffer.external_hold = buffer.storage;
  }
  ++buffer.external_references;
  return nullptr;
}

PJRT_Error* PJRT_Buffer_DecreaseExternalReferenceCount(
    PJRT_Buffer_DecreaseExternalReferenceCount_Args& args) {
  PJRT_Buffer& buffer = *args.buffer;
  Ref<Storage> dropped;
  std::lock_guard<SpinLock> guard(buffer.lock);
  if (buffer.external_references == 0)
    return Fail(ErrorCode::kBufferDeleted, "buffer: there is no external reference to release");
  if (--buffer.external_references == 0) dropped = std::move(buffer.external_hold);
  return nullptr;
}

}  // namespace tokamak
