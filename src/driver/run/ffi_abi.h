#pragma once

// Declarations of the ABI of XLA's typed custom calls (jax.ffi handlers, version 0), written
// independently of XLA's headers, with asserted offsets. Every struct starts with its size, which a
// handler compares with the one that it was built for.

#include <cstddef>
#include <cstdint>

namespace tokamak::ffi {

struct Error;             // opaque to the handler
struct Future;            // opaque to the handler
struct ExecutionContext;  // opaque to the handler
struct Api;

struct Extension {
  size_t struct_size = sizeof(Extension);
  int32_t type = 0;  // 1: metadata
  Extension* next = nullptr;
};
// Type of the only extension used here (number defined by the ABI).
constexpr int32_t kMetadataExtension = 1;

struct Version {
  size_t struct_size = 24;  // covers members up to `minor`
  Extension* extensions = nullptr;
  int32_t major = 0, minor = 0;
};

// Filled by a handler that is called with this extension in the call frame.
struct Metadata {
  size_t struct_size = 36;  // covers members up to `traits`
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
  int32_t type = 0;  // XLA's PrimitiveType
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

// Used for both arguments and results. kinds: 1 is a buffer.
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
  size_t struct_size = 168;  // excludes `future`
  Extension* extensions = nullptr;
  const Api* api = nullptr;
  ExecutionContext* context = nullptr;
  int32_t stage = 3;  // 3: execute
  Buffers arguments, results;
  Attributes attributes;
  Future* future = nullptr;  // out: set if the handler completes asynchronously
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
struct NumberArgs {  // the run id (64 bits) or the device ordinal (32 bits)
  size_t struct_size;
  Extension* extensions;
  ExecutionContext* context;
  int64_t number;
};
// Arguments of functions that are always rejected; never read.
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
