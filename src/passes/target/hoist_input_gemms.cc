// Hoists input GEMMs out of loops. In a recurrent network each iteration multiplies its input x[i]
// by a loop-invariant matrix. The products of all iterations are independent of the state, so one
// GEMM before the loop computes them, and an iteration only reads its row. If the input is
// concatenated with the state, the matrix is split by rows:
//
//   loop:  dot(concatenate(x[i], h), w)      before:  p = dot(x, w_x)
//                                            loop:    p[i] + dot(h, w_h)
//
// The matrix may be either operand: dot(w, x[i]) becomes the transpose of row i of dot(x, w).
//
// The GEMM has more rows, hence a higher arithmetic intensity, and reads the matrix once instead of
// once per iteration. Its result is written and read, which must not move more bytes than the
// iterations save. The sum of two dots rounds once more than one dot. A second rewrite applies to
// dots with unused columns: the matrix is sliced before the loop. Linear in the instructions of the
// loop.

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "cost/machine.h"
#include "gen/dot_dimensions.h"
#include "passes/passes.h"
#include "rewrite/editor.h"
#include "rewrite/loop_edit.h"

namespace tokamak {
namespace {

// A part of the multiplied operand: `size` along the contracted dimension.
struct Part {
  Instr* value = nullptr;
  std::optional<LoopRow> row;
  int64_t begin = 0, size = 0;
};

struct HoistedGemm {
  Instr* dot = nullptr;
  size_t matrix = 1;  // which operand is loop-invariant
  std::vector<Part> parts = {};
  // Bytes that all iterations move now, and that they and the GEMM will move. Accesses that
  // both have are left out.
  int64_t bytes_before = 0, bytes_after = 0;
};

// The contracted dimension of an operand of a dot with one.
size_t DepthOf(const Instr& dot, size_t operand) {
  const DotAttrs& attrs = dot.attrs<DotAttrs>();
  return static_cast<size_t>((operand == 0 ? attrs.lhs_contracting : attrs.rhs_contracting)[0]);
}

class InputGemmHoister {
 public:
  InputGemmHoister(const WhileLoop& loop, PassContext& context)
      : edit_(loop), trip_count_(*TripCount(loop)), context_(context) {}

  bool Find() {
    if (trip_count_ < kMinMovedTrips) return false;
    for (Instr* instr : edit_.body().PostOrder()) {
      if (instr->op() != Op::kDot) continue;
      if (IsSliced(*instr))
        sliced_.push_back(instr);
      else
        FindProduct(instr);
    }
    return !found_.empty() || !sliced_.empty();
  }

  void Run() {
    for (const HoistedGemm& product : found_) {
      context_.Accepted("loop.hoist-gemm", *product.dot, nullptr,
                        fmt::format("{} iterations multiply rows by the same matrix: one product "
                                    "before the loop, {} bytes instead of {}",
                                    trip_count_, product.bytes_after, product.bytes_before));
      Replace(product);
    }
    for (Instr* dot : sliced_) {
      context_.Accepted("loop.hoist-gemm", *dot, nullptr, "unused columns are not multiplied");
      TakeSlice(*dot);
    }
    edit_.Finish();
    edit_.Close();
  }

 private:
  const WhileLoop& loop() const { return edit_.loop(); }

  // ---- analysis

  // The loop-invariant operand of a plain dot; nullopt if there is none.
  std::optional<size_t> MatrixIn(const Instr& dot) const {
    const DotAttrs& attrs = dot.attrs<DotAttrs>();
    if (!attrs.lhs_batch.empty() || attrs.lhs_contracting.size() != 1 || dot.has_extras() ||
        !dot.shape().IsArray() || !IsReal(dot.shape().type()))
      return std::nullopt;
    for (size_t operand : {size_t{1}, size_t{0}})
      if (edit_.IsLoopInvariant(dot.operand(operand))) return operand;
    return std::nullopt;
  }
  // The position in the result of the first dimension of the matrix.
  static size_t FirstOfMatrix(const Instr& dot, size_t matrix) {
    return matrix == 0 ? 0 : dot.operand(0)->shape().dims().size() - 1;
  }

  // Whether only some columns of its result are used.
  bool IsSliced(const Instr& dot) const {
    std::optional<size_t> matrix = MatrixIn(dot);
    if (!matrix || dot.users().size() != 1) return false;
    const Instr* user = *dot.users().begin();
    if (user->op() != Op::kSlice || user->has_extras()) return false;
    const SliceAttrs& attrs = user->attrs<SliceAttrs>();
    size_t first = FirstOfMatrix(dot, *matrix),
           columns = dot.operand(*matrix)->shape().dims().size() - 1;
    for (size_t i = 0; i < attrs.starts.size(); ++i) {
      bool whole = attrs.starts[i] == 0 && attrs.limits[i] == dot.shape().dim(i);
      bool is_column = i >= first && i < first + columns;
      if ((!is_column && !whole) || attrs.strides[i] != 1) return false;
    }
    return true;
  }

  // Slices the columns of the matrix before the loop instead of those of the result in the loop.
  void TakeSlice(Instr& dot) {
    Instr* slice = *dot.users().begin();
    const SliceAttrs& of = slice->attrs<SliceAttrs>();
    size_t side = *MatrixIn(dot), next = FirstOfMatrix(dot, side), depth = DepthOf(dot, side);
    Instr* matrix = edit_.BeforeLoop(dot.operand(side));
    Dims dims = matrix->shape().dims();
    SliceAttrs attrs{Dims(dims.size(), 0), dims, Dims(dims.size(), 1)};
    for (size_t i = 0; i < dims.size(); ++i) {
      if (i == depth) continue;
      attrs.starts[i] = of.starts[next];
      attrs.limits[i] = of.limits[next++];
      dims[i] = attrs.limits[i] - attrs.starts[i];
    }
    Instr* columns =
        Editor(dot, edit_.before())
            .Make(Op::kSlice, Shape::Array(matrix->shape().type(), dims), {matrix}, attrs);
    edit_.ReplaceInBody(slice, Product(dot, side, slice->shape(), dot.operand(1 - side), columns));
  }

  // Splits the other operand into the parts that are rows of a carried array and the rest. Accepts
  // the dot if the rows account for enough multiplications and their result is small enough.
  void FindProduct(Instr* dot) {
    std::optional<size_t> matrix = MatrixIn(*dot);
    if (!matrix) return;
    HoistedGemm product{.dot = dot, .matrix = *matrix};
    Instr* other = dot->operand(1 - *matrix);
    size_t depth = DepthOf(*dot, 1 - *matrix);
    int64_t begin = 0, work = 0, bytes = 0;
    auto add = [&](Instr* value) {
      Part part{.value = value, .row = RowOf(loop(), value), .begin = begin};
      part.size = value->shape().dim(depth);
      begin += part.size;
      // Rows that no iteration uses are multiplied as well.
      int64_t rows = part.row ? loop().init(part.row->carry)->shape().dim(0) : 0;
      if (static_cast<uint64_t>(rows) > 2 * trip_count_) part.row.reset();
      if (part.row) {
        work += dot->shape().ElementCount() * part.size;
        bytes += dot->shape().ByteSize() * rows;
        CountBytes(product, part, rows);
      }
      product.parts.push_back(part);
    };
    if (other->op() == Op::kConcatenate &&
        other->attrs<DimensionAttrs>().dimension == static_cast<int64_t>(depth))
      for (Instr* operand : other->operands()) add(operand);
    else
      add(other);
    if (work < kMinMovedWork || bytes > kMaxMovedBytes) return;
    if (product.bytes_after <= product.bytes_before)
      found_.push_back(std::move(product));
    else
      context_.Rejected("loop.hoist-gemm", *dot, nullptr,
                        fmt::format("one product before the loop would move {} bytes instead of {}",
                                    product.bytes_after, product.bytes_before));
  }

  // Each iteration reads its part of the matrix; the GEMM reads it once and stores its result, from
  // which each iteration reads a row. On a GPU a dot is a kernel or library call of its own, whose
  // result is stored in either case.
  void CountBytes(HoistedGemm& product, const Part& part, int64_t rows) const {
    const Shape& matrix = product.dot->operand(product.matrix)->shape();
    int64_t of_matrix =
                matrix.ByteSize() / matrix.dim(DepthOf(*product.dot, product.matrix)) * part.size,
            of_result = product.dot->shape().ByteSize();
    auto iterations = static_cast<int64_t>(trip_count_);
    bool is_stored = context_.machine().is_gpu();
    product.bytes_before += iterations * (of_matrix + (is_stored ? 2 * of_result : 0));
    product.bytes_after += of_matrix + (rows + iterations) * of_result;
  }

  // ---- rewriting

  // The dot of an iteration with another matrix, which is carried, and the operands in their order.
  Instr* Product(const Instr& dot, size_t matrix_operand, const Shape& shape, Instr* value,
                 Instr* matrix) {
    std::vector<Instr*> operands = {value, edit_.Carry(matrix)};
    if (matrix_operand == 0) std::ranges::reverse(operands);
    return Editor(dot, edit_.body()).Make(Op::kDot, shape, operands, dot.attrs());
  }

  // Rows begin .. begin + size of the loop-invariant matrix, before the loop.
  Instr* MatrixOf(const HoistedGemm& product, const Part& part) {
    const Instr& dot = *product.dot;
    Instr* matrix = edit_.BeforeLoop(dot.operand(product.matrix));
    size_t depth = DepthOf(dot, product.matrix);
    Dims dims = matrix->shape().dims();
    if (part.size == dims[depth]) return matrix;
    SliceAttrs attrs{Dims(dims.size(), 0), dims, Dims(dims.size(), 1)};
    attrs.starts[depth] = part.begin;
    attrs.limits[depth] = part.begin + part.size;
    dims[depth] = part.size;
    return Editor(dot, edit_.before())
        .Make(Op::kSlice, Shape::Array(matrix->shape().type(), dims), {matrix}, attrs);
  }

  // The product of a part: a row of the GEMM over all rows, which precedes the loop and is carried
  // as an invariant.
  Instr* RowOfAll(const HoistedGemm& product, const Part& part) {
    const Instr& dot = *product.dot;
    DotAttrs attrs = dot.attrs<DotAttrs>();
    if (product.matrix == 0) attrs = Exchanged(std::move(attrs));
    ++attrs.lhs_contracting[0];
    Instr* rows = loop().init(part.row->carry);
    // A row has the dimensions of the value, then those of the matrix.
    Dims order(dot.shape().dims().size());
    std::iota(order.begin(), order.end(), 0);
    if (product.matrix == 0)
      std::ranges::rotate(order, order.begin() + dot.operand(0)->shape().rank() - 1);
    Dims dims = SizesAlong(dot.shape().dims(), order), slice = dims;
    const Dims row_dims = dims;
    dims.insert(dims.begin(), rows->shape().dim(0));
    slice.insert(slice.begin(), 1);
    ElementType type = dot.shape().type();
    Instr* all =
        Editor(dot, edit_.before())
            .Make(Op::kDot, Shape::Array(type, dims), {rows, MatrixOf(product, part)}, attrs);
    std::vector<Instr*> operands = {edit_.Carry(all), part.row->index};
    operands.resize(dims.size() + 1, edit_.Zero(dot, part.row->index->shape().type()));
    Instr* row =
        Editor(dot, edit_.body())
            .Make(Op::kDynamicSlice, Shape::Array(type, slice), operands, DynamicSliceAttrs{slice});
    if (std::ranges::is_sorted(order))
      return Editor(dot, edit_.body()).Make(Op::kReshape, dot.shape(), {row});
    row = Editor(dot, edit_.body()).Make(Op::kReshape, Shape::Array(type, row_dims), {row});
    Dims back(order.size());
    for (size_t i = 0; i < order.size(); ++i)
      back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    return Editor(dot, edit_.body())
        .Make(Op::kTranspose, dot.shape(), {row}, DimensionsAttrs{std::move(back)});
  }

  void Replace(const HoistedGemm& product) {
    Instr *dot = product.dot, *sum = nullptr;
    Computation& body = edit_.body();
    for (const Part& part : product.parts) {
      Instr* term = part.row ? RowOfAll(product, part)
                             : Product(*dot, product.matrix, dot->shape(), part.value,
                                       MatrixOf(product, part));
      sum = sum == nullptr ? term : Editor(*dot, body).Make(Op::kAdd, dot->shape(), {sum, term});
    }
    edit_.ReplaceInBody(dot, sum);
  }

  LoopEdit edit_;
  uint64_t trip_count_;
  PassContext& context_;
  std::vector<HoistedGemm> found_;
  std::vector<Instr*> sliced_;
};

}  // namespace

// Record loop.hoist-gemm. Requires a known trip count; results are at most 1 GiB.
Result<Changed> HoistInputGemms(Module& module, PassContext& context) {
  return ForEditableLoops(module, [&](const WhileLoop& loop) {
    InputGemmHoister hoister(loop, context);
    if (!hoister.Find()) return false;
    hoister.Run();
    return true;
  });
}

}  // namespace tokamak
