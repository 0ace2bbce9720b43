// Buffers created without a host array, and small objects of the ABI.

#include <cstring>

#include "pjrt/buffer.h"
#include "pjrt/event.h"
#include "pjrt/slots.h"

namespace tokamak {

// Objects to which callers attach their own data; the plugin stores none.
struct PJRT_ExecuteContext {};
struct PJRT_AsyncTrackingEvent {};

namespace {

struct ArrayKind {
  ElementType type;
  std::span<const int64_t> dims;
  size_t bytes;
};

Result<ArrayKind> KindOfArray(PJRT_Buffer_Type type, const int64_t* dims, size_t num_dims) {
  std::optional<ElementType> element = TypeFromPjrt(type);
  if (!element)
    return MakeError(ErrorCode::kHostBuffer, "buffer: element type " + std::to_string(type) +
                                                 " of the PJRT ABI is not supported for buffers");
  ArrayKind kind{*element, {dims, num_dims}, 0};
  TOK_TRY(kind.bytes, BytesOfArray(kind.type, kind.dims));
  return kind;
}

// Whether a layout is row-major or unspecified.
bool IsPlain(const PJRT_Buffer_MemoryLayout* layout, size_t rank) {
  if (layout == nullptr) return true;
  if (layout->type != PJRT_Buffer_MemoryLayout_Type_Tiled || layout->tiled.num_tiles != 0 ||
      layout->tiled.minor_to_major_size != rank)
    return false;
  for (size_t i = 0; i < rank; ++i)
    if (layout->tiled.minor_to_major[i] != static_cast<int64_t>(rank - 1 - i)) return false;
  return true;
}

PJRT_Memory* MemoryOf(PJRT_Client* client, PJRT_Device* device, PJRT_Memory* memory) {
  if (memory != nullptr) return memory;
  return (device != nullptr ? device : client->devices[0])->memories[0];
}

Error LayoutError() {
  return MakeError(ErrorCode::kHostBuffer, "buffer: the layout is not row-major");
}

// Keeps the owner of the memory of a view alive.
struct ViewOwner {
  void* data;
  void (*on_delete)(void*, void*);
  void* user;
};

void ReleaseView(void* user) {
  std::unique_ptr<ViewOwner> owner(static_cast<ViewOwner*>(user));
  if (owner->on_delete != nullptr) owner->on_delete(owner->data, owner->user);
}

}  // namespace

PJRT_Error* PJRT_Client_CreateViewOfDeviceBuffer(PJRT_Client_CreateViewOfDeviceBuffer_Args& args) {
  if (Status running = args.client->CheckRunning(); !running.ok()) return Fail(running.error());
  TOK_PJRT_TRY(ArrayKind kind, KindOfArray(args.element_type, args.dims, args.num_dims));
  if (!IsPlain(args.layout, args.num_dims)) return Fail(LayoutError());
  PJRT_Memory* given = TOK_PJRT_HOLDS(args, memory) ? args.memory : nullptr;
  auto* owner =
      new ViewOwner{args.device_buffer_ptr, args.on_delete_callback, args.on_delete_callback_arg};
  PJRT_Memory* memory = MemoryOf(args.client, args.device, given);
  Ref<Storage> storage =
      Storage::Borrow(args.device_buffer_ptr, kind.bytes, false, ReleaseView, owner, memory->on);
  args.buffer = new PJRT_Buffer(memory, kind.type, kind.dims, {std::move(storage), Event::Ready()});
  return nullptr;
}

PJRT_Error* PJRT_Client_CreateUninitializedBuffer(
    PJRT_Client_CreateUninitializedBuffer_Args& args) {
  if (Status running = args.client->CheckRunning(); !running.ok()) return Fail(running.error());
  TOK_PJRT_TRY(ArrayKind kind,
               KindOfArray(args.shape_element_type, args.shape_dims, args.shape_num_dims));
  if (!IsPlain(args.shape_layout, args.shape_num_dims)) return Fail(LayoutError());
  PJRT_Memory* memory = MemoryOf(args.client, args.device, args.memory);
  TOK_PJRT_TRY(Ref<Storage> storage, memory->Allocate(kind.bytes, "an empty buffer"));
  if (memory->on == nullptr) {
    std::memset(storage->data(), 0, kind.bytes);
  } else if (Status filled = memory->on->Fill(storage->data(), 0, kind.bytes); !filled.ok()) {
    return Fail(filled.error());
  }
  args.buffer = new PJRT_Buffer(memory, kind.type, kind.dims, {std::move(storage), Event::Ready()});
  return nullptr;
}

PJRT_Error* PJRT_Client_CreateErrorBuffer(PJRT_Client_CreateErrorBuffer_Args& args) {
  TOK_PJRT_TRY(ArrayKind kind,
               KindOfArray(args.shape_element_type, args.shape_dims, args.shape_num_dims));
  PJRT_Memory* memory = MemoryOf(args.client, nullptr, args.memory);
  TOK_PJRT_TRY(Ref<Storage> storage, Storage::Allocate(0, memory->counter));
  SharedError error = ErrorFromCaller(args.error_code, args.error_message, args.error_message_size);
  args.buffer = new PJRT_Buffer(memory, kind.type, kind.dims,
                                {std::move(storage), Event::Failed(std::move(error))});
  return nullptr;
}

// The same bytes with another type and other dimensions.
PJRT_Error* PJRT_Buffer_Bitcast(PJRT_Buffer_Bitcast_Args& args) {
  TOK_PJRT_TRY(ArrayKind kind, KindOfArray(args.element_type, args.dims, args.num_dims));
  if (!IsPlain(args.device_layout, args.num_dims)) return Fail(LayoutError());
  if (kind.bytes != args.buffer->bytes)
    return Fail(ErrorCode::kHostBuffer, "buffer: it has " + std::to_string(args.buffer->bytes) +
                                            " bytes, but the requested type has " +
                                            std::to_string(kind.bytes));
  TOK_PJRT_TRY(HeldBuffer held, args.buffer->Hold());
  args.out_buffer = new PJRT_Buffer(args.buffer->memory, kind.type, kind.dims, std::move(held));
  return nullptr;
}

PJRT_Error* PJRT_ExecuteContext_Create(PJRT_ExecuteContext_Create_Args& args) {
  args.context = new PJRT_ExecuteContext;
  return nullptr;
}

PJRT_Error* PJRT_ExecuteContext_Destroy(PJRT_ExecuteContext_Destroy_Args& args) {
  delete args.context;
  return nullptr;
}

PJRT_Error* PJRT_Device_CreateAsyncTrackingEvent(PJRT_Device_CreateAsyncTrackingEvent_Args& args) {
  args.event = new PJRT_AsyncTrackingEvent;
  return nullptr;
}

PJRT_Error* PJRT_AsyncTrackingEvent_Destroy(PJRT_AsyncTrackingEvent_Destroy_Args& args) {
  delete args.event;
  return nullptr;
}

// Executions cannot be poisoned by the caller.
PJRT_Error* PJRT_Device_PoisonExecution(PJRT_Device_PoisonExecution_Args& args) {
  args.poisoned = false;
  return nullptr;
}

}  // namespace tokamak
