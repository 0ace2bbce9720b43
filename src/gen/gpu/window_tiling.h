#pragma once

#include <array>
#include <string>
#include <vector>

#include "gen/dot_dimensions.h"
#include "gen/element.h"
#include "gen/gpu/affine_view.h"
#include "kernel/kernel.h"
#include "support/ceil_div.h"

// Tiles of dots whose operands are affine views (affine_view.h): convolutions as matrix products
// (implicit GEMM). The rows of a tile are a box of several dimensions of the result: columns and
// lines of the pixels of some images. A panel along K is a box of the contracted dimensions: 64
// channels of one tap, or 64 pixels. The bulk copy engine reads such a box of an
// operand at once; padding is out of bounds there, which it reads as zeros.

namespace tokamak::gpu {

// A free or contracted dimension of the dot, cut into boxes.
struct WindowAxis {
  int64_t size = 1, box = 1;
  int64_t Boxes() const { return CeilDiv(size, box); }
};

// A dimension of an operand's array. Innermost first.
struct WindowDimension {
  enum class Along : uint8_t { kRow, kColumn, kDepth, kBatch };
  struct Term {
    Along along{};
    size_t axis = 0;
    int64_t factor = 1;
  };
  int64_t size = 1, stride = 1, start = 0;
  std::vector<Term> terms;  // the coordinate is start + sum(factor * index along the axis)
};

struct WindowTiling {
  // Of the dot's free dimensions of lhs, and of its contracted dimensions, in their order.
  std::vector<WindowAxis> rows, depth;
  // The axes of a tile's rows and of a panel's lines, the fastest one first.
  std::vector<size_t> row_order, depth_order;
  std::array<std::vector<WindowDimension>, 2> tensors;  // lhs, rhs
  std::array<const Instr*, 2> arrays{};
  std::array<bool, 2> is_k_major{};
  std::vector<int64_t> row_strides;  // of the linear index of a row

  int64_t RowTiles() const;
  int64_t Panels() const;
};

// Cuts K into panels of `line` elements. Returns why the bulk copy engine cannot read the operands,
// empty if `window` is set except for the boxes of rows.
std::string FindWindow(const DotDimensions& dot_dims, const std::array<AffineView, 2>& views,
                       int64_t bytes, int64_t line, WindowTiling& window);
// Chooses the boxes of tiles with this many rows, such that few of them are outside of the result.
// False if there are none.
bool SetRowBoxes(WindowTiling& window, int64_t rows, int64_t line);

// Row `row` of tile `tile`: its coordinates and linear index among the rows of the result, and
// whether it is inside of the result.
struct WindowRow {
  Coordinates at;
  Scalar index, inside;
};
WindowRow WindowRowAt(KernelBuilder& b, const WindowTiling& window, Scalar tile, Scalar row);

// The dimensions behind the columns of a copy of `rows` adjacent rows of a tile back to the result,
// which has `columns` columns. `row` is the first one, where tiles have `of_tile` rows. `rows` is a
// power of two.
std::vector<TileCopy::Dimension> WindowResultBoxes(KernelBuilder& b, const WindowTiling& window,
                                                   Scalar row, int64_t of_tile, int64_t rows,
                                                   int64_t columns);

// What a copy of a panel reads: rows from row `first` of row tile `tile` on or columns from
// `column` on, and panel `panel` along K.
struct WindowPosition {
  Scalar tile, column, panel;
  int64_t first = 0;
  int64_t columns = 0;  // of a box that is K-major
  Coordinates batch_at;
};
std::vector<TileCopy::Dimension> WindowBoxes(KernelBuilder& b, const WindowTiling& window,
                                             size_t operand, const WindowPosition& position,
                                             int64_t line);

}  // namespace tokamak::gpu
