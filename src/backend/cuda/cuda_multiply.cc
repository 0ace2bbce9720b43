// The multiply statement, of one thread or of a block.

#include "backend/cuda/cuda_writer.h"

namespace tokamak::cuda {

namespace {

// A thread holds the sums that the kernel IR specifies (MatrixMultiply). kLhsRow and kLhsColumn are
// the strides of lhs between rows and between columns; one of them is 1. The same holds for rhs.
constexpr std::string_view kBlockMultiplyText = R"(
// Operand types of tensor cores: pairs of 16 bits, or f32 truncated to 19 bits (tf32).
enum class Tensor { kBf16, kF16, kTf32 };

template <Tensor kTensor>
__device__ __forceinline__ void TensorMultiply(float* sums, const unsigned* x, const unsigned* y) {
#define TOK_MMA(KIND)                                                                  \
  asm("mma.sync.aligned." KIND " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "       \
      "{%0, %1, %2, %3};"                                                              \
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])                     \
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]))
  if (kTensor == Tensor::kBf16) TOK_MMA("m16n8k16.row.col.f32.bf16.bf16.f32");
  if (kTensor == Tensor::kF16) TOK_MMA("m16n8k16.row.col.f32.f16.f16.f32");
  if (kTensor == Tensor::kTf32) TOK_MMA("m16n8k8.row.col.f32.tf32.tf32.f32");
#undef TOK_MMA
}

// 8 x 8 tiles of 16-byte lines; each lane gives the address of a line. kTurned: transposed.
template <bool kTurned>
__device__ __forceinline__ void LoadSquares(unsigned* to, const void* line) {
  const unsigned at = (unsigned)__cvta_generic_to_shared(line);
  if (kTurned) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at) : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at) : "memory");
  }
}

// A fragment of 16 x kDepth elements: rows 0-7 and 8-15 of the first half of the depth, then of
// the second. kRows: lines are contiguous along the depth, else along the rows. kFirst: the two
// halves of the depth come first. kSquares: 2 without the rows 8-15.
template <typename T, int kDepth, bool kRows, int kStride, bool kFirst, int kSquares>
__device__ __forceinline__ void LoadFragment(unsigned* to, const T* from, int lane) {
  const int quarter = lane / 8 % kSquares, row = (kFirst ? quarter / 2 : quarter % 2) * 8;
  const int depth = (kFirst ? quarter % 2 : quarter / 2) * (kDepth / 2);
  if (kRows) {
    LoadSquares<false>(to, from + (row + lane % 8) * kStride + depth);
  } else if (sizeof(T) == 2) {
    LoadSquares<true>(to, from + (depth + lane % 8) * kStride + row);
  } else {
#pragma unroll
    for (int q = 0; q < kSquares; ++q) {
      const int r = (kFirst ? q / 2 : q % 2) * 8 + lane / 4;
      const int d = (kFirst ? q % 2 : q / 2) * (kDepth / 2) + lane % 4;
      to[q] = *(const unsigned*)(from + d * kStride + r);
    }
  }
}

template <Tensor kTensor, int kWarpRows, int kWarpColumns, int kWarpsAcross, int kDepth, int kLhsRow,
          int kLhsColumn, int kRhsRow, int kRhsColumn, typename T>
__device__ __forceinline__ void BlockMultiplyTensor(
    float (&sums)[kWarpRows * kWarpColumns / 32], const T* lhs, const T* rhs, int thread) {
  constexpr int kStep = 32 / sizeof(T), kHigh = kWarpRows / 16, kWide = kWarpColumns / 8;
  // Fragments of rhs are loaded in pairs, unless there is only one.
  constexpr int kPairs = (kWide + 1) / 2;
  const int lane = thread % 32, warp = thread / 32;
  lhs += warp / kWarpsAcross * kWarpRows * kLhsRow;
  rhs += warp % kWarpsAcross * kWarpColumns * kRhsColumn;
#pragma unroll
  for (int p = 0; p < kDepth; p += kStep) {
    unsigned x[kHigh][4], y[kPairs][4];
#pragma unroll
    for (int i = 0; i < kHigh; ++i)
      LoadFragment<T, kStep, kLhsColumn == 1, kLhsColumn == 1 ? kLhsRow : kLhsColumn, false, 4>(
          x[i], lhs + i * 16 * kLhsRow + p * kLhsColumn, lane);
#pragma unroll
    for (int j = 0; j < kPairs; ++j)
      LoadFragment<T, kStep, kRhsRow == 1, kRhsRow == 1 ? kRhsColumn : kRhsRow, true,
                kWide == 1 ? 2 : 4>(y[j], rhs + j * 16 * kRhsColumn + p * kRhsRow, lane);
#pragma unroll
    for (int i = 0; i < kHigh; ++i)
#pragma unroll
      for (int j = 0; j < kWide; ++j)
        TensorMultiply<kTensor>(sums + (i * kWide + j) * 4, x[i], y[j / 2] + j % 2 * 2);
  }
}

__device__ __forceinline__ float MultiplyAdd(float x, float y, float z) { return __fmaf_rn(x, y, z); }
__device__ __forceinline__ double MultiplyAdd(double x, double y, double z) { return __fma_rn(x, y, z); }
__device__ __forceinline__ int MultiplyAdd(int x, int y, int z) {
  return (int)((unsigned)x * (unsigned)y + (unsigned)z);
}

template <int kWarpRows, int kWarpColumns, int kWarpsAcross, int kDepth, int kLhsRow, int kLhsColumn,
          int kRhsRow, int kRhsColumn, typename T>
__device__ __forceinline__ void BlockMultiply(T (&sums)[kWarpRows * kWarpColumns / 32],
                                             const T* lhs, const T* rhs, int thread) {
  constexpr int kHigh = kWarpRows / 8, kWide = kWarpColumns / 8;
  const int lane = thread % 32, warp = thread / 32;
  lhs += (warp / kWarpsAcross * kWarpRows + lane / 4) * kLhsRow;
  rhs += (warp % kWarpsAcross * kWarpColumns + lane % 4 * 2) * kRhsColumn;
#pragma unroll 2
  for (int p = 0; p < kDepth; ++p) {
    T x[kHigh], y[kWide][2];
#pragma unroll
    for (int i = 0; i < kHigh; ++i) x[i] = lhs[i * 8 * kLhsRow + p * kLhsColumn];
#pragma unroll
    for (int j = 0; j < kWide; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e) y[j][e] = rhs[(j * 8 + e) * kRhsColumn + p * kRhsRow];
#pragma unroll
    for (int i = 0; i < kHigh; ++i)
#pragma unroll
      for (int j = 0; j < kWide; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          T& sum = sums[(i / 2 * kWide + j) * 4 + i % 2 * 2 + e];
          sum = MultiplyAdd(x[i], y[j][e], sum);
        }
  }
}

)";

}  // namespace

std::string_view BlockMultiplyText() {
  return kBlockMultiplyText;
}

void CudaWriter::Multiply(const Stmt& stmt) {
  if (stmt.matmul.IsBlockWide()) return BlockMultiply(stmt);
  if (stmt.matmul.async) return AsyncMultiply(stmt);
  // Computed by one thread: GPU generators do not emit it, but tests check its semantics.
  const MatrixMultiply& product = stmt.matmul;
  ScalarType type = kernel_.array(product.lhs).type;
  NoteType(type);
  std::string_view widen = type == ScalarType::kBF16 ? "Bf16ToF32" : "";
  std::string to = fmt::format("{}[{} + i * {} + j]", names_.Of(stmt.array), Operand(stmt.index),
                               product.result_row_stride);
  Line("for (int i = 0; i < {}; ++i)", product.rows);
  Line("  for (int j = 0; j < {}; ++j) {{", product.columns);
  Line("    {} sum = {};", Type(kernel_.array(stmt.array).type), product.overwrite ? "0" : to);
  Line("    for ({} p = 0; p < {}; ++p)", IndexType(), Operand(product.depth));
  Line("      sum += {}({}[{} + i * {} + p * {}]) *", widen, names_.Of(product.lhs),
       Operand(product.lhs_index), product.lhs_row_stride, product.lhs_column_stride);
  Line("             {}({}[{} + p / {} * {} + j * {} + p % {}]);", widen, names_.Of(product.rhs),
       Operand(product.rhs_index), VnniGroupSize(type), product.rhs_row_stride, VnniGroupSize(type),
       VnniGroupSize(type));
  Line("    {} = sum;", to);
  Line("  }}");
}

// 16-bit types and tf32 use tensor cores, all others multiply-adds.
void CudaWriter::BlockMultiply(const Stmt& stmt) {
  const MatrixMultiply& product = stmt.matmul;
  ScalarType type = kernel_.array(product.lhs).type;
  std::string_view tensor = type == ScalarType::kBF16  ? "Tensor::kBf16, "
                            : type == ScalarType::kF16 ? "Tensor::kF16, "
                            : product.tf32             ? "Tensor::kTf32, "
                                                       : "";
  int64_t aligned = 16 / BytesOf(type);
  auto is_aligned = [&](ValueId at, int64_t row, int64_t column) {
    return ranges_.Of(kernel_, at).stride % aligned == 0 && std::max(row, column) % aligned == 0;
  };
  if (!tensor.empty() &&
      (!is_aligned(product.lhs_index, product.lhs_row_stride, product.lhs_column_stride) ||
       !is_aligned(product.rhs_index, product.rhs_row_stride, product.rhs_column_stride)))
    return Fail("a multiply of lines that do not begin at multiples of 16 bytes");
  source_.helpers.insert(Helper::kBlockMultiply);
  Line("BlockMultiply{}<{}{}, {}, {}, {}, {}, {}, {}, {}>({}, {} + {}, {} + {}, {});",
       tensor.empty() ? "" : "Tensor", tensor, product.warp_rows, product.warp_columns,
       product.columns / product.warp_columns, Operand(product.depth), product.lhs_row_stride,
       product.lhs_column_stride, product.rhs_row_stride, product.rhs_column_stride,
       names_.Of(stmt.array), names_.Of(product.lhs), Operand(product.lhs_index),
       names_.Of(product.rhs), Operand(product.rhs_index), ThreadIndex(0));
}

}  // namespace tokamak::cuda
