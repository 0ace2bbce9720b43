// The prelude: types and functions that precede the functions of a text.

#include <string_view>

#include "backend/cuda/cuda_writer.h"

namespace tokamak::cuda {
namespace {

constexpr std::string_view kVectorAccessText =
    "// What neighbouring lanes load or store at once.\n"
    "template <typename T, int N>\n"
    "struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) Vec {\n"
    "  T at[N];\n"
    "};\n\n";

// Bytes are extracted from 32-bit words. Individual bytes trigger two bugs of CUDA 13.0: NVVM omits
// the sign extension of values computed from the first byte of a word of a 16-byte load, and ptxas
// swaps two registers when it fuses a 16-bit shift by 8 with an addition. Words also need fewer
// instructions.
constexpr std::string_view kBytesText =
    "// One of many bytes that were loaded at once.\n"
    "template <int N>\n"
    "__device__ inline unsigned ByteOf(const Vec<unsigned, N>& all, int lane) {\n"
    "  unsigned byte;\n"
    "  asm(\"bfe.u32 %0, %1, %2, 8;\" : \"=r\"(byte) : \"r\"(all.at[lane / 4]), \"r\"(lane % 4 * "
    "8));\n"
    "  return byte;\n"
    "}\n\n";

// Two numbers are rounded at once, one of them a zero: the instruction for one alone runs at a
// quarter of the rate on sm_90 (F2F instead of F2FP), and ptxas still joins those of two lanes.
constexpr std::string_view kF16Text =
    "__device__ inline float F16ToF32(unsigned short bits) {\n"
    "  float value;\n"
    "  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(value) : \"h\"(bits));\n"
    "  return value;\n"
    "}\n"
    "__device__ inline unsigned short F16FromF32(float value) {\n"
    "#if __CUDA_ARCH__ >= 800\n"
    "  unsigned bits;\n"
    "  asm(\"cvt.rn.f16x2.f32 %0, %1, %2;\" : \"=r\"(bits) : \"f\"(0.0f), \"f\"(value));\n"
    "  return (unsigned short)bits;\n"
    "#else\n"
    "  unsigned short bits;\n"
    "  asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(bits) : \"f\"(value));\n"
    "  return bits;\n"
    "#endif\n"
    "}\n"
    "__device__ inline unsigned short F16FromF64(double value) {\n"
    "  unsigned short bits;\n"
    "  asm(\"cvt.rn.f16.f64 %0, %1;\" : \"=h\"(bits) : \"d\"(value));\n"
    "  return bits;\n"
    "}\n\n";

constexpr std::string_view kBf16Text =
    "__device__ inline float Bf16ToF32(unsigned short bits) {\n"
    "  return __uint_as_float((unsigned)bits << 16);\n"
    "}\n"
    "__device__ inline unsigned short Bf16FromF32(float value) {\n"
    "  unsigned bits;\n"
    "  asm(\"cvt.rn.bf16x2.f32 %0, %1, %2;\" : \"=r\"(bits) : \"f\"(0.0f), \"f\"(value));\n"
    "  return (unsigned short)bits;\n"
    "}\n"
    "// Of a number that a bf16 can represent.\n"
    "__device__ inline unsigned short Bf16Bits(float value) {\n"
    "  return (unsigned short)(__float_as_uint(value) >> 16);\n"
    "}\n"
    "// One rounding: towards zero first, with a last bit that tells whether anything was lost.\n"
    "__device__ inline unsigned short Bf16FromF64(double value) {\n"
    "  float part = __double2float_rz(value);\n"
    "  if ((double)part != value) part = __uint_as_float(__float_as_uint(part) | 1u);\n"
    "  return Bf16FromF32(part);\n"
    "}\n\n";

// The double overload is for completeness: formulas have their own.
constexpr std::string_view kExtremesText =
    "__device__ inline float Minimum(float x, float y) {\n"
    "  float least;\n"
    "  asm(\"min.NaN.f32 %0, %1, %2;\" : \"=f\"(least) : \"f\"(x), \"f\"(y));\n"
    "  return least;\n"
    "}\n"
    "__device__ inline float Maximum(float x, float y) {\n"
    "  float most;\n"
    "  asm(\"max.NaN.f32 %0, %1, %2;\" : \"=f\"(most) : \"f\"(x), \"f\"(y));\n"
    "  return most;\n"
    "}\n"
    "__device__ inline double Minimum(double x, double y) {\n"
    "  return x != x || y != y ? x + y : x < y || (x == y && signbit(x)) ? x : y;\n"
    "}\n"
    "__device__ inline double Maximum(double x, double y) {\n"
    "  return x != x || y != y ? x + y : y < x || (x == y && signbit(y)) ? x : y;\n"
    "}\n\n";

constexpr std::string_view kHiddenText =
    "// Compares that the compiler does not look into (kernel/choice.h).\n"
    "__device__ inline bool HiddenLt(float x, float y) {\n"
    "  unsigned holds;\n"
    "  asm(\"set.lt.u32.f32 %0, %1, %2;\" : \"=r\"(holds) : \"f\"(x), \"f\"(y));\n"
    "  return holds != 0;\n"
    "}\n"
    "__device__ inline bool HiddenLe(float x, float y) {\n"
    "  unsigned holds;\n"
    "  asm(\"set.le.u32.f32 %0, %1, %2;\" : \"=r\"(holds) : \"f\"(x), \"f\"(y));\n"
    "  return holds != 0;\n"
    "}\n"
    "__device__ inline bool HiddenLt(double x, double y) {\n"
    "  unsigned holds;\n"
    "  asm(\"set.lt.u32.f64 %0, %1, %2;\" : \"=r\"(holds) : \"d\"(x), \"d\"(y));\n"
    "  return holds != 0;\n"
    "}\n"
    "__device__ inline bool HiddenLe(double x, double y) {\n"
    "  unsigned holds;\n"
    "  asm(\"set.le.u32.f64 %0, %1, %2;\" : \"=r\"(holds) : \"d\"(x), \"d\"(y));\n"
    "  return holds != 0;\n"
    "}\n\n";

constexpr std::string_view kApproximationsText =
    "__device__ inline float Exp2(float x) {\n"
    "  float power;\n"
    "  asm(\"ex2.approx.ftz.f32 %0, %1;\" : \"=f\"(power) : \"f\"(x));\n"
    "  return power;\n"
    "}\n"
    "__device__ inline float Inverse(float x) {\n"
    "  float inverse;\n"
    "  asm(\"rcp.approx.ftz.f32 %0, %1;\" : \"=f\"(inverse) : \"f\"(x));\n"
    "  return inverse;\n"
    "}\n"
    "// 1 / x, correctly rounded, if both are normal numbers.\n"
    "__device__ inline float InverseOfNormal(float x) {\n"
    "  float inverse = Inverse(x);\n"
    "  return __fmaf_rn(inverse, __fmaf_rn(-x, inverse, 1.0f), inverse);\n"
    "}\n"
    "__device__ inline float InverseRoot(float x) {\n"
    "  float inverse;\n"
    "  asm(\"rsqrt.approx.f32 %0, %1;\" : \"=f\"(inverse) : \"f\"(x));\n"
    "  return inverse;\n"
    "}\n"
    "__device__ inline double Exp2(double x) { return exp2(x); }\n"
    "__device__ inline double Inverse(double x) { return 1.0 / x; }\n\n";

constexpr std::string_view kDivisionText =
    "// x / by, correctly rounded, for a constant with a rounded reciprocal: estimate, remainder,\n"
    "// correction. Small results and NaN take the ordinary division.\n"
    "__device__ inline float DivideBy(float x, float by, float inverse) {\n"
    "  float about = x * inverse;\n"
    "  float result = __fmaf_rn(__fmaf_rn(-by, about, x), inverse, about);\n"
    "  return fabsf(result) >= 0x1p-60f ? result : x / by;\n"
    "}\n\n";

// The reciprocal is computed once for all lanes.
constexpr std::string_view kNarrowDivisionText =
    "// x / by to 2 ulp of f32, for results rounded to 16 bits. The divisor is uniform; if its\n"
    "// reciprocal would underflow or overflow, both are scaled.\n"
    "__device__ inline float DivideNarrow(float x, float by) {\n"
    "  float scale = fabsf(by) > 0x1p100f ? 0x1p-64f : fabsf(by) < 0x1p-100f ? 0x1p64f : 1.0f;\n"
    "  return x * scale * (1.0f / (by * scale));\n"
    "}\n\n";

constexpr std::string_view kOneText =
    "// Additions as multiply-adds by it use the multiply pipe, which kernels of shifts and logic\n"
    "// leave idle. The compiler must not know that it is 1.\n"
    "__constant__ unsigned kOne = 1u;\n\n";

// lost_signs.h gives the reason. ptxas finds neither a negation nor a constant in a sum with a
// value that it cannot know.
constexpr std::string_view kSignsText =
    "// x, opaque to the compiler: ptxas of CUDA 13.0 loses the signs of negations and constants\n"
    "// in minima and maxima.\n"
    "__constant__ unsigned kZero = 0u;\n"
    "__device__ inline int WithSign(int x) { return (int)((unsigned)x + kZero); }\n"
    "__device__ inline unsigned WithSign(unsigned x) { return x + kZero; }\n\n";

constexpr std::string_view kMatchLanesText =
    "// The lanes of the warp that have the same lowest bits.\n"
    "template <int kBits>\n"
    "__device__ inline unsigned MatchLanes(unsigned x) {\n"
    "  unsigned others = 0u;\n"
    "  #pragma unroll\n"
    "  for (int i = 0; i < kBits; ++i)\n"
    "    asm volatile(\n"
    "        \"{\\n.reg .pred p;\\n.reg .b32 bit, votes, own;\\n\"\n"
    "        \"and.b32 bit, %1, %2;\\nsetp.ne.u32 p, bit, 0;\\n\"\n"
    "        \"vote.sync.ballot.b32 votes, p, 0xffffffff;\\n\"\n"
    "        \"selp.b32 own, 0xffffffff, 0, p;\\nlop3.b32 %0, %0, votes, own, 0xf6;\\n}\"\n"
    "        : \"+r\"(others)\n"
    "        : \"r\"(x), \"r\"(1u << i));\n"
    "  return ~others;\n"
    "}\n\n";

// Blocks of a cluster start and end together: no block may store to the shared memory of one that
// is not running.
constexpr std::string_view kClusterText =
    "__device__ __forceinline__ int ClusterRank() {\n"
    "  unsigned rank;\n"
    "  asm(\"mov.u32 %0, %%cluster_ctarank;\" : \"=r\"(rank));\n"
    "  return (int)rank;\n"
    "}\n"
    "__device__ __forceinline__ void ClusterBarrier() {\n"
    "  asm volatile(\"barrier.cluster.arrive.release.aligned;\" ::: \"memory\");\n"
    "  asm volatile(\"barrier.cluster.wait.acquire.aligned;\" ::: \"memory\");\n"
    "}\n"
    "template <int N, typename T>\n"
    "__device__ __forceinline__ void StoreToAll(T* at, T value) {\n"
    "  const unsigned own = (unsigned)__cvta_generic_to_shared(at);\n"
    "#pragma unroll\n"
    "  for (int rank = 0; rank < N; ++rank) {\n"
    "    unsigned to;\n"
    "    asm(\"mapa.shared::cluster.u32 %0, %1, %2;\" : \"=r\"(to) : \"r\"(own), \"r\"(rank));\n"
    "    if constexpr (sizeof(T) == 8)\n"
    "      asm volatile(\"st.shared::cluster.b64 [%0], %1;\" ::\"r\"(to),\n"
    "                   \"l\"(*(const unsigned long long*)&value) : \"memory\");\n"
    "    else if constexpr (sizeof(T) == 4)\n"
    "      asm volatile(\"st.shared::cluster.b32 [%0], %1;\" ::\"r\"(to),\n"
    "                   \"r\"(*(const unsigned*)&value) : \"memory\");\n"
    "    else if constexpr (sizeof(T) == 2)\n"
    "      asm volatile(\"st.shared::cluster.b16 [%0], %1;\" ::\"r\"(to),\n"
    "                   \"h\"(*(const unsigned short*)&value) : \"memory\");\n"
    "    else\n"
    "      asm volatile(\"st.shared::cluster.b8 [%0], %1;\" ::\"r\"(to),\n"
    "                   \"r\"((unsigned)*(const unsigned char*)&value) : \"memory\");\n"
    "  }\n"
    "}\n\n";

// Synchronization by mbarriers (mbarriers.h): a store reports its bytes to the mbarrier of the
// receiver, and the receiver waits for all bytes of an iteration. A cluster barrier would also wait
// for outstanding global memory accesses.
constexpr std::string_view kMbarriersText =
    "__device__ __forceinline__ void ExpectBytes(unsigned at, int bytes) {\n"
    "  asm volatile(\"mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;\" ::\"r\"(at), "
    "\"r\"(bytes)\n"
    "               : \"memory\");\n"
    "}\n"
    "// Initializes both mbarriers of a sync point, which are used alternately.\n"
    "__device__ __forceinline__ void InitMbarriers(unsigned long long* mbarriers, int bytes) {\n"
    "  const unsigned at = (unsigned)__cvta_generic_to_shared(mbarriers);\n"
    "  asm volatile(\"mbarrier.init.shared.b64 [%0], 1;\" ::\"r\"(at) : \"memory\");\n"
    "  asm volatile(\"mbarrier.init.shared.b64 [%0], 1;\" ::\"r\"(at + 8) : \"memory\");\n"
    "  asm volatile(\"fence.mbarrier_init.release.cluster;\" ::: \"memory\");\n"
    "  ExpectBytes(at, bytes);\n"
    "  ExpectBytes(at + 8, bytes);\n"
    "}\n"
    "__device__ __forceinline__ void AwaitAll(unsigned long long* mbarriers, int parity, int "
    "bytes) "
    "{\n"
    "  const unsigned at = (unsigned)__cvta_generic_to_shared(mbarriers);\n"
    "  asm volatile(\n"
    "      \"{\\n.reg .pred done;\\nWAIT:\\n\"\n"
    "      \"mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\\n\"\n"
    "      \"@done bra DONE;\\nbra WAIT;\\nDONE:\\n}\" ::\"r\"(at), \"r\"(parity) : \"memory\");\n"
    "  if (threadIdx.x == 0) ExpectBytes(at, bytes);\n"
    "}\n"
    "template <int N, typename T>\n"
    "__device__ __forceinline__ void SendToAll(T* at, T value, unsigned long long* mbarriers) {\n"
    "  const unsigned own = (unsigned)__cvta_generic_to_shared(at);\n"
    "  const unsigned count = (unsigned)__cvta_generic_to_shared(mbarriers);\n"
    "#pragma unroll\n"
    "  for (int rank = 0; rank < N; ++rank) {\n"
    "    unsigned to, by;\n"
    "    asm(\"mapa.shared::cluster.u32 %0, %1, %2;\" : \"=r\"(to) : \"r\"(own), \"r\"(rank));\n"
    "    asm(\"mapa.shared::cluster.u32 %0, %1, %2;\" : \"=r\"(by) : \"r\"(count), \"r\"(rank));\n"
    "    if constexpr (sizeof(T) == 8)\n"
    "      asm volatile(\n"
    "          \"st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];\" "
    "::\"r\"(to),\n"
    "          \"l\"(*(const unsigned long long*)&value), \"r\"(by) : \"memory\");\n"
    "    else\n"
    "      asm volatile(\n"
    "          \"st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];\" "
    "::\"r\"(to),\n"
    "          \"r\"(*(const unsigned*)&value), \"r\"(by) : \"memory\");\n"
    "  }\n"
    "}\n\n";

std::string TextOf(Helper helper, const CudaSource& source) {
  switch (helper) {
    case Helper::kVectorAccess:
      return std::string(kVectorAccessText);
    case Helper::kBytes:
      return std::string(kBytesText);
    case Helper::kF16:
      return std::string(kF16Text);
    case Helper::kBf16:
      return std::string(kBf16Text);
    case Helper::kF16Arithmetic:
      return NarrowArithmeticText(ScalarType::kF16);
    case Helper::kBf16Arithmetic:
      return NarrowArithmeticText(ScalarType::kBF16);
    case Helper::kExtremes:
      return std::string(kExtremesText);
    case Helper::kHidden:
      return std::string(kHiddenText);
    case Helper::kApproximations:
      return std::string(kApproximationsText);
    case Helper::kDivision:
      return std::string(kDivisionText);
    case Helper::kNarrowDivision:
      return std::string(kNarrowDivisionText);
    case Helper::kOne:
      return std::string(kOneText);
    case Helper::kSigns:
      return std::string(kSignsText);
    case Helper::kMatchLanes:
      return std::string(kMatchLanesText);
    case Helper::kBlockMultiply:
      return std::string(BlockMultiplyText());
    case Helper::kCluster:
      return std::string(kClusterText);
    case Helper::kMbarriers:
      return std::string(kMbarriersText);
    case Helper::kPhases:
      return std::string(PhasesText());
    case Helper::kTensorMaps:
      return TensorMapsText(source);
    case Helper::kWarpgroupMultiply:
      return WarpgroupMultiplyText(source);
  }
  return {};
}

}  // namespace

std::string Prelude(const CudaSource& source) {
  std::string text;
  for (Helper helper : source.helpers) text += TextOf(helper, source);
  return text;
}

}  // namespace tokamak::cuda
