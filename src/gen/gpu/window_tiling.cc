#include "gen/gpu/window_tiling.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>

namespace tokamak::gpu {
namespace {

using Along = WindowDimension::Along;

std::optional<size_t> IndexIn(const Dims& dims, size_t d) {
  auto it = std::ranges::find(dims, static_cast<int64_t>(d));
  if (it == dims.end()) return std::nullopt;
  return static_cast<size_t>(it - dims.begin());
}

// The axis of a dimension of an operand.
WindowDimension::Term TermOf(const DotDimensions& dot_dims, size_t operand, size_t d) {
  const DotAttrs& attrs = dot_dims.attrs;
  bool is_lhs = operand == 0;
  if (auto i = IndexIn(is_lhs ? attrs.lhs_contracting : attrs.rhs_contracting, d))
    return {Along::kDepth, *i};
  if (auto i = IndexIn(is_lhs ? attrs.lhs_batch : attrs.rhs_batch, d)) return {Along::kBatch, *i};
  if (auto i = IndexIn(is_lhs ? dot_dims.lhs_free : dot_dims.rhs_free, d))
    return {is_lhs ? Along::kRow : Along::kColumn, *i};
  return {};
}

// The dimensions of the array of a view as the bulk copy engine sees it. Returns why it cannot.
std::string TensorOf(const DotDimensions& dot_dims, const AffineView& view, size_t operand,
                     int64_t bytes, std::vector<WindowDimension>& tensor) {
  if (view.array == nullptr) return "an operand is not in memory";
  int64_t unit = TileCopy::kAlignment / bytes;
  for (const AffineView::Dimension& from : view.dimensions) {
    if (from.size == 1 && from.terms.empty() && from.start == 0) continue;
    WindowDimension to{from.size, from.size == 1 ? unit : from.stride, from.start, {}};
    for (const AffineView::Term& term : from.terms) {
      to.terms.push_back(TermOf(dot_dims, operand, term.dim));
      to.terms.back().factor = term.factor;
    }
    tensor.push_back(std::move(to));
  }
  std::ranges::stable_sort(tensor, {}, [](const WindowDimension& d) {
    return d.size == 1 ? std::numeric_limits<int64_t>::max() : d.stride;
  });
  if (tensor.empty() || tensor.size() > TileCopy::kMaxRank)
    return "an operand has no dimension, or more than 5";
  const WindowDimension& first = tensor[0];
  if (first.stride != 1 || first.terms.size() != 1 || first.terms[0].factor != 1 ||
      first.start % unit != 0 || first.terms[0].along == Along::kBatch)
    return "an operand has no contiguous dimension";
  for (size_t i = 1; i < tensor.size(); ++i)
    if (tensor[i].stride % unit != 0) return "rows of an operand are not multiples of 16 bytes";
  return "";
}

// The dimension of a tensor in which an axis is; nullopt if it is in none or in several.
std::optional<size_t> DimensionOf(const std::vector<WindowDimension>& tensor, Along along,
                                  size_t axis, int64_t& factor) {
  std::optional<size_t> found;
  for (size_t d = 0; d < tensor.size(); ++d)
    for (const WindowDimension::Term& term : tensor[d].terms) {
      if (term.along != along || term.axis != axis) continue;
      if (found) return std::nullopt;
      found = d;
      factor = term.factor;
    }
  return found;
}

// The largest box of an axis in a tensor, a power of two; 1 if its elements cannot be in a box.
int64_t MaxBox(const std::vector<WindowDimension>& tensor, Along along, size_t axis) {
  int64_t factor = 0;
  if (!DimensionOf(tensor, along, axis, factor) || factor < 1 || factor > TileCopy::kMaxStep)
    return 1;
  int64_t box = 1;
  while (box * 2 * factor <= TileCopy::kMaxBox) box *= 2;
  return box;
}

// Axes in the order of their dimensions in a tensor, innermost first.
std::vector<size_t> OrderIn(const std::vector<WindowDimension>& tensor, Along along, size_t count) {
  std::vector<size_t> order(count);
  for (size_t i = 0; i < count; ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](size_t axis) {
    int64_t factor = 0;
    return DimensionOf(tensor, along, axis, factor).value_or(tensor.size());
  });
  return order;
}

// Two axes of a dimension cannot both be in a box.
bool SharesDimension(const std::vector<WindowDimension>& tensor, Along along,
                     const std::vector<int64_t>& boxes) {
  return std::ranges::any_of(tensor, [&](const WindowDimension& dimension) {
    return std::ranges::count_if(dimension.terms, [&](const WindowDimension::Term& term) {
             return term.along == along && boxes[term.axis] > 1;
           }) > 1;
  });
}

// Boxes of `total` elements: a power of two of each axis, in `order`. The best has the fewest
// elements outside of the axes, then the most elements along the first axes.
struct BoxSearch {
  const std::vector<WindowAxis>& axes;
  const std::vector<size_t>& order;
  std::vector<int64_t> least, most;  // of each axis
  bool exact = false;                // no elements outside
  std::function<bool(const std::vector<int64_t>&)> fits;
  std::vector<int64_t> best, boxes;
  double best_elements = std::numeric_limits<double>::infinity();

  bool Run(int64_t total) {
    boxes.assign(axes.size(), 1);
    Try(0, total);
    return !best.empty();
  }
  void Try(size_t number, int64_t left) {
    if (number == order.size()) {
      if (left == 1) Compare();
      return;
    }
    size_t axis = order[number];
    for (int64_t box = std::min(left, most[axis]); box >= least[axis] && box > 0; box /= 2) {
      if (left % box != 0 || (exact && axes[axis].size % box != 0)) continue;
      boxes[axis] = box;
      Try(number + 1, left / box);
      boxes[axis] = 1;
    }
  }
  void Compare() {
    double elements = 1;
    for (size_t i = 0; i < axes.size(); ++i)
      elements *= static_cast<double>(RoundUp(axes[i].size, boxes[i]));
    if (elements >= best_elements || !fits(boxes)) return;
    best_elements = elements;
    best = boxes;
  }
};

void SetBoxes(std::vector<WindowAxis>& axes, const std::vector<int64_t>& boxes) {
  for (size_t i = 0; i < axes.size(); ++i) axes[i].box = boxes[i];
}

// Makes elements beyond the end of an axis of K zeros, if a panel may have some: they must not be
// what is there in memory. False if that is not possible.
bool EndsWithAxis(std::vector<WindowDimension>& tensor, size_t axis, int64_t size) {
  int64_t factor = 0;
  std::optional<size_t> d = DimensionOf(tensor, Along::kDepth, axis, factor);
  if (!d || tensor[*d].terms.size() != 1) return false;
  WindowDimension& dimension = tensor[*d];
  dimension.size = std::min(dimension.size, dimension.start + (size - 1) * factor + 1);
  return true;
}

// The order of the axes with boxes.
std::vector<size_t> Boxed(const std::vector<size_t>& order, const std::vector<int64_t>& boxes) {
  std::vector<size_t> boxed;
  for (size_t axis : order)
    if (boxes[axis] > 1) boxed.push_back(axis);
  return boxed;
}

std::string SetDepthBoxes(WindowTiling& w, int64_t line) {
  w.depth_order = OrderIn(w.tensors[0], Along::kDepth, w.depth.size());
  std::optional<size_t> contiguous;
  for (size_t i : {0, 1}) {
    if (!w.is_k_major[i]) continue;
    size_t axis = w.tensors[i][0].terms[0].axis;
    if (contiguous && *contiguous != axis) return "the operands are contiguous along different K";
    contiguous = axis;
  }
  if (contiguous) {
    for (size_t i : {0, 1}) {
      if (MaxBox(w.tensors[i], Along::kDepth, *contiguous) < line)
        return "an operand is not contiguous along K";
      if (!EndsWithAxis(w.tensors[i], *contiguous, w.depth[*contiguous].size))
        return "an operand goes on beyond the end of K";
    }
    std::erase(w.depth_order, *contiguous);
    w.depth_order.insert(w.depth_order.begin(), *contiguous);
    w.depth[*contiguous].box = line;
    return "";
  }
  // Beyond an axis, only one of the operands may be zero: there are no such elements in a box.
  BoxSearch search{.axes = w.depth,
                   .order = w.depth_order,
                   .least = std::vector<int64_t>(w.depth.size(), 1),
                   .most = {},
                   .exact = true,
                   .fits = {},
                   .best = {},
                   .boxes = {}};
  for (size_t i = 0; i < w.depth.size(); ++i)
    search.most.push_back(
        std::min(MaxBox(w.tensors[0], Along::kDepth, i), MaxBox(w.tensors[1], Along::kDepth, i)));
  std::vector<size_t> other = OrderIn(w.tensors[1], Along::kDepth, w.depth.size());
  search.fits = [&](const std::vector<int64_t>& boxes) {
    return Boxed(w.depth_order, boxes) == Boxed(other, boxes) &&
           !SharesDimension(w.tensors[0], Along::kDepth, boxes) &&
           !SharesDimension(w.tensors[1], Along::kDepth, boxes);
  };
  if (!search.Run(line)) return "K has no boxes without a remainder";
  SetBoxes(w.depth, search.best);
  return "";
}

// The index along each axis of element `element` of box `box`, both numbered in this order.
std::vector<Scalar> IndicesIn(KernelBuilder& b, const std::vector<WindowAxis>& axes,
                              const std::vector<size_t>& order, Scalar box,
                              std::optional<Scalar> element) {
  std::vector<Scalar> indices(axes.size());
  int64_t boxes = 1, elements = 1, all_boxes = 1, all_elements = 1;
  for (const WindowAxis& axis : axes) {
    all_boxes *= axis.Boxes();
    all_elements *= axis.box;
  }
  auto digit = [&](Scalar number, int64_t& below, int64_t count, int64_t all) {
    if (below > 1) number = number / b.Index(below);
    below *= count;
    return below == all ? number : number % b.Index(count);
  };
  for (size_t i : order) {
    Scalar index = b.Index(0);
    if (axes[i].Boxes() > 1)
      index = digit(box, boxes, axes[i].Boxes(), all_boxes) * b.Index(axes[i].box);
    if (element && axes[i].box > 1)
      index = index + digit(*element, elements, axes[i].box, all_elements);
    indices[i] = index;
  }
  return indices;
}

}  // namespace

int64_t WindowTiling::RowTiles() const {
  int64_t tiles = 1;
  for (const WindowAxis& axis : rows) tiles *= axis.Boxes();
  return tiles;
}

int64_t WindowTiling::Panels() const {
  int64_t panels = 1;
  for (const WindowAxis& axis : depth) panels *= axis.Boxes();
  return panels;
}

std::string FindWindow(const DotDimensions& dot_dims, const std::array<AffineView, 2>& views,
                       int64_t bytes, int64_t line, WindowTiling& window) {
  WindowTiling w;
  for (size_t i : {0, 1}) {
    if (std::string why = TensorOf(dot_dims, views[i], i, bytes, w.tensors[i]); !why.empty())
      return why;
    w.arrays[i] = views[i].array;
    w.is_k_major[i] = w.tensors[i][0].terms[0].along == Along::kDepth;
  }
  for (int64_t d : dot_dims.lhs_free) w.rows.push_back({dot_dims.lhs_dims[static_cast<size_t>(d)]});
  for (int64_t d : dot_dims.attrs.lhs_contracting)
    w.depth.push_back({dot_dims.lhs_dims[static_cast<size_t>(d)]});
  w.row_strides = RowMajorStrides(SizesAlong(dot_dims.lhs_dims, dot_dims.lhs_free));
  // Columns are one axis.
  size_t columns = 0, column = 0;
  for (size_t i = 0; i < dot_dims.rhs_free.size(); ++i)
    if (dot_dims.rhs_dims[static_cast<size_t>(dot_dims.rhs_free[i])] > 1) {
      ++columns;
      column = i;
    }
  int64_t factor = 0;
  if (columns != 1 || !DimensionOf(w.tensors[1], Along::kColumn, column, factor) || factor != 1)
    return "the columns of the result are several dimensions";
  if (std::string why = SetDepthBoxes(w, line); !why.empty()) return why;
  w.row_order = OrderIn(w.tensors[0], Along::kRow, w.rows.size());
  window = std::move(w);
  return "";
}

bool SetRowBoxes(WindowTiling& window, int64_t rows, int64_t line) {
  // The rows of a warp must be a box, too (WindowResultBoxes).
  if (!std::has_single_bit(static_cast<uint64_t>(rows))) return false;
  BoxSearch search{.axes = window.rows,
                   .order = window.row_order,
                   .least = std::vector<int64_t>(window.rows.size(), 1),
                   .most = {},
                   .exact = false,
                   .fits = {},
                   .best = {},
                   .boxes = {}};
  for (size_t i = 0; i < window.rows.size(); ++i)
    search.most.push_back(window.is_k_major[0] ? MaxBox(window.tensors[0], Along::kRow, i) : rows);
  if (window.is_k_major[0]) {
    search.fits = [&](const std::vector<int64_t>& boxes) {
      return !SharesDimension(window.tensors[0], Along::kRow, boxes);
    };
  } else {
    // Each 128 bytes of rows are copied alone.
    search.least[window.tensors[0][0].terms[0].axis] = line;
    search.fits = [](const std::vector<int64_t>&) { return true; };
  }
  if (!search.Run(rows)) return false;
  SetBoxes(window.rows, search.best);
  return true;
}

WindowRow WindowRowAt(KernelBuilder& b, const WindowTiling& window, Scalar tile, Scalar row) {
  std::vector<Scalar> indices = IndicesIn(b, window.rows, window.row_order, tile, row);
  WindowRow found{{}, b.Index(0), b.ConstantBits(ScalarType::kPred, 1)};
  for (size_t i = 0; i < indices.size(); ++i) {
    const WindowAxis& axis = window.rows[i];
    if (axis.size % axis.box != 0) {
      found.inside = found.inside & (indices[i] < b.Index(axis.size));
      // The minimum tells the range of the coordinate.
      indices[i] = LesserOf(indices[i], b.Index(axis.size - 1));
    }
    found.index = found.index + indices[i] * b.Index(window.row_strides[i]);
    found.at.push_back(indices[i]);
  }
  return found;
}

std::vector<TileCopy::Dimension> WindowResultBoxes(KernelBuilder& b, const WindowTiling& window,
                                                   Scalar row, int64_t of_tile, int64_t rows,
                                                   int64_t columns) {
  std::vector<Scalar> indices =
      IndicesIn(b, window.rows, window.row_order, row / b.Index(of_tile), row % b.Index(of_tile));
  std::vector<TileCopy::Dimension> boxes;
  for (size_t i : window.row_order) {
    const WindowAxis& axis = window.rows[i];
    // Boxes are powers of two, and so the rows are a box, too.
    int64_t box = std::gcd(rows, axis.box);
    rows /= box;
    if (axis.size == 1 && box == 1) continue;
    boxes.push_back({.size = axis.size,
                     .stride = window.row_strides[i] * columns,
                     .box = box,
                     .at = indices[i].id()});
  }
  return boxes;
}

std::vector<TileCopy::Dimension> WindowBoxes(KernelBuilder& b, const WindowTiling& window,
                                             size_t operand, const WindowPosition& position,
                                             int64_t line) {
  std::vector<Scalar> depth =
      IndicesIn(b, window.depth, window.depth_order, position.panel, std::nullopt);
  std::vector<Scalar> rows;
  if (operand == 0)
    rows = IndicesIn(b, window.rows, window.row_order, position.tile, b.Index(position.first));
  std::vector<TileCopy::Dimension> boxes;
  for (const WindowDimension& dimension : window.tensors[operand]) {
    TileCopy::Dimension box{.size = dimension.size, .stride = dimension.stride, .box = 1};
    Scalar at = b.Index(dimension.start);
    for (const WindowDimension::Term& term : dimension.terms) {
      Scalar index;
      int64_t of_axis = 1;
      switch (term.along) {
        case Along::kRow:
          index = rows[term.axis];
          of_axis = window.is_k_major[0] ? window.rows[term.axis].box : 1;
          break;
        case Along::kColumn:
          index = position.column;
          of_axis = window.is_k_major[1] ? position.columns : 1;
          break;
        case Along::kDepth:
          index = depth[term.axis];
          of_axis = window.depth[term.axis].box;
          break;
        case Along::kBatch:
          index = position.batch_at[term.axis];
          break;
      }
      at = at + index * b.Index(term.factor);
      if (of_axis > 1) {
        box.box = of_axis;
        box.step = term.factor;
      }
    }
    if (boxes.empty()) box.box = line;
    box.at = at.id();
    boxes.push_back(box);
  }
  return boxes;
}

}  // namespace tokamak::gpu
