// Element types and shapes, for <tokamak/tokamak.h>.
#pragma once

#include <complex>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace tokamak {

// Named as in HLO. An element narrower than 8 bits occupies a byte.
enum class Type : uint8_t {
  kNone,
  kPred,
  kS2,
  kS4,
  kS8,
  kS16,
  kS32,
  kS64,
  kU2,
  kU4,
  kU8,
  kU16,
  kU32,
  kU64,
  kF16,
  kBF16,
  kF32,
  kF64,
  kC64,
  kC128,
  kF4E2M1FN,
  kF6E2M3FN,
  kF6E3M2FN,
  kF8E3M4,
  kF8E4M3,
  kF8E4M3FN,
  kF8E4M3B11FNUZ,
  kF8E4M3FNUZ,
  kF8E5M2,
  kF8E5M2FNUZ,
  kF8E8M0FNU,
};

struct TypeInfo {
  const char* name;
  size_t bytes;  // per element in memory
};

inline constexpr TypeInfo kTypeInfos[] = {
    {"", 0},          {"pred", 1},          {"s2", 1},         {"s4", 1},     {"s8", 1},
    {"s16", 2},       {"s32", 4},           {"s64", 8},        {"u2", 1},     {"u4", 1},
    {"u8", 1},        {"u16", 2},           {"u32", 4},        {"u64", 8},    {"f16", 2},
    {"bf16", 2},      {"f32", 4},           {"f64", 8},        {"c64", 8},    {"c128", 16},
    {"f4e2m1fn", 1},  {"f6e2m3fn", 1},      {"f6e3m2fn", 1},   {"f8e3m4", 1}, {"f8e4m3", 1},
    {"f8e4m3fn", 1},  {"f8e4m3b11fnuz", 1}, {"f8e4m3fnuz", 1}, {"f8e5m2", 1}, {"f8e5m2fnuz", 1},
    {"f8e8m0fnu", 1},
};
inline constexpr size_t kTypeCount = sizeof kTypeInfos / sizeof kTypeInfos[0];

inline const char* NameOf(Type type) {
  return static_cast<size_t>(type) < kTypeCount ? kTypeInfos[static_cast<size_t>(type)].name : "";
}
// 0 for an invalid type.
inline size_t WidthOf(Type type) {
  return static_cast<size_t>(type) < kTypeCount ? kTypeInfos[static_cast<size_t>(type)].bytes : 0;
}
// Type::kNone for an unknown name.
inline Type TypeFromName(const char* name) {
  for (size_t i = 1; i < kTypeCount; ++i)
    if (std::strcmp(kTypeInfos[i].name, name) == 0) return static_cast<Type>(i);
  return Type::kNone;
}

// The element type that corresponds to a C++ type.
template <typename T>
constexpr Type TypeOf() {
  using U = std::remove_const_t<T>;
  if constexpr (std::is_same_v<U, bool>) return Type::kPred;
  if constexpr (std::is_same_v<U, float>) return Type::kF32;
  if constexpr (std::is_same_v<U, double>) return Type::kF64;
  if constexpr (std::is_same_v<U, std::complex<float>>) return Type::kC64;
  if constexpr (std::is_same_v<U, std::complex<double>>) return Type::kC128;
  if constexpr (std::is_integral_v<U> && !std::is_same_v<U, bool>) {
    constexpr bool is_signed = std::is_signed_v<U>;
    if (sizeof(U) == 1) return is_signed ? Type::kS8 : Type::kU8;
    if (sizeof(U) == 2) return is_signed ? Type::kS16 : Type::kU16;
    if (sizeof(U) == 4) return is_signed ? Type::kS32 : Type::kU32;
    return is_signed ? Type::kS64 : Type::kU64;
  }
  return Type::kNone;
}

// The type and dimensions of an array.
struct Shape {
  Type type = Type::kNone;
  std::vector<int64_t> dims = {};
  bool operator==(const Shape&) const = default;
};

// "f32[2,3]": HLO syntax.
inline std::string ToString(const Shape& shape) {
  std::string text = std::string(NameOf(shape.type)) + "[";
  for (size_t d = 0; d < shape.dims.size(); ++d)
    text += (d == 0 ? "" : ",") + std::to_string(shape.dims[d]);
  return text + "]";
}

}  // namespace tokamak
