// Sources of the handwritten kernels that surround library calls. The texts are templates of CUDA
// C++ in which CallKernelText replaces placeholders, so that one text serves f32, f64, c64 and
// c128:
//
//   NAME            the name of the kernel
//   REAL            float or double
//   NUMBER          the element type: REAL, or a struct of two
//   NOT_A_NUMBER    a quiet NaN of type REAL
//   SMALLEST        the smallest normal number of type REAL
//   SquareRoot      sqrt or sqrtf
//
// Arithmetic on elements is written with functions (Product, Conjugate ...), which a prelude
// defines for real or complex elements. Matrices are row-major and batched; blockIdx selects the
// matrix. NaN must not be lost: comparisons are written so that NaN counts as a failure (`!(x >
// 0)`), because the libraries return finite numbers for some NaN inputs.

#include "backend/cuda/call_kernels.h"

#include <utility>

namespace tokamak::cuda {
namespace {

constexpr const char* kScaleText = R"(
extern "C" __global__ void __launch_bounds__(256) NAME(REAL* to, const REAL* from, long long count,
                                                        REAL factor) {
  long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
    to[i] = from[i] * factor;
}
)";

// A bin that is its own mirror image is averaged with the conjugate of its mirror element.
constexpr const char* kSpectrumText = R"(
extern "C" __global__ void __launch_bounds__(256) NAME(REAL* to, const REAL* from, long long count,
                                                       REAL factor, int last, int outer, int inner,
                                                       int even) {
  long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
    REAL re = from[2 * i], im = from[2 * i + 1];
    long long line = i / last;
    int at = (int)(i - line * last);
    if (at == 0 || (even && at == last - 1)) {
      long long x = line % inner, rest = line / inner, y = rest % outer, item = rest / outer;
      long long mirror = (item * outer + (outer - y) % outer) * inner + (inner - x) % inner;
      mirror = 2 * (mirror * last + at);
      re = (REAL)0.5 * re + (REAL)0.5 * from[mirror];
      im = (REAL)0.5 * im - (REAL)0.5 * from[mirror + 1];
    }
    to[2 * i] = re * factor;
    to[2 * i + 1] = im * factor;
  }
}
)";

// Tiles in shared memory keep both loads and stores coalesced; the 33rd column avoids bank
// conflicts.
constexpr const char* kTransposeText = R"(
extern "C" __global__ void __launch_bounds__(256) NAME(NUMBER* to, const NUMBER* from, int rows,
                                                       int columns, long long stride,
                                                       int conjugates) {
  __shared__ NUMBER tile[32][33];
  from += stride * blockIdx.z;
  to += (long long)rows * columns * blockIdx.z;
  int row = blockIdx.y * 32 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
  for (int i = 0; i < 32; i += 8)
    if (row + i < rows && column < columns)
      tile[threadIdx.y + i][threadIdx.x] = from[(long long)(row + i) * columns + column];
  __syncthreads();
  row = blockIdx.x * 32 + threadIdx.y;
  column = blockIdx.y * 32 + threadIdx.x;
  for (int i = 0; i < 32; i += 8)
    if (row + i < columns && column < rows) {
      NUMBER value = tile[threadIdx.x][threadIdx.y + i];
      if (conjugates) value = Conjugate(value);
      to[(long long)(row + i) * rows + column] = value;
    }
}
)";

constexpr const char* kAddressesText = R"(
extern "C" __global__ void __launch_bounds__(256) NAME(char** to, char* first, long long bytes,
                                                       long long count) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] = first + bytes * i;
}
)";

// The library does not report failure if an element is NaN.
constexpr const char* kCheckCholeskyText = R"(
extern "C" __global__ void __launch_bounds__(256) NAME(int* info, const NUMBER* factor, int n) {
  factor += (long long)n * n * blockIdx.x;
  int bad = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    bad |= !(RealPart(factor[(long long)i * n + i]) > 0);
  bad = __syncthreads_or(bad);
  if (threadIdx.x == 0 && bad && info[blockIdx.x] == 0) info[blockIdx.x] = 1;
}
)";

constexpr const char* kFinishText = R"(
extern "C" __global__ void __launch_bounds__(256) NAME(NUMBER* factor, const int* info, int n,
                                                       int lower) {
  factor += (long long)n * n * blockIdx.z;
  bool failed = info[blockIdx.z] != 0;
  int column = blockIdx.x * 32 + threadIdx.x;
  for (int row = blockIdx.y * 32 + threadIdx.y; row < blockIdx.y * 32 + 32; row += 8) {
    if (row >= n || column >= n) continue;
    bool other = lower ? column > row : column < row;
    if (failed || other) factor[(long long)row * n + column] = Number(failed ? NOT_A_NUMBER : 0);
  }
}
)";

constexpr const char* kFiniteText = R"(
extern "C" __global__ void __launch_bounds__(256) NAME(int* info, const NUMBER* a, int rows,
                                                       int columns, int triangle) {
  long long size = (long long)rows * columns;
  a += size * blockIdx.x;
  int bad = 0;
  for (long long i = threadIdx.x; i < size; i += blockDim.x) {
    long long row = i / columns, column = i - row * columns;
    if (triangle == 1 ? column > row : triangle == 2 ? column < row : false) continue;
    NUMBER x = a[i];
    REAL re = RealPart(x) - RealPart(x), im = ImaginaryPart(x) - ImaginaryPart(x);
    bad |= !(re == 0 && im == 0);
  }
  bad = __syncthreads_or(bad);
  if (threadIdx.x == 0 && bad) info[blockIdx.x] = 1;
}
)";

constexpr const char* kFillNanText = R"(
extern "C" __global__ void __launch_bounds__(256) NAME(NUMBER* a, const int* flags, int rows,
                                                       int columns) {
  if (flags[blockIdx.x] == 0) return;
  long long size = (long long)rows * columns;
  a += size * blockIdx.x;
  for (long long i = threadIdx.x; i < size; i += blockDim.x) a[i] = Number(NOT_A_NUMBER);
}
)";

// One thread performs the swaps, in shared memory if the rows fit.
constexpr const char* kPermutationText = R"(
extern "C" __global__ void __launch_bounds__(256) NAME(int* to, const int* pivots, int swaps,
                                                       int rows) {
  __shared__ int shared_rows[4096], shared_pivots[4096];
  to += (long long)rows * blockIdx.x;
  pivots += (long long)swaps * blockIdx.x;
  bool fits_shared = rows <= 4096 && swaps <= 4096;
  int* order = fits_shared ? shared_rows : to;
  for (int i = threadIdx.x; i < rows; i += blockDim.x) order[i] = i;
  if (fits_shared)
    for (int i = threadIdx.x; i < swaps; i += blockDim.x) shared_pivots[i] = pivots[i];
  const int* next = fits_shared ? shared_pivots : pivots;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 0; i < swaps; ++i) {
      int other = next[i];
      if (other < 0 || other >= rows || i >= rows) continue;
      int held = order[i];
      order[i] = order[other];
      order[other] = held;
    }
  }
  __syncthreads();
  if (fits_shared)
    for (int i = threadIdx.x; i < rows; i += blockDim.x) to[i] = order[i];
}
)";

// Householder QR in shared memory, a thread per column. Values that do not depend on the column are
// computed redundantly by all threads. The norm is scaled by the largest element, so that squares
// neither overflow nor underflow.
constexpr const char* kSmallQrText = R"(
extern "C" __global__ void __launch_bounds__(128) NAME(NUMBER* factors, NUMBER* taus,
                                                       const NUMBER* from, int m, int n) {
  extern __shared__ __align__(16) unsigned char memory[];
  NUMBER* a = (NUMBER*)memory;
  int size = m * n, k = m < n ? m : n;
  from += (long long)size * blockIdx.x;
  factors += (long long)size * blockIdx.x;
  taus += (long long)k * blockIdx.x;
  for (int i = threadIdx.x; i < size; i += blockDim.x) a[i] = from[i];
  __syncthreads();
  for (int j = 0; j < k; ++j) {
    REAL below = 0, sum = 0;
    for (int i = j + 1; i < m; ++i) below = Larger(below, a[i * n + j]);
    NUMBER alpha = a[j * n + j];
    REAL largest = Larger(below, alpha);
    // Of a column that is 0 below, and real, there is nothing to reflect.
    bool reflects = !(below < SMALLEST) || !(Magnitude(ImaginaryPart(alpha)) < SMALLEST);
    REAL inverse = 1 / largest;
    for (int i = j; i < m; ++i) {
      REAL re = RealPart(a[i * n + j]) * inverse, im = ImaginaryPart(a[i * n + j]) * inverse;
      sum = sum + re * re + im * im;
    }
    REAL beta = largest * SquareRoot(sum);
    if (RealPart(alpha) >= 0) beta = -beta;
    NUMBER tau = Number(0), scale = Number(0);
    if (reflects) {
      tau = Pair((beta - RealPart(alpha)) / beta, -ImaginaryPart(alpha) / beta);
      scale = Inverse(Pair(RealPart(alpha) - beta, ImaginaryPart(alpha)));
      for (int c = j + 1 + threadIdx.x; c < n; c += blockDim.x) {
        NUMBER w = a[j * n + c];
        for (int i = j + 1; i < m; ++i)
          w = Sum(w, Product(Conjugate(Product(a[i * n + j], scale)), a[i * n + c]));
        w = Product(Conjugate(tau), w);
        a[j * n + c] = Difference(a[j * n + c], w);
        for (int i = j + 1; i < m; ++i)
          a[i * n + c] = Difference(a[i * n + c], Product(Product(a[i * n + j], scale), w));
      }
    }
    __syncthreads();
    if (reflects)
      for (int i = j + 1 + threadIdx.x; i < m; i += blockDim.x)
        a[i * n + j] = Product(a[i * n + j], scale);
    if (threadIdx.x == 0) {
      if (reflects) a[j * n + j] = Pair(beta, 0);
      taus[j] = tau;
    }
    __syncthreads();
  }
  for (int i = threadIdx.x; i < size; i += blockDim.x) factors[i] = a[i];
}
)";

// Applies the reflectors from the last to the first (backward accumulation): reflector j changes
// rows and columns from j on only.
constexpr const char* kSmallReflectorsText = R"(
extern "C" __global__ void __launch_bounds__(128) NAME(NUMBER* to, const NUMBER* from,
                                                       const NUMBER* taus, int m, int n, int k) {
  extern __shared__ __align__(16) unsigned char memory[];
  NUMBER* a = (NUMBER*)memory;
  int size = m * n;
  from += (long long)size * blockIdx.x;
  to += (long long)size * blockIdx.x;
  taus += (long long)k * blockIdx.x;
  for (int i = threadIdx.x; i < size; i += blockDim.x) {
    int row = i / n, column = i - row * n;
    a[i] = column < k ? from[i] : Pair(row == column ? 1 : 0, 0);
  }
  __syncthreads();
  for (int j = k - 1; j >= 0; --j) {
    NUMBER tau = taus[j];
    for (int c = j + 1 + threadIdx.x; c < n; c += blockDim.x) {
      NUMBER w = a[j * n + c];
      for (int i = j + 1; i < m; ++i)
        w = Sum(w, Product(Conjugate(a[i * n + j]), a[i * n + c]));
      w = Product(tau, w);
      a[j * n + c] = Difference(a[j * n + c], w);
      for (int i = j + 1; i < m; ++i)
        a[i * n + c] = Difference(a[i * n + c], Product(a[i * n + j], w));
    }
    __syncthreads();
    for (int i = threadIdx.x; i < m; i += blockDim.x) {
      NUMBER negative = Difference(Number(0), Product(tau, a[i * n + j]));
      a[i * n + j] = i < j ? Number(0) : i == j ? Difference(Pair(1, 0), tau) : negative;
    }
    __syncthreads();
  }
  for (int i = threadIdx.x; i < size; i += blockDim.x) to[i] = a[i];
}
)";

const char* TextOf(CallKernel kernel) {
  switch (kernel) {
    case CallKernel::kScale:
      return kScaleText;
    case CallKernel::kSpectrum:
      return kSpectrumText;
    case CallKernel::kTranspose:
      return kTransposeText;
    case CallKernel::kAddresses:
      return kAddressesText;
    case CallKernel::kCheckCholesky:
      return kCheckCholeskyText;
    case CallKernel::kFinish:
      return kFinishText;
    case CallKernel::kFinite:
      return kFiniteText;
    case CallKernel::kFillNan:
      return kFillNanText;
    case CallKernel::kPermutation:
      return kPermutationText;
    case CallKernel::kSmallQr:
      return kSmallQrText;
    case CallKernel::kSmallReflectors:
      return kSmallReflectorsText;
  }
  return "";
}

constexpr const char* kNames[] = {"scale",          "spectrum", "transpose",       "addresses",
                                  "check_cholesky", "finish",   "finite",          "fill_nan",
                                  "permutation",    "small_qr", "small_reflectors"};

// Elements, real or complex.
constexpr const char* kRealPrelude = R"(
typedef REAL NUMBER;
__device__ inline REAL RealPart(REAL x) { return x; }
__device__ inline REAL ImaginaryPart(REAL) { return 0; }
__device__ inline REAL Conjugate(REAL x) { return x; }
__device__ inline NUMBER Number(REAL x) { return x; }
__device__ inline NUMBER Pair(REAL re, REAL) { return re; }
__device__ inline NUMBER Sum(NUMBER x, NUMBER y) { return x + y; }
__device__ inline NUMBER Difference(NUMBER x, NUMBER y) { return x - y; }
__device__ inline NUMBER Product(NUMBER x, NUMBER y) { return x * y; }
__device__ inline NUMBER Inverse(NUMBER x) { return 1 / x; }
)";

constexpr const char* kComplexPrelude = R"(
struct __align__(2 * sizeof(REAL)) NUMBER { REAL re, im; };
__device__ inline REAL RealPart(NUMBER z) { return z.re; }
__device__ inline REAL ImaginaryPart(NUMBER z) { return z.im; }
__device__ inline NUMBER Pair(REAL re, REAL im) { NUMBER z; z.re = re; z.im = im; return z; }
__device__ inline NUMBER Conjugate(NUMBER z) { return Pair(z.re, -z.im); }
__device__ inline NUMBER Number(REAL x) { return Pair(x, x); }
__device__ inline NUMBER Sum(NUMBER x, NUMBER y) { return Pair(x.re + y.re, x.im + y.im); }
__device__ inline NUMBER Difference(NUMBER x, NUMBER y) { return Pair(x.re - y.re, x.im - y.im); }
__device__ inline NUMBER Product(NUMBER x, NUMBER y) {
  return Pair(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re);
}
__device__ inline NUMBER Inverse(NUMBER z) {
  REAL x = z.re < 0 ? -z.re : z.re, y = z.im < 0 ? -z.im : z.im, most = x > y ? x : y;
  REAL re = z.re / most, im = z.im / most, sum = (re * re + im * im) * most;
  return Pair(re / sum, -im / sum);
}
)";

constexpr const char* kBothPrelude = R"(
__device__ inline REAL Magnitude(REAL x) { return x < 0 ? -x : x; }
// What is no number is larger than all.
__device__ inline REAL Larger(REAL x, NUMBER z) {
  REAL re = Magnitude(RealPart(z)), im = Magnitude(ImaginaryPart(z));
  if (x == x && !(re <= x)) x = re;
  if (x == x && !(im <= x)) x = im;
  return x;
}
)";

void ReplaceAll(std::string& text, const std::string& word, const std::string& by) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + by.size()))
    text.replace(at, word.size(), by);
}

}  // namespace

CudaSource CallKernelText(CallKernel kernel, MatrixElement element) {
  bool is_double = element == MatrixElement::kF64 || element == MatrixElement::kC128;
  bool is_complex = element == MatrixElement::kC64 || element == MatrixElement::kC128;
  CudaSource source;
  source.name = std::string("tokamak_call_") + kNames[static_cast<size_t>(kernel)] + "_" +
                "sdcz"[static_cast<size_t>(element)];
  source.text =
      std::string(is_complex ? kComplexPrelude : kRealPrelude) + kBothPrelude + TextOf(kernel);
  bool has_rows = kernel == CallKernel::kTranspose || kernel == CallKernel::kFinish;
  bool is_small = kernel == CallKernel::kSmallQr || kernel == CallKernel::kSmallReflectors;
  source.threads = has_rows ? std::array{kTransposeTile, kTransposeRows, 1}
                            : std::array{is_small ? kSmallThreads : kCallThreads, 1, 1};
  ReplaceAll(source.text, "NAME", source.name);
  ReplaceAll(
      source.text, "NOT_A_NUMBER",
      is_double ? "__longlong_as_double(0x7ff8000000000000LL)" : "__int_as_float(0x7fc00000)");
  ReplaceAll(source.text, "SMALLEST", is_double ? "2.2250738585072014e-308" : "1.17549435e-38f");
  ReplaceAll(source.text, "SquareRoot", is_double ? "sqrt" : "sqrtf");
  ReplaceAll(source.text, "NUMBER", is_complex ? "Complex" : "Real");
  ReplaceAll(source.text, "REAL", is_double ? "double" : "float");
  return source;
}

}  // namespace tokamak::cuda
