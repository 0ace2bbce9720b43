#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tokamak {

// Enumerations used by attributes. EnumText<E>::names holds their spelling in HLO text, in the
// order of the enumerators.
template <typename E>
struct EnumText;

#define TOK_ENUM_TEXT(E, ...)                                                     \
  template <>                                                                     \
  struct EnumText<E> {                                                            \
    static constexpr auto names = std::to_array<std::string_view>({__VA_ARGS__}); \
  }

enum class CompareDirection : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe };
TOK_ENUM_TEXT(CompareDirection, "EQ", "NE", "LT", "LE", "GT", "GE");

// kNone: determined by the element type.
enum class CompareType : uint8_t { kNone, kFloat, kTotalOrder, kSigned, kUnsigned };
TOK_ENUM_TEXT(CompareType, "NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED");

enum class Precision : uint8_t { kDefault, kHigh, kHighest, kPackedNibble };
TOK_ENUM_TEXT(Precision, "default", "high", "highest", "packed_nibble");

enum class FftType : uint8_t { kFft, kIfft, kRfft, kIrfft };
TOK_ENUM_TEXT(FftType, "FFT", "IFFT", "RFFT", "IRFFT");

enum class Transpose : uint8_t { kNone, kTranspose, kAdjoint };
TOK_ENUM_TEXT(Transpose, "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT");

enum class RngDistribution : uint8_t { kUniform, kNormal };
TOK_ENUM_TEXT(RngDistribution, "rng_uniform", "rng_normal");

enum class RngAlgorithm : uint8_t { kDefault, kThreeFry, kPhilox };
TOK_ENUM_TEXT(RngAlgorithm, "rng_default", "rng_three_fry", "rng_philox");

enum class FusionKind : uint8_t { kLoop, kInput, kOutput, kCustom };
TOK_ENUM_TEXT(FusionKind, "kLoop", "kInput", "kOutput", "kCustom");

enum class ConvKind : uint8_t { kUnset, kForward, kInputGradient, kFilterGradient };
TOK_ENUM_TEXT(ConvKind, "unset", "fprop", "dgrad", "wgrad");

enum class PaddingType : uint8_t { kNone, kValid, kSame };
TOK_ENUM_TEXT(PaddingType, "PADDING_INVALID", "PADDING_VALID", "PADDING_SAME");

enum class AccuracyMode : uint8_t { kDefault, kHighest, kTolerance };
TOK_ENUM_TEXT(AccuracyMode, "default", "highest", "tolerance");

enum class CustomCallApi : uint8_t {
  kUnspecified,
  kOriginal,
  kStatusReturning,
  kStatusReturningUnified,
  kTypedFfi
};
TOK_ENUM_TEXT(CustomCallApi, "API_VERSION_UNSPECIFIED", "API_VERSION_ORIGINAL",
              "API_VERSION_STATUS_RETURNING", "API_VERSION_STATUS_RETURNING_UNIFIED",
              "API_VERSION_TYPED_FFI");

enum class CustomCallSchedule : uint8_t { kNone, kLatest, kEarliest };
TOK_ENUM_TEXT(CustomCallSchedule, "SCHEDULE_NONE", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST");

enum class CheckKind : uint8_t { kEqual, kClose, kAlmostEqual, kSerializedEqual };
TOK_ENUM_TEXT(CheckKind, "equal", "close", "almost_equal", "serialized_equal");

#undef TOK_ENUM_TEXT

template <typename E>
constexpr std::string_view TextOf(E value) {
  return EnumText<E>::names[static_cast<size_t>(value)];
}
template <typename E>
constexpr std::optional<E> EnumFromText(std::string_view text) {
  const auto& names = EnumText<E>::names;
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == text) return static_cast<E>(i);
  return std::nullopt;
}

}  // namespace tokamak
