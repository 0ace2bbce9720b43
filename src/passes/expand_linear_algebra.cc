// Expands cholesky and triangular-solve into while loops of elementwise ops. Both algorithms are
// right-looking: an iteration finishes one column of the factor, or one row of the solution, and
// subtracts its contribution from everything that is unfinished.
//
//   cholesky of m, iteration j                    triangular-solve of a x = c, iteration i
//   l[j,j] = sqrt(m[j,j])                         x[i,:]  = c[i,:] / a[i,i]
//   l[i,j] = m[i,j] / l[j,j]          i > j       c[k,:] -= a[k,i] * x[i,:]      k after i
//   m[i,k] -= l[i,j] * conj(l[k,j])   i, k > j
//
// The factor overwrites m and the solution overwrites c, so a loop carries one matrix per result.
// Shapes are static: each iteration computes the whole matrix and masks the finished part with a
// select. A loop costs n updates of n x n elements (n x columns for a solve).

#include <algorithm>
#include <numeric>

#include "ir/builder.h"
#include "passes/passes.h"
#include "rewrite/editor.h"
#include "rewrite/replace.h"

namespace tokamak {
namespace {

constexpr ElementType kIndexType = ElementType::kS32;

// Builds the computations of one loop over the rows or columns of a batch of matrices. The
// algorithms are right-looking: each step immediately subtracts its result from all remaining
// elements, so a step is elementwise and sums accumulate in the order of the interpreter
// (bit-exact). At most one argument of a call creates an instruction: C++ does not specify the
// evaluation order of arguments, and tests compare the order of instructions.
class LoopBuilder {
 public:
  LoopBuilder(const Instr& of, std::string name, Dims batch)
      : b(of, std::move(name)), batch_(std::move(batch)) {}

  Builder b;

  Dims With(std::initializer_list<int64_t> last) const {
    Dims dims = batch_;
    dims.insert(dims.end(), last);
    return dims;
  }
  // The batch dimensions, then dimensions counted from the end.
  Dims BroadcastDims(std::initializer_list<int64_t> last) const {
    Dims dims(batch_.size());
    std::iota(dims.begin(), dims.end(), 0);
    for (int64_t d : last) dims.push_back(static_cast<int64_t>(batch_.size()) + d);
    return dims;
  }
  Instr* Number(double value) { return b.Scalar(kIndexType, value); }
  // The block of `rows` x `columns` (last two dimensions) at (row, column).
  Instr* Block(Instr* x, Instr* row, Instr* column, int64_t rows, int64_t columns) {
    std::vector<Instr*> starts(batch_.size(), Number(0));
    starts.push_back(row);
    starts.push_back(column);
    return b.DynamicSlice(x, std::move(starts), With({rows, columns}));
  }
  // Compares the index of each row (dimension 0 of the last two) or column (1) with `at`.
  Instr* Where(Dims dims, int64_t dimension, Instr* at, CompareDirection direction) {
    Shape shape = Shape::Array(kIndexType, dims);
    Instr* numbers = b.Iota(shape, static_cast<int64_t>(batch_.size()) + dimension);
    return b.Compare(numbers, b.Broadcast(at, std::move(dims), {}), direction);
  }
  Instr* Zero(const Shape& shape) {
    return b.Broadcast(b.Scalar(shape.type(), 0), shape.dims(), {});
  }

  // "counter < trips" over the same state.
  static Result<Computation*> Condition(const Instr& of, const std::string& name,
                                        const std::vector<Shape>& state, int64_t trips) {
    Builder b(of, name);
    Instr* counter = nullptr;
    for (const Shape& shape : state) {
      Instr* parameter = b.Parameter(shape);
      if (counter == nullptr) counter = parameter;
    }
    return b.Finish(b.Compare(counter, b.Scalar(kIndexType, static_cast<double>(trips)),
                              CompareDirection::kLt));
  }

 private:
  Dims batch_;
};

struct Expansion {
  Instr* instr;
  Editor edit;
  ElementType wide;  // f64, c128
  Dims batch;

  explicit Expansion(Instr* of) : instr(of), edit(*of, Editor::Naming::kUnnamed) {
    wide = IsComplex(of->shape().type()) ? ElementType::kC128 : ElementType::kF64;
    const Dims& dims = of->operand(0)->shape().dims();
    batch.assign(dims.begin(), dims.end() - 2);
  }

  Instr* Widen(size_t operand) {
    Term x = edit.Operand(operand);
    return x.type() == wide ? x.instr : x.As(wide).instr;
  }
  Instr* Narrow(Instr* x) {
    return x->shape().type() == instr->shape().type()
               ? x
               : edit.TermOf(x).As(instr->shape().type()).instr;
  }
  // x with its last two dimensions exchanged.
  Instr* Transposed(Instr* x) {
    Dims order(x->shape().dims().size()), dims = x->shape().dims();
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
    return edit.Make(Op::kTranspose, x->shape().WithDims(dims), {x}, DimensionsAttrs{order});
  }
  Instr* Conjugated(Instr* x) {
    Term z = edit.TermOf(x);
    if (!IsComplex(z.type())) return x;
    Term real = Real(z);
    return ComplexOf(real, -Imag(z)).instr;
  }
  // The while over `state`, whose first element counts from 0, and one element of its result.
  Instr* Loop(Computation* body, const std::vector<Instr*>& state, int64_t trips, Instr*& loop) {
    std::vector<Shape> shapes;
    for (const Instr* x : state) shapes.push_back(x->shape());
    Result<Computation*> condition =
        LoopBuilder::Condition(*instr, body->name() + "_more", shapes, trips);
    if (!condition.ok()) return nullptr;
    loop = edit.Make(Op::kWhile, Shape::Tuple(shapes), state, {});
    loop->set_called({condition.value(), body});
    return Element(loop, 1);
  }
  Instr* Element(Instr* loop, int64_t i) {
    return edit.Make(Op::kGetTupleElement, loop->shape().elements()[static_cast<size_t>(i)], {loop},
                     TupleIndexAttrs{i});
  }
  Instr* Counter() {
    return edit.Make(Op::kConstant, Shape::Scalar(kIndexType), {},
                     ConstantAttrs{Literal::ScalarInt(kIndexType, 0)});
  }
};

// One column of the factor: (j, matrix, good) to (j + 1, matrix, good). Columns before j contain
// the factor, the others the remaining matrix.
Result<Computation*> CholeskyStep(const Expansion& of, int64_t n) {
  LoopBuilder loop(*of.instr, "cholesky_step", of.batch);
  Builder& b = loop.b;
  Instr* j = b.Parameter(Shape::Scalar(kIndexType));
  Instr* matrix = b.Parameter(Shape::Array(of.wide, loop.With({n, n})));
  Instr* good = b.Parameter(Shape::Array(ElementType::kPred, of.batch));
  bool is_complex = IsComplex(of.wide);

  Instr* pivot = b.Reshape(loop.Block(matrix, j, j, 1, 1), of.batch);
  if (is_complex) pivot = b.Real(pivot);
  Instr* none = b.Broadcast(b.Scalar(ElementType::kF64, 0), of.batch, {});
  Instr* root = b.Sqrt(pivot);
  good = b.And(good, b.Compare(pivot, none, CompareDirection::kGt));
  if (is_complex) root = b.Complex(root, none);
  Instr* roots = b.Broadcast(root, loop.With({n, 1}), loop.BroadcastDims({}));

  Instr* column = loop.Block(matrix, loop.Number(0), j, n, 1);
  Instr* zero = b.Broadcast(b.Scalar(of.wide, 0), loop.With({n, 1}), {});
  Instr* is_below = loop.Where(loop.With({n, 1}), 0, j, CompareDirection::kGt);
  Instr* below = b.Select(is_below, b.Divide(column, roots), zero);
  Instr* diagonal = loop.Where(loop.With({n, 1}), 0, j, CompareDirection::kEq);
  Instr* finished = b.Select(diagonal, roots, below);

  Instr* flat = b.Reshape(below, loop.With({n}));
  Instr* rows = b.Broadcast(flat, loop.With({n, n}), loop.BroadcastDims({0}));
  Instr* columns = flat;
  if (is_complex) {
    Instr* real = b.Real(flat);
    columns = b.Complex(real, b.Negate(b.Imag(flat)));
  }
  columns = b.Broadcast(columns, loop.With({n, n}), loop.BroadcastDims({1}));
  Instr* row_waits = loop.Where(loop.With({n, n}), 0, j, CompareDirection::kGt);
  Instr* column_waits = loop.Where(loop.With({n, n}), 1, j, CompareDirection::kGt);
  Instr* waits = b.And(row_waits, column_waits);
  matrix = b.Select(waits, b.Subtract(matrix, b.Multiply(rows, columns)), matrix);
  std::vector<Instr*> starts(of.batch.size() + 1, loop.Number(0));
  starts.push_back(j);
  matrix = b.DynamicUpdateSlice(matrix, finished, std::move(starts));
  return b.Finish(b.Tuple({b.Add(j, loop.Number(1)), matrix, good}));
}

// A matrix that is not positive definite gives NaN in all elements.
Result<Instr*> ExpandCholesky(Expansion& of) {
  bool lower = of.instr->attrs<CholeskyAttrs>().lower;
  int64_t n = of.instr->shape().dims().back();
  TOK_TRY(Computation * step, CholeskyStep(of, n));
  Instr* matrix = of.Widen(0);
  if (!lower) matrix = of.Transposed(matrix);
  Instr* yes = of.edit.Make(Op::kConstant, Shape::Scalar(ElementType::kPred), {},
                            ConstantAttrs{Literal::ScalarInt(ElementType::kPred, 1)});
  if (!of.batch.empty())
    yes = of.edit.Make(Op::kBroadcast, Shape::Array(ElementType::kPred, of.batch), {yes},
                       DimensionsAttrs{});
  Instr* loop = nullptr;
  Instr* factor = of.Loop(step, {of.Counter(), matrix, yes}, n, loop);
  Dims broadcast_dims(of.batch.size());
  std::iota(broadcast_dims.begin(), broadcast_dims.end(), 0);
  Instr* good = of.edit.Make(Op::kBroadcast, factor->shape().WithType(ElementType::kPred),
                             {of.Element(loop, 2)}, DimensionsAttrs{broadcast_dims});
  Term value = of.edit.TermOf(factor);
  factor = Choose(of.edit.TermOf(good), value, value.NaN()).instr;
  if (!lower) factor = of.Transposed(factor);
  return of.Narrow(factor);
}

// One row of the solution of a x = c: (k, c, a) to (k + 1, c, a). Rows of c that are done contain
// x.
Result<Computation*> SolveStep(const Expansion& of, int64_t n, int64_t columns, bool forward,
                               bool unit) {
  LoopBuilder loop(*of.instr, "triangular_solve_step", of.batch);
  Builder& b = loop.b;
  Instr* k = b.Parameter(Shape::Scalar(kIndexType));
  Instr* c = b.Parameter(Shape::Array(of.wide, loop.With({n, columns})));
  Instr* a = b.Parameter(Shape::Array(of.wide, loop.With({n, n})));
  Instr* i = forward ? k : b.Subtract(loop.Number(static_cast<double>(n - 1)), k);

  Instr* row = b.Reshape(loop.Block(c, i, loop.Number(0), 1, columns), loop.With({columns}));
  if (!unit) {
    Instr* pivot = b.Reshape(loop.Block(a, i, i, 1, 1), of.batch);
    row = b.Divide(row, b.Broadcast(pivot, loop.With({columns}), loop.BroadcastDims({})));
  }
  Dims all = loop.With({n, columns});
  Instr* rows = b.Broadcast(row, all, loop.BroadcastDims({1}));
  Instr* factors = b.Reshape(loop.Block(a, loop.Number(0), i, n, 1), loop.With({n}));
  factors = b.Broadcast(factors, all, loop.BroadcastDims({0}));
  Instr* waits = loop.Where(all, 0, i, forward ? CompareDirection::kGt : CompareDirection::kLt);
  Instr* rest = b.Select(waits, b.Subtract(c, b.Multiply(factors, rows)), c);
  c = b.Select(loop.Where(all, 0, i, CompareDirection::kEq), rows, rest);
  return b.Finish(b.Tuple({b.Add(k, loop.Number(1)), c, a}));
}

// x op(a) = b is solved as op(a)^T x^T = b^T.
Result<Instr*> ExpandSolve(Expansion& of) {
  const TriangularSolveAttrs attrs = of.instr->attrs<TriangularSolveAttrs>();
  bool transposed = (attrs.transpose_a != Transpose::kNone) == attrs.left_side;
  bool forward = attrs.lower != transposed;
  const Dims& dims = of.instr->shape().dims();
  int64_t n = of.instr->operand(0)->shape().dims().back();
  int64_t columns = attrs.left_side ? dims.back() : dims[dims.size() - 2];
  TOK_TRY(Computation * step, SolveStep(of, n, columns, forward, attrs.unit_diagonal));
  Instr* a = of.Widen(0);
  if (attrs.transpose_a == Transpose::kAdjoint) a = of.Conjugated(a);
  if (transposed) a = of.Transposed(a);
  Instr* c = of.Widen(1);
  if (!attrs.left_side) c = of.Transposed(c);
  Instr* loop = nullptr;
  Instr* x = of.Loop(step, {of.Counter(), c, a}, n, loop);
  if (!attrs.left_side) x = of.Transposed(x);
  return of.Narrow(x);
}

bool HasOrdinaryOperands(const Instr& instr) {
  return std::ranges::all_of(instr.operands(),
                             [](const Instr* x) { return IsOrdinary(x->shape()); });
}

}  // namespace

// Expands cholesky and triangular-solve into counted loops of elementwise steps, in f64 or c128 and
// in the order of the interpreter: real results are bit-exact.
Result<Changed> ExpandLinearAlgebra(Module& module, PassContext& context) {
  Changed changed = Changed::kNo;
  for (size_t i = 0, count = module.computations().size(); i < count; ++i) {
    const Computation& computation = *module.computations()[i];
    if (computation.CountOf(Op::kCholesky) + computation.CountOf(Op::kTriangularSolve) == 0)
      continue;
    for (Instr* instr : computation.PostOrder()) {
      bool cholesky = instr->op() == Op::kCholesky;
      if (!cholesky && instr->op() != Op::kTriangularSolve) continue;
      if (!CanReplace(*instr, *instr)) continue;  // it has control dependences
      if (!HasOrdinaryOperands(*instr) || !IsOrdinary(instr->shape())) {
        context.Rejected("expand.dynamic-shape", *instr);
        continue;
      }
      Expansion expansion(instr);
      TOK_TRY(Instr * to, cholesky ? ExpandCholesky(expansion) : ExpandSolve(expansion));
      if (!expansion.edit.TryReplace(to)) continue;
      context.Accepted(cholesky ? "expand.cholesky" : "expand.triangular-solve", *instr);
      RemoveUnused(instr);
      changed = Changed::kYes;
    }
  }
  return changed;
}

}  // namespace tokamak
