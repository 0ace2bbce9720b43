#pragma once

// Our own declaration of the PJRT C ABI, version 0.114, the interface between a framework and a
// plugin. The names are those of the ABI; they live in our namespace. Every offset and size is
// asserted. JAX 0.10 has version 0.112 and JAX 0.11 has 0.115: a caller's struct may be shorter or
// longer than ours, so only fields inside the caller's struct_size are accessed (TOK_PJRT_HOLDS).

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tokamak {

#define TOK_PJRT_DECLARE(name) struct name;
#include "pjrt/abi.def"

#define TOK_PJRT_ENUM(name) enum name : int32_t {
#define TOK_PJRT_VALUE(name, value) name = value,
#define TOK_PJRT_ENUM_END() \
  }                         \
  ;
#include "pjrt/abi.def"

#define TOK_PJRT_TYPEDEF(name, ...) using name = __VA_ARGS__;
#include "pjrt/abi.def"

#define TOK_PJRT_STRUCT(name, size, struct_size) struct name {
#define TOK_PJRT_FIELD(struct, name, offset, ...) std::type_identity_t<__VA_ARGS__> name;
#define TOK_PJRT_STRUCT_END() \
  }                           \
  ;
#define TOK_PJRT_UNION() union {
#define TOK_PJRT_UNION_END() \
  }                          \
  ;
#include "pjrt/abi.def"

struct PJRT_Api {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Api_Version pjrt_api_version;
#define TOK_PJRT_FUNCTION(name, offset, returned, optional) returned (*name)(name##_Args*);
#include "pjrt/abi.def"
};

#define TOK_PJRT_STRUCT(name, size, struct_size) static_assert(sizeof(name) == (size), #name);
#define TOK_PJRT_FIELD(struct, name, at, ...) \
  static_assert(offsetof(struct, name) == (at), #struct "." #name);
#include "pjrt/abi.def"
#define TOK_PJRT_FUNCTION(name, at, returned, optional) \
  static_assert(offsetof(PJRT_Api, name) == (at), #name);
#include "pjrt/abi.def"

// The struct_size of a caller of this version: the end of the last field, without padding.
template <typename T>
inline constexpr size_t kStructSize = sizeof(T);
#define TOK_PJRT_STRUCT(name, size, struct_size) \
  template <>                                    \
  inline constexpr size_t kStructSize<name> = struct_size;
#include "pjrt/abi.def"

// Whether the caller's struct has the field.
#define TOK_PJRT_HOLDS(args, field) \
  ((args).struct_size >=            \
   offsetof(std::remove_cvref_t<decltype(args)>, field) + sizeof((args).field))

}  // namespace tokamak
