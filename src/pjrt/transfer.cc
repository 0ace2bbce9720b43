// Copies between host arrays and buffers, and between memories.

#include <algorithm>
#include <cstring>

#include "pjrt/buffer.h"
#include "pjrt/event.h"
#include "pjrt/slots.h"
#include "pjrt/within_memory.h"
#include "runtime/strided_copy.h"

namespace tokamak {
namespace {

// Bytes: larger copies do not run on the calling thread (chosen).
constexpr size_t kCopyOnCaller = size_t{1} << 20;
// Bytes: smaller arrays are copied even if they could be shared. Holding a host array and notifying
// its owner costs more than copying a page.
constexpr size_t kZeroCopyFromBytes = 4096;

// A function as a one-shot task.
template <typename Fn>
class FnTask final : public Task {
 public:
  explicit FnTask(Fn fn) : fn_(std::move(fn)) {}
  void Run(bool) override {
    fn_();
    delete this;
  }
  ~FnTask() override = default;

 private:
  Fn fn_;
};

// Runs fn immediately if it is little work, otherwise on the pool.
template <typename Fn>
void RunCopy(size_t bytes, Fn fn) {
  if (bytes <= kCopyOnCaller) {
    fn();
  } else {
    Pool().Post(new FnTask<Fn>(std::move(fn)));
  }
}

PJRT_Memory* MemoryOf(PJRT_Device* device, PJRT_Memory* memory) {
  return memory != nullptr ? memory : device != nullptr ? device->memories[0] : nullptr;
}

// The byte strides of an array in a host layout; row-major for null.
Result<Dims> StridesOf(const PJRT_Buffer_MemoryLayout* layout, std::span<const int64_t> dims,
                       size_t width) {
  Dims strides(dims.size());
  DenseStrides(dims, width, strides);
  if (layout == nullptr) return strides;
  Error bad = MakeError(ErrorCode::kHostBuffer,
                        "buffer: the layout of the host array is not a permutation of its "
                        "dimensions, or is tiled");
  if (layout->type == PJRT_Buffer_MemoryLayout_Type_Strides) {
    if (layout->strides.num_byte_strides != dims.size()) return bad;
    std::copy_n(layout->strides.byte_strides, dims.size(), strides.begin());
    return strides;
  }
  const PJRT_Buffer_MemoryLayout_Tiled& tiled = layout->tiled;
  if (tiled.num_tiles != 0 || tiled.minor_to_major_size != dims.size()) return bad;
  std::vector<bool> seen(dims.size(), false);
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t d = tiled.minor_to_major[i];
    if (d < 0 || d >= static_cast<int64_t>(dims.size()) || seen[static_cast<size_t>(d)]) return bad;
    seen[static_cast<size_t>(d)] = true;
  }
  DenseStrides(dims, {tiled.minor_to_major, dims.size()}, width, strides);
  return strides;
}

// Strides of dimensions of size 1 are ignored.
bool IsDense(std::span<const int64_t> dims, std::span<const int64_t> strides, size_t width) {
  auto expected = static_cast<int64_t>(width);
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d] != 1 && strides[d] != expected) return false;
    expected *= dims[d];
  }
  return true;
}

// Releases a host array: its owner may reuse it.
void FireAndRelease(void* user) {
  Ref<Event> event = Ref<Event>::Adopt(static_cast<Event*>(user));
  event->Fire();
}

struct HostArray {
  std::byte* data;
  ElementType type;
  std::span<const int64_t> dims, strides;  // empty strides: row-major
  size_t bytes;
  bool IsDenseArray() const {
    return bytes == 0 || strides.empty() ||
           IsDense(dims, strides, static_cast<size_t>(BytesOf(type)));
  }
};

Result<HostArray> HostArrayOf(const PJRT_Client_BufferFromHostBuffer_Args& args) {
  std::optional<ElementType> type = TypeFromPjrt(args.type);
  if (!type)
    return MakeError(ErrorCode::kHostBuffer, "buffer: element type " + std::to_string(args.type) +
                                                 " of the PJRT ABI is not supported for buffers");
  std::span<const int64_t> dims(args.dims, args.num_dims);
  TOK_TRY(size_t bytes, BytesOfArray(*type, dims));
  if (args.num_byte_strides != 0 && args.num_byte_strides != args.num_dims)
    return MakeError(ErrorCode::kHostBuffer, "buffer: " + std::to_string(args.num_byte_strides) +
                                                 " strides for " + std::to_string(args.num_dims) +
                                                 " dimensions");
  return HostArray{const_cast<std::byte*>(static_cast<const std::byte*>(args.data)), *type, dims,
                   std::span<const int64_t>(args.byte_strides, args.num_byte_strides), bytes};
}

void MakeDense(const HostArray& array, std::byte* to) {
  auto width = static_cast<size_t>(BytesOf(array.type));
  Dims dense(array.dims.size());
  DenseStrides(array.dims, width, dense);
  CopyStrided({to, dense}, {array.data, array.strides}, array.dims, width);
}

Result<Ref<Storage>> CopyIn(const HostArray& array, PJRT_Memory* memory) {
  TOK_TRY(Ref<Storage> storage, memory->Allocate(array.bytes, "arrays of the host"));
  if (array.bytes == 0) return storage;
  if (memory->on != nullptr) {
    std::vector<std::byte> dense;
    const std::byte* from = array.data;
    if (!array.IsDenseArray()) {
      dense.resize(array.bytes);
      MakeDense(array, dense.data());
      from = dense.data();
    }
    TOK_RETURN_IF_ERROR(memory->on->CopyIn(storage->data(), from, array.bytes));
  } else if (array.IsDenseArray()) {
    std::memcpy(storage->data(), array.data, array.bytes);
  } else {
    MakeDense(array, storage->data());
  }
  return storage;
}

// Copies bytes between the host and devices, or within a device. Returns when they have arrived or,
// on a device, when the copy is enqueued. `to_on`, `from_on`: the device that owns the memory, null
// for the host.
Status CopyBytes(std::byte* to, Device* to_on, const std::byte* from, Device* from_on,
                 size_t bytes) {
  if (bytes == 0) return Ok();
  if (from_on != nullptr && to_on != nullptr) return to_on->CopyWithin(to, from, bytes);
  if (from_on != nullptr) return from_on->CopyOut(to, from, bytes);
  if (to_on != nullptr) return to_on->CopyIn(to, from, bytes);
  std::memcpy(to, from, bytes);
  return Ok();
}

// Copies the bytes of a buffer once they are available.
struct CopyOut {
  HeldBuffer from;
  std::byte* to;
  Device* to_on;       // null: `to` is host memory
  Dims dims, strides;  // of `to` if it is strided; otherwise empty
  size_t width, offset, bytes;
  Ref<Event> done;

  bool IsSmallAndDense() const {
    return to_on == nullptr && dims.empty() && bytes > 0 && bytes <= Device::kSmallCopy;
  }

  void Run(SharedError error) {
    if (error == nullptr)
      if (Status status = WithinMemory([&] { return Copy(); }); !status.ok())
        error = std::make_shared<const Error>(std::move(status.error()));
    from = {};
    done->Fire(error);
  }

 private:
  Status Copy() {
    Device* device = from.storage->device();
    const std::byte* data = from.storage->data() + offset;
    if (dims.empty() || bytes == 0) return CopyBytes(to, to_on, data, device, bytes);
    std::vector<std::byte> fetched;
    if (device != nullptr) {
      fetched.resize(bytes);
      TOK_RETURN_IF_ERROR(device->CopyOut(fetched.data(), data, bytes));
      data = fetched.data();
    }
    Dims dense(dims.size());
    DenseStrides(dims, width, dense);
    CopyStrided({to, strides}, {const_cast<std::byte*>(data), dense}, dims, width);
    return Ok();
  }
};

Ref<Event> StartCopyOut(HeldBuffer held, CopyOut copy) {
  size_t bytes = copy.bytes;
  // A copy from a device blocks: do not run it on this thread, unless everything is done.
  bool from_device = held.storage->device() != nullptr;
  Ref<Event> usable = held.usable();
  bool now = bytes <= kCopyOnCaller && (from_device ? held.ready : usable)->HasFired();
  copy.done = MakeRef<Event>();
  Ref<Event> done = copy.done;
  copy.from = std::move(held);
  // Small copies are enqueued on the device behind all earlier work.
  if (from_device && copy.IsSmallAndDense() && usable->HasFired() && usable->error() == nullptr) {
    Device* device = copy.from.storage->device();
    done->Then([held = copy.from](const SharedError&) {});
    device->CopyOutThen(copy.to, copy.from.storage->data() + copy.offset, bytes, copy.done);
    return done;
  }
  if (now) {
    const SharedError* error = copy.from.ready->error();
    copy.Run(error == nullptr ? nullptr : *error);
    return done;
  }
  usable->Then([copy = std::move(copy), bytes, from_device](const SharedError& error) mutable {
    RunCopy(from_device ? SIZE_MAX : bytes,
            [copy = std::move(copy), error]() mutable { copy.Run(error); });
  });
  return done;
}

// Creates a copy of the contents in another memory.
Result<PJRT_Buffer*> CopyTo(PJRT_Buffer& buffer, PJRT_Memory* memory) {
  TOK_RETURN_IF_ERROR(memory->client->CheckRunning());
  TOK_TRY(HeldBuffer held, buffer.Hold());
  TOK_TRY(Ref<Storage> storage, memory->Allocate(buffer.bytes, "copies of buffers"));
  CopyOut copy{{}, storage->data(), memory->on, {}, {}, 1, 0, buffer.bytes, {}};
  storage->AddWriter();
  Ref<Event> done = StartCopyOut(std::move(held), std::move(copy));
  done->Then([writer = storage.get()](const SharedError&) { writer->ReleaseWriter(); });
  return new PJRT_Buffer(memory, buffer.type, buffer.dims.span(), {std::move(storage), done});
}

}  // namespace

PJRT_Error* PJRT_Client_BufferFromHostBuffer(PJRT_Client_BufferFromHostBuffer_Args& args) {
  if (Status running = args.client->CheckRunning(); !running.ok()) return Fail(running.error());
  PJRT_Memory* memory = MemoryOf(args.device, args.memory);
  if (memory == nullptr)
    return Fail(ErrorCode::kUnknownDevice, "buffer: neither a device nor a memory is specified");
  TOK_PJRT_TRY(HostArray array, HostArrayOf(args));
  bool may_share = args.host_buffer_semantics == PJRT_HostBufferSemantics_kImmutableZeroCopy ||
                   args.host_buffer_semantics == PJRT_HostBufferSemantics_kMutableZeroCopy;
  // NumPy arrays are seldom aligned like this. Callers that write to an array after device_put rely
  // on the copy, as with XLA:CPU.
  bool aligned = reinterpret_cast<uintptr_t>(array.data) % kAlignment == 0;
  if (may_share && memory->on == nullptr && aligned && array.bytes >= kZeroCopyFromBytes &&
      array.IsDenseArray()) {
    bool writable = args.host_buffer_semantics == PJRT_HostBufferSemantics_kMutableZeroCopy;
    Ref<Event> released = MakeRef<Event>();
    args.done_with_host_buffer = ReturnEvent(released);
    Ref<Storage> storage =
        Storage::Borrow(array.data, array.bytes, writable, FireAndRelease, released.Detach());
    args.buffer =
        new PJRT_Buffer(memory, array.type, array.dims, {std::move(storage), Event::Ready()});
    return nullptr;
  }
  TOK_PJRT_TRY(Ref<Storage> storage, CopyIn(array, memory));
  args.done_with_host_buffer = ReturnEvent(Event::Ready());
  args.buffer =
      new PJRT_Buffer(memory, array.type, array.dims, {std::move(storage), Event::Ready()});
  return nullptr;
}

PJRT_Error* PJRT_Buffer_ToHostBuffer(PJRT_Buffer_ToHostBuffer_Args& args) {
  PJRT_Buffer& buffer = *args.src;
  auto width = static_cast<size_t>(BytesOf(buffer.type));
  if (args.dst == nullptr) {
    args.dst_size = buffer.bytes;
    return nullptr;
  }
  if (args.dst_size < buffer.bytes)
    return Fail(ErrorCode::kHostBuffer, "buffer: it has " + std::to_string(buffer.bytes) +
                                            " bytes, but the host memory has " +
                                            std::to_string(args.dst_size));
  TOK_PJRT_TRY(Dims strides, StridesOf(args.host_layout, buffer.dims.span(), width));
  if (Status running = buffer.client->CheckRunning(); !running.ok() && WasForked())
    return Fail(running.error());
  TOK_PJRT_TRY(HeldBuffer held, buffer.Hold());
  CopyOut copy{{}, static_cast<std::byte*>(args.dst), nullptr, {}, {}, width, 0, buffer.bytes, {}};
  std::span<const int64_t> dims = buffer.dims.span();
  if (!IsDense(dims, strides, width)) {
    copy.dims.assign(dims.begin(), dims.end());
    copy.strides = std::move(strides);
  }
  args.event = ReturnEvent(StartCopyOut(std::move(held), std::move(copy)));
  return nullptr;
}

PJRT_Error* PJRT_Buffer_CopyRawToHost(PJRT_Buffer_CopyRawToHost_Args& args) {
  PJRT_Buffer& buffer = *args.buffer;
  auto total = static_cast<int64_t>(buffer.bytes);
  if (args.offset < 0 || args.transfer_size < 0 || args.offset > total ||
      args.transfer_size > total - args.offset)
    return Fail(ErrorCode::kHostBuffer, "buffer: " + std::to_string(args.transfer_size) +
                                            " bytes from byte " + std::to_string(args.offset) +
                                            " are requested, but it has " + std::to_string(total));
  TOK_PJRT_TRY(HeldBuffer held, buffer.Hold());
  CopyOut copy{{},
               static_cast<std::byte*>(args.dst),
               nullptr,
               {},
               {},
               1,
               static_cast<size_t>(args.offset),
               static_cast<size_t>(args.transfer_size),
               {}};
  args.event = ReturnEvent(StartCopyOut(std::move(held), std::move(copy)));
  return nullptr;
}

PJRT_Error* PJRT_Buffer_CopyToMemory(PJRT_Buffer_CopyToMemory_Args& args) {
  TOK_PJRT_TRY(args.dst_buffer, CopyTo(*args.buffer, args.dst_memory));
  return nullptr;
}

PJRT_Error* PJRT_Buffer_CopyToDevice(PJRT_Buffer_CopyToDevice_Args& args) {
  TOK_PJRT_TRY(args.dst_buffer, CopyTo(*args.buffer, args.dst_device->memories[0]));
  return nullptr;
}

}  // namespace tokamak
