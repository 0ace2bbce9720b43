// Calls of XLA's typed handlers. A call frame is built from the frame of a host call: buffers point
// to its arrays, attributes are laid out as the handler expects them. Tasks that a handler
// schedules on "the thread pool" run immediately on the calling thread.

#include "driver/run/ffi_calls.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>

#include "driver/compile/host_calls.h"
#include "driver/run/ffi_abi.h"

namespace tokamak {
namespace ffi {

struct Error {
  int32_t code;
  std::string message;
};

struct Future {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  Error* error = nullptr;
};

struct ExecutionContext {
  int64_t device = 0;
};

}  // namespace ffi

namespace {

constexpr int32_t kUnimplemented = 12, kResourceExhausted = 8;  // absl::StatusCode values

ffi::Error* MakeFfiError(int32_t code, std::string message) {
  return new ffi::Error{code, std::move(message)};
}
template <int kWhat>
ffi::Error* Unimplemented(ffi::AnyArgs*) {
  constexpr const char* kNames[] = {"registering a handler inside a handler", "a stream",
                                    "an object of the execution context", "state"};
  return MakeFfiError(kUnimplemented,
                      std::string("Tokamak does not support in FFI handlers: ") + kNames[kWhat]);
}

// ---- functions that a handler may call

ffi::Error* CreateError(ffi::ErrorCreateArgs* args) {
  return MakeFfiError(args->code, args->message == nullptr ? "" : args->message);
}
void MessageOfError(ffi::ErrorArgs* args) {
  args->message = args->error->message.c_str();
}
void DestroyError(ffi::ErrorArgs* args) {
  delete args->error;
}
ffi::Error* RegisterType(ffi::TypeArgs* args) {
  static std::atomic<int64_t> next{1};
  if (args->type != nullptr && *args->type == 0) *args->type = next++;
  return nullptr;
}
ffi::Error* AllocateMemory(ffi::MemoryArgs* args) {
  size_t alignment = std::max(args->alignment, sizeof(void*));
  void* data = nullptr;
  if (posix_memalign(&data, alignment, std::max<size_t>(args->size, 1)) != 0)
    return MakeFfiError(kResourceExhausted, "no memory for " + std::to_string(args->size) +
                                                " bytes aligned to " + std::to_string(alignment));
  args->data = data;
  return nullptr;
}
ffi::Error* FreeMemory(ffi::FreeArgs* args) {
  std::free(args->data);
  return nullptr;
}
ffi::Error* Schedule(ffi::ScheduleArgs* args) {
  args->task(args->data);
  return nullptr;
}
ffi::Error* CountThreads(ffi::ThreadsArgs* args) {
  *args->count = 1;
  return nullptr;
}
ffi::Error* CreateFuture(ffi::FutureArgs* args) {
  args->future = new ffi::Future;
  return nullptr;
}
void EndFuture(ffi::Future& future, ffi::Error* error) {
  std::lock_guard<std::mutex> lock(future.mutex);
  future.done = true;
  future.error = error;
  future.changed.notify_all();
}
ffi::Error* SetAvailable(ffi::FutureArgs* args) {
  EndFuture(*args->future, nullptr);
  return nullptr;
}
ffi::Error* SetError(ffi::FutureArgs* args) {
  EndFuture(*args->future, args->error);
  return nullptr;
}
ffi::Error* RunId(ffi::NumberArgs* args) {
  static std::atomic<int64_t> next{1};
  args->number = next++;
  return nullptr;
}
ffi::Error* DeviceOrdinal(ffi::NumberArgs* args) {
  int32_t device = static_cast<int32_t>(args->context->device);
  std::memcpy(&args->number, &device, sizeof(device));  // the caller's field has 32 bits
  return nullptr;
}

const ffi::Api& TheApi() {
  static const ffi::Api api{.error_create = CreateError,
                            .error_message = MessageOfError,
                            .error_destroy = DestroyError,
                            .handler_register = Unimplemented<0>,
                            .stream_get = Unimplemented<1>,
                            .type_register = RegisterType,
                            .context_get = Unimplemented<2>,
                            .state_set = Unimplemented<3>,
                            .state_get = Unimplemented<3>,
                            .memory_allocate = AllocateMemory,
                            .memory_free = FreeMemory,
                            .schedule = Schedule,
                            .thread_count = CountThreads,
                            .future_create = CreateFuture,
                            .future_set_available = SetAvailable,
                            .future_set_error = SetError,
                            .run_id = RunId,
                            .device_ordinal = DeviceOrdinal};
  return api;
}

// ---- types

// XLA's PrimitiveType; 0 for types that handlers do not support.
int32_t NumberOf(std::string_view hlo) {
  constexpr std::pair<std::string_view, int32_t> kTypes[] = {
      {"pred", 1},        {"s8", 2},          {"s16", 3},
      {"s32", 4},         {"s64", 5},         {"u8", 6},
      {"u16", 7},         {"u32", 8},         {"u64", 9},
      {"f16", 10},        {"f32", 11},        {"f64", 12},
      {"c64", 15},        {"bf16", 16},       {"c128", 18},
      {"f8e5m2", 19},     {"f8e4m3fn", 20},   {"f8e4m3b11fnuz", 23},
      {"f8e5m2fnuz", 24}, {"f8e4m3fnuz", 25}, {"f8e4m3", 28},
      {"f8e3m4", 29},     {"f8e8m0fnu", 33}};
  for (const auto& [name, number] : kTypes)
    if (name == hlo) return number;
  return 0;
}
// "i32" -> "s32", "ui8" -> "u8", "i1" -> "pred"; floats have the same names.
std::string HloOfMlir(const std::string& mlir) {
  if (mlir == "i1") return "pred";
  if (mlir.starts_with("ui")) return mlir.substr(1);
  if (mlir.starts_with("si")) return mlir.substr(1);
  if (mlir.starts_with("i")) return "s" + mlir.substr(1);
  return mlir;
}

// ---- attributes

// Owns the memory that the frame's attributes point to; addresses are stable.
class AttributeStore {
 public:
  // Returns false if an attribute has a kind that handlers do not support; `unfit` names it.
  bool Add(const AttrDict& dict, ffi::Attributes& into) {
    List& list = lists_.emplace_back();
    for (const AttrEntry& entry : dict) {
      int32_t kind = 0;
      void* item = Lay(entry.value, kind);
      if (item == nullptr) {
        if (unfit.empty()) unfit = entry.name;
        return false;
      }
      const std::string& name = texts_.emplace_back(entry.name);
      list.names.push_back(&spans_.emplace_back(ffi::Text{name.data(), name.size()}));
      list.kinds.push_back(kind);
      list.items.push_back(item);
    }
    into.size = static_cast<int64_t>(list.items.size());
    into.kinds = list.kinds.data();
    into.names = list.names.data();
    into.items = list.items.data();
    return true;
  }
  std::string unfit;

 private:
  struct List {
    std::vector<int32_t> kinds;
    std::vector<ffi::Text*> names;
    std::vector<void*> items;
  };

  void* Lay(const AttrValue& value, int32_t& kind) {
    if (const std::string* text = value.As<std::string>()) {
      kind = ffi::kText;
      const std::string& kept = texts_.emplace_back(*text);
      return &spans_.emplace_back(ffi::Text{kept.data(), kept.size()});
    }
    if (const AttrDict* dict = value.As<AttrDict>()) {
      kind = ffi::kDictionary;
      ffi::Attributes& inner = dicts_.emplace_back();
      return Add(*dict, inner) ? &inner : nullptr;
    }
    if (const bool* flag = value.As<bool>()) return LayScalar("pred", *flag ? 1 : 0, 0, kind);
    if (const IntAttr* number = value.As<IntAttr>())
      return LayScalar(HloOfMlir(number->type), number->value, 0, kind);
    if (const FloatAttr* number = value.As<FloatAttr>())
      return LayScalar(std::string(HloName(number->type)), 0, number->value, kind);
    if (const DenseArrayAttr* array = value.As<DenseArrayAttr>()) {
      return LayArray(HloOfMlir(array->type), array->ints, array->floats, kind);
    }
    if (const Literal* literal = value.As<Literal>()) return LayLiteral(*literal, kind);
    return nullptr;
  }

  void* LayLiteral(const Literal& literal, int32_t& kind) {
    if (!literal.shape().IsArray() || IsComplex(literal.type())) return nullptr;
    std::vector<int64_t> ints;
    std::vector<double> floats;
    for (int64_t i = 0; i < literal.shape().ElementCount(); ++i) {
      if (IsReal(literal.type())) {
        floats.push_back(literal.DoubleAt(i));
      } else {
        ints.push_back(literal.IntAt(i));
      }
    }
    return LayArray(std::string(HloName(literal.type())), ints, floats, kind);
  }

  void* LayScalar(const std::string& type, int64_t integer, double real, int32_t& kind) {
    kind = ffi::kScalar;
    std::string& bytes = texts_.emplace_back();
    if (!Store(type, integer, real, bytes)) return nullptr;
    return &scalars_.emplace_back(ffi::Scalar{NumberOf(type), bytes.data()});
  }
  void* LayArray(const std::string& type, const std::vector<int64_t>& ints,
                 const std::vector<double>& floats, int32_t& kind) {
    kind = ffi::kArray;
    std::string& bytes = texts_.emplace_back();
    const size_t count = std::max(ints.size(), floats.size());
    for (size_t i = 0; i < count; ++i) {
      if (!Store(type, i < ints.size() ? ints[i] : 0, i < floats.size() ? floats[i] : 0, bytes))
        return nullptr;
    }
    return &arrays_.emplace_back(ffi::Array{NumberOf(type), count, bytes.data()});
  }
  // Appends a number to `bytes` with the layout of `type`.
  static bool Store(const std::string& type, int64_t integer, double real, std::string& bytes) {
    auto add = [&bytes](auto number) {
      bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
      return true;
    };
    if (type == "pred" || type == "s8" || type == "u8") return add(static_cast<int8_t>(integer));
    if (type == "s16" || type == "u16") return add(static_cast<int16_t>(integer));
    if (type == "s32" || type == "u32") return add(static_cast<int32_t>(integer));
    if (type == "s64" || type == "u64") return add(integer);
    if (type == "f32") return add(static_cast<float>(real));
    if (type == "f64") return add(real);
    return false;
  }

  std::deque<List> lists_;
  std::deque<ffi::Attributes> dicts_;
  std::deque<std::string> texts_;
  std::deque<ffi::Text> spans_;
  std::deque<ffi::Scalar> scalars_;
  std::deque<ffi::Array> arrays_;
};

// ---- the call

struct BufferList {
  std::vector<ffi::Buffer> buffers;
  std::vector<int32_t> kinds;
  std::vector<void*> items;

  // Empty, or the reason why an array cannot be passed.
  std::string Add(std::vector<HostArrayView> views, ffi::Buffers& into, std::deque<Dims>& dims) {
    buffers.reserve(views.size());
    for (HostArrayView& view : views) {
      int32_t type = NumberOf(view.type);
      if (type == 0) return "its handler does not support arrays of type " + view.type;
      Dims& kept = dims.emplace_back(view.dims);
      buffers.push_back({.type = type,
                         .data = view.data,
                         .rank = static_cast<int64_t>(kept.size()),
                         .dims = kept.data()});
      kinds.push_back(1);
      items.push_back(&buffers.back());
    }
    into.size = static_cast<int64_t>(items.size());
    into.kinds = kinds.data();
    into.items = items.data();
    return "";
  }
};

// Returns the text of a handler's error and destroys it.
std::string TakeText(ffi::Error* error) {
  std::string text = error->message.empty() ? "no reason given" : error->message;
  delete error;
  return text;
}

std::string WaitFor(ffi::Future* future) {
  ffi::Error* error = nullptr;
  {
    std::unique_lock<std::mutex> lock(future->mutex);
    future->changed.wait(lock, [&] { return future->done; });
    error = future->error;
  }
  delete future;
  return error == nullptr ? "" : TakeText(error);
}

std::string CallFfi(const HostCallFrame& frame, void* fn, void*) {
  ffi::ExecutionContext context{frame.device};
  ffi::CallFrame call;
  call.api = &TheApi();
  call.context = &context;
  BufferList inputs, outputs;
  std::deque<Dims> dims;
  std::string failure = inputs.Add(frame.inputs, call.arguments, dims);
  if (failure.empty()) failure = outputs.Add(frame.outputs, call.results, dims);
  if (!failure.empty()) return failure;
  AttributeStore attributes;
  if (!attributes.Add(frame.attrs, call.attributes))
    return "its handler does not support the attribute '" + attributes.unfit + "'";
  if (ffi::Error* error = reinterpret_cast<ffi::Handler*>(fn)(&call)) return TakeText(error);
  return call.future == nullptr ? "" : WaitFor(call.future);
}

}  // namespace

Status RegisterFfiTarget(const std::string& target, void* handler) {
  auto failure = [&](const std::string& text) {
    return MakeError(ErrorCode::kHostCall, "custom-call: '" + target + "': " + text);
  };
  ffi::Metadata metadata;
  ffi::MetadataExtension extension;
  extension.metadata = &metadata;
  ffi::CallFrame ask;
  ask.api = &TheApi();
  ask.extensions = &extension.base;
  if (ffi::Error* error = reinterpret_cast<ffi::Handler*>(handler)(&ask))
    return failure(TakeText(error));
  if (metadata.version.major != 0)
    return failure("its handler was built for version " + std::to_string(metadata.version.major) +
                   " of XLA's FFI; only version 0 is supported");
  if (metadata.state_type != 0) return failure("its handler has state, which is not supported");
  RegisterHostCall(target, CallFfi, handler, nullptr);
  return Ok();
}

}  // namespace tokamak
