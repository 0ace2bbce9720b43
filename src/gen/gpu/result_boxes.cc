#include "gen/gpu/result_boxes.h"

#include <algorithm>
#include <iterator>

namespace tokamak::gpu {

size_t ResultBoxRank(const TensorTiling& tiling) {
  constexpr size_t kColumnsAndBatch = 2;  // dimensions (definition)
  if (!tiling.window) return kColumnsAndBatch + 1;
  return kColumnsAndBatch +
         static_cast<size_t>(std::ranges::count_if(
             tiling.window->rows, [](const WindowAxis& axis) { return axis.size > 1; }));
}

std::vector<TileCopy::Dimension> ResultBox(KernelBuilder& b, const TensorTiling& tiling,
                                           const DotDimensions& dot_dims, const DotPosition& at,
                                           int64_t line) {
  int64_t n = dot_dims.n, m = dot_dims.m;
  std::vector<TileCopy::Dimension> box = {
      {.size = n, .stride = 1, .box = line, .at = at.column.id()}};
  if (tiling.window) {
    std::ranges::copy(WindowResultBoxes(b, *tiling.window, at.row, tiling.rows, kBoxRows, n),
                      std::back_inserter(box));
  } else {
    box.push_back({.size = m, .stride = n, .box = kBoxRows, .at = at.row.id()});
  }
  if (dot_dims.batch > 1)
    box.push_back({.size = dot_dims.batch, .stride = m * n, .box = 1, .at = at.batch.id()});
  return box;
}

}  // namespace tokamak::gpu
