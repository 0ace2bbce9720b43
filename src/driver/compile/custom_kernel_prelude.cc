#include "driver/compile/custom_kernel_prelude.h"

namespace tokamak {
namespace {

// C and C++. The functions with the names of CUDA's intrinsics have their semantics.
constexpr std::string_view kCText = R"(#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
typedef uint16_t tok_f16, tok_bf16;
typedef struct { float re, im; } tok_c64;
typedef struct { double re, im; } tok_c128;
/* The part of 0 .. n - 1 that this block computes. */
#define TOK_BEGIN(n) ((int64_t)(n) / tok_blocks * tok_block + \
                      ((int64_t)(n) % tok_blocks * tok_block) / tok_blocks)
#define TOK_END(n) ((int64_t)(n) / tok_blocks * (tok_block + 1) + \
                    ((int64_t)(n) % tok_blocks * (tok_block + 1)) / tok_blocks)
static inline float __uint_as_float(unsigned bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
static inline unsigned __float_as_uint(float value) {
  unsigned bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
static inline double __longlong_as_double(long long bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
static inline long long __double_as_longlong(double value) {
  long long bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
static inline float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
static inline double __fma_rn(double x, double y, double z) { return __builtin_fma(x, y, z); }
static inline float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
static inline double __dsqrt_rn(double x) { return __builtin_sqrt(x); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(unsigned x) { return x == 0 ? 32 : __builtin_clz(x); }
static inline int __clzll(unsigned long long x) { return x == 0 ? 64 : __builtin_clzll(x); }
static inline int __mulhi(int x, int y) { return (int)(((long long)x * y) >> 32); }
static inline unsigned __umulhi(unsigned x, unsigned y) {
  return (unsigned)(((unsigned long long)x * y) >> 32);
}
static inline long long __mul64hi(long long x, long long y) {
  return (long long)(((__int128)x * y) >> 64);
}
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return (unsigned long long)(((unsigned __int128)x * y) >> 64);
}
static inline float tok_bf16_to_f32(tok_bf16 bits) { return __uint_as_float((unsigned)bits << 16); }
static inline tok_bf16 tok_f32_to_bf16(float value) {
  unsigned bits = __float_as_uint(value);
  unsigned rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  return (tok_bf16)(value != value ? 0x7fc0u | (bits >> 16 & 0x8000u) : rounded);
}
static inline float tok_f16_to_f32(tok_f16 half) {
  unsigned sign = (half & 0x8000u) << 16, rest = half & 0x7fffu;
  /* Subnormals and zeros scale exactly; infinities and NaN keep all exponent bits. */
  float scaled = __uint_as_float(rest << 13) * 0x1p112f;
  unsigned bits = rest >= 0x7c00u ? rest << 13 | 0x7f800000u : __float_as_uint(scaled);
  return __uint_as_float(bits | sign);
}
static inline tok_f16 tok_f32_to_f16(float value) {
  unsigned bits = __float_as_uint(value), sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
  /* Below 2^-14: the addition rounds to a multiple of the least subnormal, 2^-24. */
  unsigned least = __float_as_uint(__uint_as_float(rest) + 0.5f) - 0x3f000000u;
  unsigned normal = (rest - 0x38000000u + 0xfffu + (rest >> 13 & 1u)) >> 13;
  unsigned half = rest < 0x38800000u ? least : rest >= 0x47800000u ? 0x7c00u : normal;
  return (tok_f16)((rest > 0x7f800000u ? 0x7e00u : half) | sign);
}
static inline float tok_f64_to_odd_f32(double value) {
  /* Towards zero, with a last bit that tells whether anything was lost. */
  float part = (float)value;
  if (__builtin_fabs((double)part) > __builtin_fabs(value)) part = __builtin_nextafterf(part, 0.0f);
  if ((double)part != value && value == value) part = __uint_as_float(__float_as_uint(part) | 1u);
  return part;
}
static inline float F16ToF32(unsigned short bits) { return tok_f16_to_f32(bits); }
static inline unsigned short F16FromF32(float value) { return tok_f32_to_f16(value); }
static inline unsigned short F16FromF64(double value) {
  return tok_f32_to_f16(tok_f64_to_odd_f32(value));
}
static inline float Bf16ToF32(unsigned short bits) { return tok_bf16_to_f32(bits); }
static inline unsigned short Bf16FromF32(float value) { return tok_f32_to_bf16(value); }
static inline unsigned short Bf16FromF64(double value) {
  return tok_f32_to_bf16(tok_f64_to_odd_f32(value));
}
#define TOK_LEAST(x, y) ((x) != (x) || (y) != (y) ? (x) + (y) \
    : (x) < (y) || ((x) == (y) && __builtin_signbit(x)) ? (x) : (y))
#define TOK_MOST(x, y) ((x) != (x) || (y) != (y) ? (x) + (y) \
    : (y) < (x) || ((x) == (y) && __builtin_signbit(y)) ? (x) : (y))
#define Minimum(x, y) TOK_LEAST(x, y)
#define Maximum(x, y) TOK_MOST(x, y)
)";

constexpr std::string_view kCudaText = R"(typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef uint16_t tok_f16, tok_bf16;
struct tok_c64 { float re, im; };
struct tok_c128 { double re, im; };
static __device__ __forceinline__ float tok_bf16_to_f32(tok_bf16 bits) {
  return __uint_as_float((unsigned)bits << 16);
}
static __device__ __forceinline__ tok_bf16 tok_f32_to_bf16(float value) {
  tok_bf16 bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
static __device__ __forceinline__ float tok_f16_to_f32(tok_f16 bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
static __device__ __forceinline__ tok_f16 tok_f32_to_f16(float value) {
  tok_f16 bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
)";

}  // namespace

std::string_view CKernelPrelude() {
  return kCText;
}

std::string_view CudaKernelPrelude() {
  return kCudaText;
}

}  // namespace tokamak
