#include <fmt/format.h>

#include "gen/contract_tiling.h"
#include "gen/generator.h"
#include "passes/passes.h"
#include "rewrite/edit_computations.h"
#include "rewrite/editor.h"
#include "rewrite/loop_edit.h"

namespace tokamak {
namespace {

// Rows of a dot outside loops. Chosen: with fewer, rhs is packed about as often by its tiles, which
// have up to 256 rows, and the separate pass over memory costs more.
constexpr int64_t kLeastRows = 1024;

bool IsOne(const Instr& dot, const Machine& machine) {
  return dot.op() == Op::kDot && !dot.has_extras() &&
         dot.attrs<DotAttrs>().rhs_contracting.size() == 1 &&
         ChooseRhsBlockWidth(dot, machine) > 0 && PrepackedRhsBlockWidth(dot, machine) == 0 &&
         dot.operand(1)->shape().ByteSize() <= kMaxMovedBytes &&
         TilingOf(dot, DotDimensions(dot), machine, false).PaddedDepth() == DotDimensions(dot).k;
}

// The right operand of a dot in blocks (n / block, k, block), created in computation `in`.
Instr* Blocks(const Instr& dot, int64_t block, Instr* matrix, Computation& in) {
  DotDimensions dot_dims(dot);
  ElementType type = matrix->shape().type();
  auto make = [&](Op op, Dims dims, Attrs attrs = {}) {
    matrix =
        Editor(dot, in).Make(op, Shape::Array(type, std::move(dims)), {matrix}, std::move(attrs));
  };
  int64_t depth = dot_dims.attrs.rhs_contracting[0];
  if (depth == 0) {
    make(Op::kReshape, {dot_dims.k, dot_dims.n / block, block});
    make(Op::kTranspose, {dot_dims.n / block, dot_dims.k, block}, DimensionsAttrs{{1, 0, 2}});
    return matrix;
  }
  if (Dims order = dot_dims.rhs_free; order.back() > depth) {
    order.push_back(depth);
    make(Op::kTranspose, SizesAlong(dot_dims.rhs_dims, order), DimensionsAttrs{order});
  }
  make(Op::kReshape, {dot_dims.n / block, block, dot_dims.k});
  make(Op::kTranspose, {dot_dims.n / block, dot_dims.k, block}, DimensionsAttrs{{0, 2, 1}});
  return matrix;
}

// The dot with its right operand in blocks.
Instr* Product(const Instr& dot, Instr* blocks) {
  DotDimensions dot_dims(dot);
  DotAttrs attrs = dot.attrs<DotAttrs>();
  attrs.rhs_contracting = {1};
  Dims dims = SizesAlong(dot_dims.lhs_dims, dot_dims.lhs_free);
  dims.push_back(blocks->shape().dim(0));
  dims.push_back(blocks->shape().dim(2));
  Instr* product = Editor(dot, *dot.parent())
                       .Make(Op::kDot, Shape::Array(dot.shape().type(), std::move(dims)),
                             {dot.operand(0), blocks}, std::move(attrs));
  return Editor(dot, *dot.parent()).Make(Op::kReshape, dot.shape().WithoutLayout(), {product});
}

// dot(w, x) as dot(x, w), whose result has the dimensions of x first.
Instr* WithOperandsExchanged(const Instr& dot, Editor& edit) {
  DotDimensions dot_dims(dot);
  Dims dims = SizesAlong(dot_dims.rhs_dims, dot_dims.rhs_free);
  for (int64_t size : SizesAlong(dot_dims.lhs_dims, dot_dims.lhs_free)) dims.push_back(size);
  return edit.Make(Op::kDot, Shape::Array(dot.shape().type(), std::move(dims)),
                   {dot.operand(1), dot.operand(0)}, Exchanged(dot.attrs<DotAttrs>()));
}

// Whether dot(w, x) is faster as dot(x, w) with a prepacked w: the columns of x do not fill a block
// of vectors, and those of w do.
bool IsFasterExchanged(const Instr& dot, const Machine& machine) {
  if (dot.op() != Op::kDot || dot.has_extras() || !dot.attrs<DotAttrs>().lhs_batch.empty())
    return false;
  Editor edit = Editor::Beside(dot);
  const Instr& exchanged = *WithOperandsExchanged(dot, edit);
  bool is_faster =
      IsOne(exchanged, machine) && DotDimensions(dot).n < ChooseRhsBlockWidth(exchanged, machine);
  edit.Discard();
  return is_faster;
}

// Exchanges the dimensions of a result back.
Instr* ExchangedBack(const Instr& dot, Instr* product) {
  auto rank = static_cast<int64_t>(product->shape().dims().size());
  auto left = static_cast<int64_t>(DotDimensions(dot).lhs_free.size());
  Dims order;
  for (int64_t d = 0; d < rank; ++d) order.push_back((d + rank - left) % rank);
  return Editor::Beside(dot).Make(Op::kTranspose, dot.shape().WithoutLayout(), {product},
                                  DimensionsAttrs{std::move(order)});
}

void Record(const Instr& dot, std::string because, PassContext& context) {
  context.Accepted("contraction.prepack", dot, nullptr, std::move(because));
}

class InLoop {
 public:
  InLoop(const WhileLoop& loop, const Machine& machine) : edit_(loop), machine_(machine) {}

  bool Find() {
    if (*TripCount(edit_.loop()) < kMinMovedTrips) return false;
    for (Instr* instr : edit_.body().PostOrder())
      if (IsOne(*instr, machine_) && edit_.IsLoopInvariant(instr->operand(1)))
        found_.push_back({instr, false});
      else if (IsFasterExchanged(*instr, machine_) && edit_.IsLoopInvariant(instr->operand(0)))
        found_.push_back({instr, true});
    return !found_.empty() && !CanBuildWholeLoop(*edit_.loop().instr, machine_);
  }

  void Run(PassContext& context) {
    for (auto [dot, is_left] : found_) {
      Record(*dot,
             fmt::format("{} iterations multiply by the same matrix: it is packed once",
                         *TripCount(edit_.loop())),
             context);
      Editor edit = Editor::Beside(*dot);
      const Instr& to = is_left ? *WithOperandsExchanged(*dot, edit) : *dot;
      Instr* blocks = Blocks(to, ChooseRhsBlockWidth(to, machine_), edit_.BeforeLoop(to.operand(1)),
                             edit_.before());
      Instr* product = Product(to, edit_.Carry(blocks));
      edit_.ReplaceInBody(dot, is_left ? ExchangedBack(*dot, product) : product);
    }
    edit_.Finish();
    edit_.Close();
  }

 private:
  LoopEdit edit_;
  const Machine& machine_;
  struct Found {
    Instr* dot;
    bool is_left;  // the matrix is the left operand
  };
  std::vector<Found> found_;
};

// Outside loops: for dots with many tiles, each of which would pack the matrix again.
bool PrepackWeightsIn(Computation& computation, const Machine& machine, PassContext& context) {
  bool changed = false;
  for (Instr* instr : computation.Instrs()) {
    if (!IsOne(*instr, machine) || DotDimensions(*instr).m < kLeastRows) continue;
    Record(*instr, "tiles of many rows multiply by the same matrix: it is packed once", context);
    Instr* blocks =
        Blocks(*instr, ChooseRhsBlockWidth(*instr, machine), instr->operand(1), computation);
    Editor(*instr).Replace(Product(*instr, blocks));
    changed = true;
  }
  return changed;
}

}  // namespace

// Weight prepacking. If each iteration of a loop would pack the right operand (k, n) of a dot into
// vector order, or read it transposed, it is packed once before the loop:
//
//   dot(x, w)  becomes  reshape(dot(x, blocks)),  blocks (n / 16, k, 16) carried
//
// dot(w, x) becomes the transpose of such a dot if x has fewer columns than a block.
// (An LSTM step of 32 x 256 x 1024 on two Neoverse V1 cores: 137 -> 115 us.) Record
// contraction.prepack. Applies to loops with a known trip count that are not whole-loop kernels.
// With short vectors it also applies to dots with many rows outside loops.
Result<Changed> PrepackWeights(Module& module, PassContext& context) {
  const Machine& machine = context.machine();
  Changed changed = ForEditableLoops(module, [&](const WhileLoop& loop) {
    InLoop in_loop(loop, machine);
    if (!in_loop.Find()) return false;
    in_loop.Run(context);
    return true;
  });
  // With long vectors, unpacked panels are read equally fast, and tiles pack concurrently.
  if (!machine.HasShortVectors()) return changed;
  std::set<const Computation*> in_loops = ComputationsOfLoops(module);
  return changed | EditComputations(module, [&](Computation& computation) {
           return !in_loops.contains(&computation) &&
                  PrepackWeightsIn(computation, machine, context);
         });
}

}  // namespace tokamak
