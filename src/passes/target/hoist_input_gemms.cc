// Hoists input GEMMs out of loops. In a recurrent network each iteration multiplies its input x[i]
// by a loop-invariant matrix. The products of all iterations are independent of the state, so one
// GEMM before the loop computes them, and an iteration only reads its row. If the input is
// concatenated with the state, the matrix is split by rows:
//
//   loop:  dot(concatenate(x[i], h), w)      before:  p = dot(x, w_x)
//                                            loop:    p[i] + dot(h, w_h)
//
// The GEMM has more rows, hence a higher arithmetic intensity, and reads the matrix once instead of
// once per iteration. The sum of two dots rounds once more than one dot. A second rewrite applies
// to dots with unused columns: the matrix is sliced before the loop. Linear in the instructions of
// the loop.

#include <fmt/format.h>

#include "passes/passes.h"
#include "rewrite/editor.h"
#include "rewrite/loop_edit.h"

namespace tokamak {
namespace {

// kHoistedLeastWork: multiplications per iteration that justify another carried array.
// kHoistedMostBytes: bytes of the hoisted result. kHoistMinTrips: trip count. Chosen.
constexpr int64_t kHoistedLeastWork = int64_t{1} << 16;
constexpr int64_t kHoistedMostBytes = int64_t{1} << 30;
constexpr uint64_t kHoistMinTrips = 4;

// A part of the multiplied operand: `size` along the contracted dimension.
struct Part {
  Instr* value = nullptr;
  std::optional<LoopRow> row;
  int64_t begin = 0, size = 0;
};

struct HoistedGemm {
  Instr* dot = nullptr;
  std::vector<Part> parts;
};

class InputGemmHoister {
 public:
  explicit InputGemmHoister(const WhileLoop& loop) : edit_(loop), trip_count_(*TripCount(loop)) {}

  bool Find() {
    if (trip_count_ < kHoistMinTrips) return false;
    for (Instr* instr : edit_.body().PostOrder()) {
      if (instr->op() != Op::kDot) continue;
      if (IsSliced(*instr))
        sliced_.push_back(instr);
      else
        FindProduct(instr);
    }
    return !found_.empty() || !sliced_.empty();
  }

  void Run(PassContext& context) {
    for (const HoistedGemm& product : found_) {
      context.Accepted(
          "loop.hoist-gemm", *product.dot, nullptr,
          fmt::format("{} iterations multiply rows by the same matrix: one product before the loop",
                      trip_count_));
      Replace(product);
    }
    for (Instr* dot : sliced_) {
      context.Accepted("loop.hoist-gemm", *dot, nullptr, "unused columns are not multiplied");
      TakeSlice(*dot);
    }
    edit_.Finish();
    edit_.Close();
  }

 private:
  const WhileLoop& loop() const { return edit_.loop(); }

  // ---- analysis

  // A plain dot with a loop-invariant operand.
  bool IsWithMatrix(const Instr& dot) const {
    const DotAttrs& attrs = dot.attrs<DotAttrs>();
    return attrs.lhs_batch.empty() && attrs.lhs_contracting.size() == 1 && !dot.has_extras() &&
           dot.shape().IsArray() && IsReal(dot.shape().type()) &&
           edit_.IsLoopInvariant(dot.operand(1));
  }

  // Whether only some columns of its result are used.
  bool IsSliced(const Instr& dot) const {
    if (!IsWithMatrix(dot) || dot.users().size() != 1) return false;
    const Instr* user = *dot.users().begin();
    if (user->op() != Op::kSlice || user->has_extras()) return false;
    const SliceAttrs& attrs = user->attrs<SliceAttrs>();
    size_t rows = dot.operand(0)->shape().dims().size() - 1;
    for (size_t i = 0; i < attrs.starts.size(); ++i) {
      bool whole = attrs.starts[i] == 0 && attrs.limits[i] == dot.shape().dim(i);
      if ((i < rows && !whole) || attrs.strides[i] != 1) return false;
    }
    return true;
  }

  // Slices the columns of the matrix before the loop instead of those of the result in the loop.
  void TakeSlice(Instr& dot) {
    Instr* slice = *dot.users().begin();
    const SliceAttrs& of = slice->attrs<SliceAttrs>();
    Instr* matrix = edit_.BeforeLoop(dot.operand(1));
    size_t rows = dot.operand(0)->shape().dims().size() - 1, next = rows;
    Dims dims = matrix->shape().dims();
    SliceAttrs attrs{Dims(dims.size(), 0), dims, Dims(dims.size(), 1)};
    auto depth = static_cast<size_t>(dot.attrs<DotAttrs>().rhs_contracting[0]);
    for (size_t i = 0; i < dims.size(); ++i) {
      if (i == depth) continue;
      attrs.starts[i] = of.starts[next];
      attrs.limits[i] = of.limits[next++];
      dims[i] = attrs.limits[i] - attrs.starts[i];
    }
    Instr* columns =
        Editor(dot, edit_.before())
            .Make(Op::kSlice, Shape::Array(matrix->shape().type(), dims), {matrix}, attrs);
    Instr* made =
        Editor(dot, edit_.body())
            .Make(Op::kDot, slice->shape(), {dot.operand(0), edit_.Carry(columns)}, dot.attrs());
    edit_.ReplaceInBody(slice, made);
  }

  // Splits the lhs into the parts that are rows of a carried array and the rest. Accepts the dot if
  // the rows account for enough multiplications and their result is small enough.
  void FindProduct(Instr* dot) {
    if (!IsWithMatrix(*dot)) return;
    const DotAttrs& attrs = dot->attrs<DotAttrs>();
    HoistedGemm product{dot, {}};
    Instr* lhs = dot->operand(0);
    int64_t depth = attrs.lhs_contracting[0], begin = 0, work = 0, bytes = 0;
    auto add = [&](Instr* value) {
      Part part{.value = value, .row = RowOf(loop(), value), .begin = begin};
      part.size = value->shape().dim(static_cast<size_t>(depth));
      begin += part.size;
      // Rows that no iteration uses are multiplied as well.
      int64_t rows = part.row ? loop().init(part.row->carry)->shape().dim(0) : 0;
      if (static_cast<uint64_t>(rows) > 2 * trip_count_) part.row.reset();
      if (part.row) {
        work += dot->shape().ElementCount() * part.size;
        bytes += dot->shape().ByteSize() * rows;
      }
      product.parts.push_back(part);
    };
    if (lhs->op() == Op::kConcatenate && lhs->attrs<DimensionAttrs>().dimension == depth)
      for (Instr* operand : lhs->operands()) add(operand);
    else
      add(lhs);
    if (work >= kHoistedLeastWork && bytes <= kHoistedMostBytes)
      found_.push_back(std::move(product));
  }

  // ---- rewriting

  // Rows begin .. begin + size of the loop-invariant matrix, before the loop.
  Instr* MatrixOf(const Instr& dot, const Part& part) {
    Instr* matrix = edit_.BeforeLoop(dot.operand(1));
    auto depth = static_cast<size_t>(dot.attrs<DotAttrs>().rhs_contracting[0]);
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
  Instr* RowOfAll(const Instr& dot, const Part& part) {
    DotAttrs attrs = dot.attrs<DotAttrs>();
    ++attrs.lhs_contracting[0];
    Instr* rows = loop().init(part.row->carry);
    Dims dims = dot.shape().dims(), slice = dims;
    dims.insert(dims.begin(), rows->shape().dim(0));
    slice.insert(slice.begin(), 1);
    ElementType type = dot.shape().type();
    Instr* all = Editor(dot, edit_.before())
                     .Make(Op::kDot, Shape::Array(type, dims), {rows, MatrixOf(dot, part)}, attrs);
    std::vector<Instr*> operands = {edit_.Carry(all), part.row->index};
    operands.resize(dims.size() + 1, edit_.Zero(dot, part.row->index->shape().type()));
    Instr* row =
        Editor(dot, edit_.body())
            .Make(Op::kDynamicSlice, Shape::Array(type, slice), operands, DynamicSliceAttrs{slice});
    return Editor(dot, edit_.body()).Make(Op::kReshape, dot.shape(), {row});
  }

  void Replace(const HoistedGemm& product) {
    Instr *dot = product.dot, *sum = nullptr;
    Computation& body = edit_.body();
    for (const Part& part : product.parts) {
      Instr* term = part.row
                        ? RowOfAll(*dot, part)
                        : Editor(*dot, body)
                              .Make(Op::kDot, dot->shape(),
                                    {part.value, edit_.Carry(MatrixOf(*dot, part))}, dot->attrs());
      sum = sum == nullptr ? term : Editor(*dot, body).Make(Op::kAdd, dot->shape(), {sum, term});
    }
    edit_.ReplaceInBody(dot, sum);
  }

  LoopEdit edit_;
  uint64_t trip_count_;
  std::vector<HoistedGemm> found_;
  std::vector<Instr*> sliced_;
};

}  // namespace

// Record loop.hoist-gemm. Requires a known trip count; results are at most 1 GiB.
Result<Changed> HoistInputGemms(Module& module, PassContext& context) {
  return ForEditableLoops(module, [&](const WhileLoop& loop) {
    InputGemmHoister hoister(loop);
    if (!hoister.Find()) return false;
    hoister.Run(context);
    return true;
  });
}

}  // namespace tokamak
