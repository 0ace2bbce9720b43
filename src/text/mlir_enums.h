#pragma once

// Enumerations of the MLIR dialects: the keyword of an enumerator is its HLO text in upper case,
// without the prefix "rng_". VHLO encodes an enumerator as a number.

#include <array>
#include <cstdint>
#include <string_view>

#include "ir/attr_enums.h"

namespace tokamak {

struct MlirEnum {
  std::string_view kind;                       // #stablehlo<kind KEYWORD>
  uint64_t vhlo_code = 0;                      // 0: not in VHLO
  std::array<std::string_view, 6> words = {};  // by VHLO's number; "" if unused
};

template <typename E>
inline constexpr MlirEnum kMlirEnum{};
template <>
inline constexpr MlirEnum kMlirEnum<CompareDirection>{
    "stablehlo.comparison_direction", 3, {"EQ", "NE", "GE", "GT", "LE", "LT"}};
template <>
inline constexpr MlirEnum kMlirEnum<CompareType>{
    "stablehlo.comparison_type", 4, {"NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"}};
template <>
inline constexpr MlirEnum kMlirEnum<CustomCallApi>{
    "stablehlo.custom_call_api_version",
    5,
    {"API_VERSION_UNSPECIFIED", "API_VERSION_ORIGINAL", "API_VERSION_STATUS_RETURNING",
     "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI"}};
template <>
inline constexpr MlirEnum kMlirEnum<FftType>{
    "stablehlo.fft_type", 7, {"FFT", "IFFT", "RFFT", "IRFFT"}};
template <>
inline constexpr MlirEnum kMlirEnum<Precision>{
    "stablehlo.precision", 11, {"DEFAULT", "HIGH", "HIGHEST"}};
template <>
inline constexpr MlirEnum kMlirEnum<RngAlgorithm>{
    "stablehlo.rng_algorithm", 12, {"DEFAULT", "THREE_FRY", "PHILOX"}};
template <>
inline constexpr MlirEnum kMlirEnum<RngDistribution>{
    "stablehlo.rng_distribution", 13, {"", "UNIFORM", "NORMAL"}};
template <>
inline constexpr MlirEnum kMlirEnum<Transpose>{
    "stablehlo.transpose", 16, {"", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"}};
template <>
inline constexpr MlirEnum kMlirEnum<AccuracyMode>{
    "stablehlo.result_accuracy_mode", 19, {"DEFAULT", "HIGHEST", "TOLERANCE"}};
template <>
inline constexpr MlirEnum kMlirEnum<CustomCallSchedule>{"mhlo.custom_call_schedule"};

inline constexpr std::array kVhloEnums = {
    kMlirEnum<CompareDirection>, kMlirEnum<CompareType>, kMlirEnum<CustomCallApi>,
    kMlirEnum<FftType>,          kMlirEnum<Precision>,   kMlirEnum<RngAlgorithm>,
    kMlirEnum<RngDistribution>,  kMlirEnum<Transpose>,   kMlirEnum<AccuracyMode>};

}  // namespace tokamak
