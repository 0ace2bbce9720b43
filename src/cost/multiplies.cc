#include "cost/multiplies.h"

#include <algorithm>

#include "cost/panel_rates.h"

namespace tokamak {
namespace {

// Elements that a thread of a block-wide multiply loads per multiply-add if its warp has 32 x 64
// results: those of 4 rows and 16 columns for 64 results (structure: AccumulatorPosition). The rate
// of multiply-adds includes these loads.
constexpr double kCoveredLoads = (4.0 + 16) / (4 * 16);

// Elements that a thread of a block-wide multiply loads for each index along the depth. It has
// results in two rows and two columns of a fragment.
double LoadsPerDepth(const MatrixMultiply& product) {
  int64_t rows = 2 * product.warp_rows / MatrixMultiply::kFragmentRows,
          columns = 2 * product.warp_columns / MatrixMultiply::kFragmentColumns;
  return static_cast<double>(rows + columns);
}

}  // namespace

void AddBlockMultiply(Work& work, const MatrixMultiply& product, ScalarType type, double depths,
                      const Machine& machine) {
  double multiplied = static_cast<double>(product.AccumulatorsPerThread()) * depths;
  if (BytesOf(type) < 4 || product.tf32) {
    work[Pipe::kMultiply16] += multiplied * (product.tf32 ? kTf32Products : 1);
  } else {
    work[BytesOf(type) > 4 ? Pipe::kMultiply64 : Pipe::kMultiply] += multiplied;
    // A thread with fewer rows or columns loads more elements for each result.
    work[Pipe::kLoad] +=
        std::max(0.0, LoadsPerDepth(product) * depths - kCoveredLoads * multiplied);
  }
  double bytes = static_cast<double>(product.warp_rows + product.warp_columns) * depths *
                 static_cast<double>(BytesOf(type));
  work[Pipe::kLoad] +=
      bytes / MatrixMultiply::kWarpSize / (static_cast<double>(machine.vector_bits) / 8);
}

void AddAsyncMultiply(Work& work, const MatrixMultiply& product, const Array& lhs, double depths) {
  int64_t bytes = BytesOf(lhs.type);
  double factor = product.tf32 ? kTf32Products : bytes == 1 ? kByteProducts : 1;
  work[Pipe::kTensor] += static_cast<double>(product.AccumulatorsPerThread()) * depths * factor;
  bool in_shared = lhs.space == Space::kShared;
  auto lines = static_cast<double>((in_shared ? product.rows : 0) + product.columns);
  work.panel_bytes += lines * depths * static_cast<double>(bytes) /
                      static_cast<double>(MatrixMultiply::kWarpgroupThreads);
}

}  // namespace tokamak
