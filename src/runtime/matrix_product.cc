// Matrix products by OpenBLAS on our threads. The library is loaded at run time and restricted to
// one thread per call; a product is cut into blocks of the result that threads compute
// independently. Blocks follow from the shape alone, so results do not depend on the number of
// threads.
//
//   C = A B, row-major   is   C^T = B^T A^T, column-major        (operands are swapped)
//
// More blocks balance better, but every block packs its operands again: the limits below are
// measured. Vectors use gemv, with blocks along the side that is read contiguously. Builds of
// OpenBLAS without thread support are not reentrant; a mutex then serializes calls.

#include "runtime/matrix_product.h"

#include <algorithm>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>

#include "runtime/thread_pool.h"
#include "support/ceil_div.h"

namespace tokamak {
namespace {

// ---- the library

constexpr int kColumnMajor = 102, kPlain = 111, kTransposed = 112;  // enumerators of cblas.h

template <typename T>
inline constexpr bool kIsComplex = !std::is_floating_point_v<T>;
// Scaling factors are passed by value, those of complex products by address.
template <typename T>
using GemmFactor = std::conditional_t<kIsComplex<T>, const void*, T>;
template <typename T>
using Elements = std::conditional_t<kIsComplex<T>, void, T>;

template <typename T>
struct Routines {
  void (*gemm)(int order, int lhs, int rhs, int m, int n, int k, GemmFactor<T> alpha,
               const Elements<T>* a, int lda, const Elements<T>* b, int ldb, GemmFactor<T> beta,
               Elements<T>* c, int ldc) = nullptr;
  void (*gemv)(int order, int transposed, int m, int n, GemmFactor<T> alpha, const Elements<T>* a,
               int lda, const Elements<T>* x, int incx, GemmFactor<T> beta, Elements<T>* y,
               int incy) = nullptr;
};

struct Library {
  // Builds without thread support hand out scratch memory without a lock: concurrent calls corrupt
  // each other's results (measured with OpenBLAS 0.3.21: one call in six).
  bool one_at_a_time = false;
  Routines<float> f32;
  Routines<double> f64;
  Routines<std::complex<float>> c64;
  Routines<std::complex<double>> c128;
};

template <typename T>
bool Take(void* handle, char letter, Routines<T>& routines) {
  auto find = [&](const char* name, auto*& routine) {
    routine = reinterpret_cast<std::remove_reference_t<decltype(routine)>>(
        dlsym(handle, (std::string("cblas_") + letter + name).c_str()));
    return routine != nullptr;
  };
  return find("gemm", routines.gemm) && find("gemv", routines.gemv);
}

std::unique_ptr<Library> OpenAs(const std::string& name) {
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return nullptr;
  auto library = std::make_unique<Library>();
  auto set_threads = reinterpret_cast<void (*)(int)>(dlsym(handle, "openblas_set_num_threads"));
  if (set_threads != nullptr && Take(handle, 's', library->f32) &&
      Take(handle, 'd', library->f64) && Take(handle, 'c', library->c64) &&
      Take(handle, 'z', library->c128)) {
    set_threads(1);
    auto is_parallel = reinterpret_cast<int (*)()>(dlsym(handle, "openblas_get_parallel"));
    library->one_at_a_time = is_parallel == nullptr || is_parallel() == 0;
    return library;
  }
  dlclose(handle);
  return nullptr;
}

#if defined(__x86_64__)
#define TOK_MULTIARCH "x86_64-linux-gnu"
#else
#define TOK_MULTIARCH "aarch64-linux-gnu"
#endif

std::unique_ptr<Library> OpenLibrary() {
  const char* given = std::getenv("TOKAMAK_BLAS");
  std::string_view wanted = given != nullptr ? given : "";
  if (wanted == "off") return nullptr;
  if (!wanted.empty()) return OpenAs(std::string(wanted));
  for (const char* name : {"/usr/lib/" TOK_MULTIARCH "/openblas-pthread/libopenblas.so.0",
                           "libopenblas.so.0", "libopenblas.so"})
    if (std::unique_ptr<Library> library = OpenAs(name)) return library;
  return nullptr;
}

const Library* TheLibrary() {
  static const Library* library = OpenLibrary().release();  // never closed: it may have threads
  return library;
}

std::mutex& OneAtATime() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

template <typename T>
const Routines<T>& RoutinesOf() {
  const Library& library = *TheLibrary();
  if constexpr (std::is_same_v<T, float>) {
    return library.f32;
  } else if constexpr (std::is_same_v<T, double>) {
    return library.f64;
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    return library.c64;
  } else {
    return library.c128;
  }
}

// ---- blocks

// A product is split while a block has more than kBlockWork multiplications and there are fewer
// than kSomeBlocks, or more than kMuchWork and fewer than kManyBlocks. Every block packs both of
// its operands again (measured on one thread, 512 x 512 x 512: 2.3 ms as one block, 2.6 as 8 of 256
// x 128, 2.8 as 16; 1024 x 1024 x 1024: 20, 23 and 24).
constexpr int64_t kBlockWork = int64_t{1} << 23, kSomeBlocks = 8;
constexpr int64_t kMuchWork = int64_t{1} << 26, kManyBlocks = 32;
// The shortest side that is split, and the granularity of sides. Tuned with the sizes above.
constexpr int64_t kLeastSide = 128, kSideStep = 32;
// Matrix-vector products: minimum columns of a block if the matrix is read transposed (measured on
// 2048 x 2048: 3.5 ms with 32 columns, 0.8 with 512); target number of blocks, and minimum elements
// of one (tuned with them).
constexpr int64_t kLeastColumns = 512, kVectorBlocks = 64, kVectorWork = int64_t{1} << 16;

int64_t Half(int64_t side) {
  return CeilDiv(CeilDiv(side, 2), kSideStep) * kSideStep;
}

// Multiplications per nanosecond of one thread, roughly.
double RateOf(MatrixType type, bool is_vector) {
  double f32 = is_vector ? 8 : 40;
  switch (type) {
    case MatrixType::kF32:
      return f32;
    case MatrixType::kF64:
      return f32 / 2;
    case MatrixType::kC64:
      return f32 / 4;
    case MatrixType::kC128:
      return f32 / 8;
  }
  return f32;
}

void CutVector(const MatrixProduct& product, ProductBlocks& blocks) {
  // Each row, or column, of the matrix is read once.
  bool down = product.n == 1;
  int64_t& side = down ? blocks.rows : blocks.columns;
  bool along = (down ? product.lhs.column : product.rhs.row) == 1;
  int64_t least = std::max(CeilDiv(kVectorWork, product.k), along ? 1 : kLeastColumns);
  int64_t cut = CeilDiv(CeilDiv(side, kVectorBlocks), kSideStep) * kSideStep;
  side = std::min(side, std::max(cut, least));
}

void CutMatrix(const MatrixProduct& product, ProductBlocks& blocks) {
  while (true) {
    int64_t count =
        product.BatchCount() * CeilDiv(product.m, blocks.rows) * CeilDiv(product.n, blocks.columns);
    int64_t area = blocks.rows * blocks.columns;
    bool wanted = (count < kSomeBlocks && area > kBlockWork / product.k) ||
                  (count < kManyBlocks && area > kMuchWork / product.k);
    int64_t& longer = blocks.rows > blocks.columns ? blocks.rows : blocks.columns;
    if (!wanted || longer < kLeastSide) return;
    longer = Half(longer);
  }
}

// ---- calls

template <typename T>
GemmFactor<T> FactorOf(const T& x) {
  if constexpr (kIsComplex<T>) {
    return &x;
  } else {
    return x;
  }
}
template <typename T>
const T kOne(1);
template <typename T>
const T kZero(0);

// A leading dimension that the library accepts, even if there is only one row.
int Leading(int64_t distance, int64_t least) {
  return static_cast<int>(std::max(distance, least));
}

// The result has the length of one side. It is zeroed and accumulated into: some versions multiply
// the previous contents by 0, which keeps a NaN.
template <typename T>
void MultiplyVector(const MatrixProduct& p, const T* lhs, const T* rhs, T* result, int64_t length) {
  bool down = p.n == 1;
  // The matrix, `length` by k, and the vector.
  const MatrixProduct::Operand matrix =
      down ? p.lhs : MatrixProduct::Operand{p.rhs.column, p.rhs.row};
  const T *a = down ? lhs : rhs, *x = down ? rhs : lhs;
  auto step = static_cast<int>(std::max<int64_t>(down ? p.rhs.row : p.lhs.column, 1));
  auto k = static_cast<int>(p.k), size = static_cast<int>(length);
  const auto gemv = RoutinesOf<T>().gemv;
  std::fill_n(result, length, T(0));
  if (matrix.column == 1 || p.k == 1) {
    gemv(kColumnMajor, kTransposed, k, size, FactorOf(kOne<T>), a, Leading(matrix.row, p.k), x,
         step, FactorOf(kOne<T>), result, 1);
  } else {
    gemv(kColumnMajor, kPlain, size, k, FactorOf(kOne<T>), a, Leading(matrix.column, length), x,
         step, FactorOf(kOne<T>), result, 1);
  }
}

template <typename T>
void Multiply(const MatrixProduct& p, const T* lhs, const T* rhs, T* result, int64_t rows,
              int64_t columns) {
  if (p.IsVector()) return MultiplyVector(p, lhs, rhs, result, p.n == 1 ? rows : columns);
  // The library's matrices are column-major: our rhs is its first operand.
  bool rhs_plain = p.rhs.column == 1, lhs_plain = p.lhs.column == 1;
  int ldb = rhs_plain ? Leading(p.rhs.row, columns) : Leading(p.rhs.column, p.k);
  int lda = lhs_plain ? Leading(p.lhs.row, p.k) : Leading(p.lhs.column, rows);
  RoutinesOf<T>().gemm(kColumnMajor, rhs_plain ? kPlain : kTransposed,
                       lhs_plain ? kPlain : kTransposed, static_cast<int>(columns),
                       static_cast<int>(rows), static_cast<int>(p.k), FactorOf(kOne<T>), rhs, ldb,
                       lhs, lda, FactorOf(kZero<T>), result, static_cast<int>(p.n));
}

template <typename T>
void RunBlock(const ProductCall& call, const ProductArrays& arrays, int64_t block) {
  const MatrixProduct& p = call.product;
  const ProductBlocks& blocks = call.blocks;
  int64_t columns_of_blocks = block % blocks.columns_of_blocks,
          rest = block / blocks.columns_of_blocks;
  int64_t down = rest % blocks.down, item = rest / blocks.down;
  int64_t row = down * blocks.rows, column = columns_of_blocks * blocks.columns;
  int64_t rows = std::min(blocks.rows, p.m - row), columns = std::min(blocks.columns, p.n - column);
  T* result = static_cast<T*>(arrays.result) + (item * p.m + row) * p.n + column;
  if (p.k == 0) {
    for (int64_t i = 0; i < rows; ++i) std::fill_n(result + i * p.n, columns, T(0));
    return;
  }
  const T* lhs = static_cast<const T*>(arrays.lhs) + row * p.lhs.row;
  const T* rhs = static_cast<const T*>(arrays.rhs) + column * p.rhs.column;
  for (auto it = p.batch.rbegin(); it != p.batch.rend(); ++it) {
    lhs += item % it->count * it->lhs;
    rhs += item % it->count * it->rhs;
    item /= it->count;
  }
  std::unique_lock<std::mutex> lock(OneAtATime(), std::defer_lock);
  if (TheLibrary()->one_at_a_time) lock.lock();
  Multiply(p, lhs, rhs, result, rows, columns);
}

template <typename T>
void RunBlocks(const ProductCall& call, const ProductArrays& arrays, int64_t begin, int64_t end,
               const std::atomic<bool>* stop) {
  for (int64_t i = begin; i < end; ++i) {
    if (stop != nullptr && stop->load(std::memory_order_relaxed)) return;
    RunBlock<T>(call, arrays, i);
  }
}

}  // namespace

size_t BytesOf(MatrixType type) {
  return type == MatrixType::kF32 ? 4 : type == MatrixType::kC128 ? 16 : 8;
}

int64_t MatrixProduct::BatchCount() const {
  int64_t count = 1;
  for (const Batch& dimension : batch) count *= dimension.count;
  return count;
}

ProductBlocks BlocksOf(const MatrixProduct& product) {
  ProductBlocks blocks{.rows = product.m, .columns = product.n};
  if (product.BatchCount() == 0 || product.m == 0 || product.n == 0) return blocks;
  if (product.k > 0) product.IsVector() ? CutVector(product, blocks) : CutMatrix(product, blocks);
  blocks.down = CeilDiv(product.m, blocks.rows);
  blocks.columns_of_blocks = CeilDiv(product.n, blocks.columns);
  blocks.count = product.BatchCount() * blocks.down * blocks.columns_of_blocks;
  double work = static_cast<double>(blocks.rows) * static_cast<double>(blocks.columns) *
                static_cast<double>(product.k);
  double ns = work / RateOf(product.type, product.IsVector()) + 100;
  blocks.min_chunk = std::max<int64_t>(static_cast<int64_t>(kMinChunkNs / ns), 1);
  return blocks;
}

std::string ToString(const MatrixProduct& product) {
  constexpr const char* kNames[] = {"f32", "f64", "c64", "c128"};
  std::string text = kNames[static_cast<size_t>(product.type)];
  if (int64_t batch = product.BatchCount(); batch != 1)
    text += " " + std::to_string(batch) + " times";
  text += " " + std::to_string(product.m) + " x " + std::to_string(product.n) + " x " +
          std::to_string(product.k);
  if (product.lhs.column != 1) text += ", lhs transposed";
  if (product.rhs.column != 1) text += ", rhs transposed";
  return text;
}

std::string ToString(const ProductCall& call) {
  if (call.convolution) return ToString(*call.convolution);
  return ToString(call.product) + " in " + std::to_string(call.blocks.count) + " blocks";
}

bool HasMatrixLibrary() {
  return TheLibrary() != nullptr;
}

void RunProduct(const ProductCall& call, const ProductArrays& arrays, int64_t begin, int64_t end,
                const std::atomic<bool>* stop) {
  switch (call.product.type) {
    case MatrixType::kF32:
      return RunBlocks<float>(call, arrays, begin, end, stop);
    case MatrixType::kF64:
      return RunBlocks<double>(call, arrays, begin, end, stop);
    case MatrixType::kC64:
      return RunBlocks<std::complex<float>>(call, arrays, begin, end, stop);
    case MatrixType::kC128:
      return RunBlocks<std::complex<double>>(call, arrays, begin, end, stop);
  }
}

}  // namespace tokamak
