#pragma once

// How XLA's typed custom calls (jax.ffi handlers, version 0 of their ABI) are called: our own
// declaration of the structs, offsets asserted. Every struct begins with its size, which handlers
// compare with the one that they were built for.

#include <cstddef>
#include <cstdint>

namespace tokamak::ffi {

struct Error;             // ours: the handler sees pointers only
struct Future;            // ours
struct ExecutionContext;  // ours
struct Api;

struct Extension {
  size_t struct_size = sizeof(Extension);
  int32_t type = 0;  // 1: metadata
  Extension* next = nullptr;
};
constexpr int32_t kMetadataExtension = 1;

struct Version {
  size_t struct_size = 24;  // up to `minor`
  Extension* extensions = nullptr;
  int32_t major = 0, minor = 0;
};

// What a handler says about itself when the call frame carries this extension.
struct Metadata {
  size_t struct_size = 36;  // up to `traits`
  Version version;
  uint32_t traits = 0;
  int64_t state_type = 0;
};
struct MetadataExtension {
  Extension base{sizeof(MetadataExtension), kMetadataExtension, nullptr};
  Metadata* metadata = nullptr;
};

struct Buffer {
  size_t struct_size = sizeof(Buffer);
  Extension* extensions = nullptr;
  int32_t type = 0;  // number of XLA's primitive type
  void* data = nullptr;
  int64_t rank = 0;
  int64_t* dims = nullptr;
};

struct Text {
  const char* data = nullptr;
  size_t size = 0;
};
struct Scalar {
  int32_t type = 0;
  void* value = nullptr;
};
struct Array {
  int32_t type = 0;
  size_t size = 0;
  void* data = nullptr;
};

// Arguments and results alike; kinds: 1 is a buffer.
struct Buffers {
  size_t struct_size = sizeof(Buffers);
  Extension* extensions = nullptr;
  int64_t size = 0;
  int32_t* kinds = nullptr;
  void** items = nullptr;
};
struct Attributes {
  size_t struct_size = sizeof(Attributes);
  Extension* extensions = nullptr;
  int64_t size = 0;
  int32_t* kinds = nullptr;
  Text** names = nullptr;
  void** items = nullptr;
};
enum AttributeKind : int32_t { kArray = 1, kDictionary = 2, kScalar = 3, kText = 4 };

struct CallFrame {
  size_t struct_size = 168;  // `future` is not counted
  Extension* extensions = nullptr;
  const Api* api = nullptr;
  ExecutionContext* context = nullptr;
  int32_t stage = 3;  // execute
  Buffers arguments, results;
  Attributes attributes;
  Future* future = nullptr;  // out: the handler goes on after it has returned
};
using Handler = Error*(CallFrame*);

// Arguments of the functions of Api.
struct ErrorCreateArgs {
  size_t struct_size;
  Extension* extensions;
  const char* message;
  int32_t code;
};
struct ErrorArgs {  // destroy: up to `error`; message: all
  size_t struct_size;
  Extension* extensions;
  Error* error;
  const char* message;
};
struct TypeArgs {
  size_t struct_size;
  Extension* extensions;
  Text name;
  int64_t* type;
};
struct MemoryArgs {  // allocate: all; free has no `alignment`
  size_t struct_size;
  Extension* extensions;
  ExecutionContext* context;
  size_t size;
  size_t alignment;
  void* data;
};
struct FreeArgs {
  size_t struct_size;
  Extension* extensions;
  ExecutionContext* context;
  size_t size;
  void* data;
};
struct ScheduleArgs {
  size_t struct_size;
  Extension* extensions;
  ExecutionContext* context;
  void (*task)(void*);
  void* data;
};
struct ThreadsArgs {
  size_t struct_size;
  Extension* extensions;
  ExecutionContext* context;
  int64_t* count;
};
struct FutureArgs {  // create, set available: up to `future`; set error: all
  size_t struct_size;
  Extension* extensions;
  Future* future;
  Error* error;
};
struct NumberArgs {  // the id of a run (64 bits), the number of a device (32)
  size_t struct_size;
  Extension* extensions;
  ExecutionContext* context;
  int64_t number;
};
// Of functions that are refused here: nothing in it is looked at.
struct AnyArgs;

struct Api {
  size_t struct_size = sizeof(Api);
  Extension* extensions = nullptr;
  Version version{24, nullptr, 0, 3};
  const void* internal = nullptr;
  Error* (*error_create)(ErrorCreateArgs*) = nullptr;
  void (*error_message)(ErrorArgs*) = nullptr;
  void (*error_destroy)(ErrorArgs*) = nullptr;
  Error* (*handler_register)(AnyArgs*) = nullptr;
  Error* (*stream_get)(AnyArgs*) = nullptr;
  Error* (*type_register)(TypeArgs*) = nullptr;
  Error* (*context_get)(AnyArgs*) = nullptr;
  Error* (*state_set)(AnyArgs*) = nullptr;
  Error* (*state_get)(AnyArgs*) = nullptr;
  Error* (*memory_allocate)(MemoryArgs*) = nullptr;
  Error* (*memory_free)(FreeArgs*) = nullptr;
  Error* (*schedule)(ScheduleArgs*) = nullptr;
  Error* (*thread_count)(ThreadsArgs*) = nullptr;
  Error* (*future_create)(FutureArgs*) = nullptr;
  Error* (*future_set_available)(FutureArgs*) = nullptr;
  Error* (*future_set_error)(FutureArgs*) = nullptr;
  Error* (*run_id)(NumberArgs*) = nullptr;
  Error* (*device_ordinal)(NumberArgs*) = nullptr;
};

static_assert(offsetof(Buffer, dims) == 40 && offsetof(Attributes, items) == 40);
static_assert(offsetof(CallFrame, arguments) == 40 && offsetof(CallFrame, attributes) == 120);
static_assert(offsetof(CallFrame, future) == 168 && offsetof(Metadata, traits) == 32);
static_assert(offsetof(Api, error_create) == 48 && offsetof(Api, device_ordinal) == 184);

}  // namespace tokamak::ffi
