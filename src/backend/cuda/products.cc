// Matrix products by cuBLASLt. The library is column-major and our arrays are row-major, so each
// matrix looks transposed to it. No data moves: the operands are swapped instead,
//
//   C = A B   row-major      is      C^T = B^T A^T   column-major      (first = rhs, second = lhs)
//
// An operand that is column-major in our arrays, such as a transposed one, sets the library's
// transpose flag. Batch dimensions are merged into one as long as a single stride describes them;
// the library iterates over that one, and Run issues a call for each index of the others.
//
// Prepare asks the heuristics for one algorithm, given the workspace limit and the true alignment
// of the matrices.

#include "backend/cuda/products.h"

#include <algorithm>
#include <dlfcn.h>
#include <numeric>

#include <fmt/format.h>

#include "backend/cuda/library_paths.h"

namespace tokamak::cuda {

// Functions and enumerators of cublasLt.h (CUDA 12 and 13); 0 is success.
struct CublasLt::Functions {
  struct Algorithm {
    uint64_t data[8];
  };
  struct Heuristic {
    Algorithm algorithm;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
  };
  int (*create)(Handle*) = nullptr;
  int (*create_operation)(Handle*, int compute, int scale) = nullptr;
  int (*destroy_operation)(Handle) = nullptr;
  int (*set_operation)(Handle, int, const void*, size_t) = nullptr;
  int (*create_layout)(Handle*, int type, uint64_t rows, uint64_t columns, int64_t ld) = nullptr;
  int (*destroy_layout)(Handle) = nullptr;
  int (*set_layout)(Handle, int, const void*, size_t) = nullptr;
  int (*create_preference)(Handle*) = nullptr;
  int (*destroy_preference)(Handle) = nullptr;
  int (*set_preference)(Handle, int, const void*, size_t) = nullptr;
  int (*choose)(Handle, Handle, Handle, Handle, Handle, Handle, Handle, int, Heuristic*,
                int*) = nullptr;
  int (*multiply)(Handle, Handle, const void*, const void*, Handle, const void*, Handle,
                  const void*, const void*, Handle, void*, Handle, const Algorithm*, void*, size_t,
                  Handle) = nullptr;
};

namespace {

constexpr int kTransposeFirst = 3, kTransposeSecond = 4;  // attributes of an operation
constexpr int kBatchCount = 5, kBatchStride = 6;          // attributes of a layout
constexpr int kMaxWorkspace = 1;                          // attribute of a preference
constexpr int kAlignments[] = {5, 6, 7, 8};  // attributes: alignment of operands and result
constexpr int kCompute32F = 68, kComputeTf32 = 77, kCompute64F = 70;

int DataType(MatrixType type) {
  switch (type) {
    case MatrixType::kF32:
      return 0;
    case MatrixType::kF64:
      return 1;
    case MatrixType::kC64:
      return 4;
    case MatrixType::kC128:
      return 5;
  }
  return 0;
}

using Narrow = ProductKind::Narrow;

int DataType(MatrixType type, Narrow narrow) {
  return narrow == Narrow::kBF16 ? 14 : narrow == Narrow::kF16 ? 2 : DataType(type);
}
int64_t WidthOf(MatrixType type, Narrow narrow) {
  return narrow == Narrow::kNo ? static_cast<int64_t>(BytesOf(type)) : 2;
}

int ComputeType(MatrixType type, const ProductKind& kind) {
  if (type == MatrixType::kF64 || type == MatrixType::kC128) return kCompute64F;
  return kind.tf32 && kind.factors == Narrow::kNo ? kComputeTf32 : kCompute32F;
}

// Alignment of every matrix of the product in bytes: without it the library assumes 256.
uint32_t AlignmentOf(const LtProduct& lt, int64_t width, int64_t result_width) {
  int64_t together = 64;  // alignment of arrays
  for (const MatrixProduct::Batch& batch : lt.outer)
    together = std::gcd(together, std::gcd(batch.lhs * width, batch.rhs * width));
  if (!lt.outer.empty())
    together = std::gcd(together, lt.batch * lt.result.batch_stride * result_width);
  return static_cast<uint32_t>(together);
}

Error Failed(const std::string& what, int status) {
  return MakeError(ErrorCode::kDeviceFault, fmt::format("cuBLASLt: {}: status {}", what, status));
}

// An operand of rows x columns with these strides, as a column-major matrix.
LtProduct::Side SideOf(const MatrixProduct::Operand& operand, int64_t rows, int64_t columns) {
  LtProduct::Side side;
  // Row-major here is column-major and transposed there.
  if (operand.column == 1 || columns == 1) {
    side = {.is_transposed = false, .rows = columns, .columns = rows};
    side.leading = std::max(operand.row, columns);
  } else {
    side = {.is_transposed = true, .rows = rows, .columns = columns};
    side.leading = std::max(operand.column, rows);
  }
  return side;
}

}  // namespace

LtProduct LtProductOf(const MatrixProduct& product) {
  LtProduct made;
  made.first = SideOf(product.rhs, product.k, product.n);
  made.second = SideOf(product.lhs, product.m, product.k);
  made.result = {.rows = product.n, .columns = product.m, .leading = product.n};
  made.result.batch_stride = product.m * product.n;
  made.outer = product.batch;
  if (made.outer.empty()) return made;
  // Merges batch dimensions, innermost first, if one stride covers them.
  MatrixProduct::Batch inner = made.outer.back();
  made.outer.pop_back();
  while (!made.outer.empty()) {
    const MatrixProduct::Batch& next = made.outer.back();
    if (next.lhs != inner.lhs * inner.count || next.rhs != inner.rhs * inner.count) break;
    inner.count *= next.count;
    made.outer.pop_back();
  }
  made.batch = inner.count;
  made.first.batch_stride = inner.rhs;
  made.second.batch_stride = inner.lhs;
  return made;
}

// Owns the descriptors of the library.
class CublasLt::Code final : public ProductCode {
 public:
  explicit Code(const Functions& functions) : f(functions) {}
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() override {
    if (operation != nullptr) f.destroy_operation(operation);
    for (Handle layout : layouts)
      if (layout != nullptr) f.destroy_layout(layout);
  }

  const Functions& f;
  MatrixProduct product;
  ProductKind kind;
  LtProduct lt;
  Handle operation = nullptr;
  Handle layouts[3] = {};  // first, second, result
  Functions::Algorithm algorithm{};
  size_t workspace = 0;
};

Result<CublasLt> CublasLt::Load() {
  std::string why;
  void* library = OpenLibrary("libcublasLt.so", why);
  if (library == nullptr) return MakeError(ErrorCode::kNoDriver, "cuBLASLt is not there: " + why);
  static Functions functions;
  auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    return function != nullptr;
  };
  Functions& f = functions;
  if (!find("cublasLtCreate", f.create) || !find("cublasLtMatmulDescCreate", f.create_operation) ||
      !find("cublasLtMatmulDescDestroy", f.destroy_operation) ||
      !find("cublasLtMatmulDescSetAttribute", f.set_operation) ||
      !find("cublasLtMatrixLayoutCreate", f.create_layout) ||
      !find("cublasLtMatrixLayoutDestroy", f.destroy_layout) ||
      !find("cublasLtMatrixLayoutSetAttribute", f.set_layout) ||
      !find("cublasLtMatmulPreferenceCreate", f.create_preference) ||
      !find("cublasLtMatmulPreferenceDestroy", f.destroy_preference) ||
      !find("cublasLtMatmulPreferenceSetAttribute", f.set_preference) ||
      !find("cublasLtMatmulAlgoGetHeuristic", f.choose) || !find("cublasLtMatmul", f.multiply))
    return MakeError(ErrorCode::kNoDriver, "cuBLASLt lacks a function");
  CublasLt lt;
  lt.functions_ = &functions;
  if (int status = f.create(&lt.handle_); status != 0) return Failed("it does not begin", status);
  return lt;
}

Result<const CublasLt*> CublasLt::Open() {
  static const auto* loaded = new Result<CublasLt>(Load());
  if (!loaded->ok()) return loaded->error();
  return &loaded->value();
}

// `status` is sticky: after the first failure no further library call is made, and Code frees what
// exists.
Result<std::shared_ptr<const ProductCode>> CublasLt::Prepare(const MatrixProduct& product,
                                                             const ProductKind& kind) const {
  const Functions& f = *functions_;
  auto code = std::make_shared<Code>(f);
  code->product = product;
  code->kind = kind;
  code->lt = LtProductOf(product);
  const LtProduct& lt = code->lt;
  int types[] = {DataType(product.type, kind.factors), DataType(product.type, kind.factors),
                 DataType(product.type, kind.result)};
  int status =
      f.create_operation(&code->operation, ComputeType(product.type, kind), DataType(product.type));
  auto set_operation = [&](int attribute, bool is_transposed) {
    int value = is_transposed ? 1 : 0;
    if (status == 0) status = f.set_operation(code->operation, attribute, &value, sizeof value);
  };
  set_operation(kTransposeFirst, lt.first.is_transposed);
  set_operation(kTransposeSecond, lt.second.is_transposed);
  const LtProduct::Side* sides[] = {&lt.first, &lt.second, &lt.result};
  for (size_t i = 0; i < 3; ++i) {
    const LtProduct::Side& side = *sides[i];
    if (status == 0)
      status = f.create_layout(&code->layouts[i], types[i], static_cast<uint64_t>(side.rows),
                               static_cast<uint64_t>(side.columns), side.leading);
    auto batch = static_cast<int32_t>(lt.batch);
    if (status == 0 && lt.batch > 1)
      status = f.set_layout(code->layouts[i], kBatchCount, &batch, sizeof batch);
    if (status == 0 && lt.batch > 1)
      status = f.set_layout(code->layouts[i], kBatchStride, &side.batch_stride,
                            sizeof side.batch_stride);
  }
  if (status != 0) return Failed(ToString(product), status);
  Handle preference = nullptr;
  uint64_t most = kWorkspace;
  Functions::Heuristic found{};
  int count = 0;
  status = f.create_preference(&preference);
  if (status == 0) status = f.set_preference(preference, kMaxWorkspace, &most, sizeof most);
  uint32_t aligned =
      AlignmentOf(lt, WidthOf(product.type, kind.factors), WidthOf(product.type, kind.result));
  for (int attribute : kAlignments)
    if (status == 0) status = f.set_preference(preference, attribute, &aligned, sizeof aligned);
  if (status == 0)
    status = f.choose(handle_, code->operation, code->layouts[0], code->layouts[1],
                      code->layouts[2], code->layouts[2], preference, 1, &found, &count);
  if (preference != nullptr) f.destroy_preference(preference);
  if (status != 0 || count == 0) return Failed(ToString(product), status);
  code->algorithm = found.algorithm;
  code->workspace = found.workspace;
  return std::shared_ptr<const ProductCode>(std::move(code));
}

size_t CublasLt::WorkspaceOf(const ProductCode& code) {
  return static_cast<const Code&>(code).workspace;
}

// One call per index of the outer batch dimensions; results are dense in the order of the calls.
Status CublasLt::Run(const ProductCode& product, const ProductArrays& arrays, void* workspace,
                     Handle stream) const {
  const auto& code = static_cast<const Code&>(product);
  const LtProduct& lt = code.lt;
  // Complex constants start with their real part.
  static constexpr float kOne[2] = {1, 0}, kZero[2] = {0, 0};
  static constexpr double kWideOne[2] = {1, 0}, kWideZero[2] = {0, 0};
  bool is_wide = code.product.type == MatrixType::kF64 || code.product.type == MatrixType::kC128;
  const void* one = is_wide ? static_cast<const void*>(kWideOne) : kOne;
  const void* zero = is_wide ? static_cast<const void*>(kWideZero) : kZero;
  int64_t width = WidthOf(code.product.type, code.kind.factors);
  int64_t result_width = WidthOf(code.product.type, code.kind.result);
  int64_t calls = 1;
  for (const MatrixProduct::Batch& batch : lt.outer) calls *= batch.count;
  for (int64_t call = 0; call < calls; ++call) {
    int64_t rest = call, lhs = 0, rhs = 0;
    for (size_t i = lt.outer.size(); i-- > 0;) {
      int64_t at = rest % lt.outer[i].count;
      rest /= lt.outer[i].count;
      lhs += at * lt.outer[i].lhs;
      rhs += at * lt.outer[i].rhs;
    }
    auto* first = static_cast<const std::byte*>(arrays.rhs) + rhs * width;
    auto* second = static_cast<const std::byte*>(arrays.lhs) + lhs * width;
    auto* result = static_cast<std::byte*>(arrays.result) +
                   call * lt.batch * lt.result.batch_stride * result_width;
    int status =
        code.f.multiply(handle_, code.operation, one, first, code.layouts[0], second,
                        code.layouts[1], zero, result, code.layouts[2], result, code.layouts[2],
                        &code.algorithm, workspace, code.workspace, stream);
    if (status != 0) return Failed(ToString(code.product), status);
  }
  return Ok();
}

}  // namespace tokamak::cuda
