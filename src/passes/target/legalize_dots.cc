#include <algorithm>
#include <numeric>

#include "gen/contract.h"
#include "gen/dot_dimensions.h"
#include "gen/gpu/affine_view.h"
#include "gen/library/dot.h"
#include "gen/library/libraries.h"
#include "passes/passes.h"
#include "passes/target/k_major_operands.h"
#include "passes/target/swap_sides.h"
#include "rewrite/edit_computations.h"
#include "rewrite/editor.h"

namespace tokamak {
namespace {

class DotLegalizer {
 public:
  DotLegalizer(Computation& computation, const Machine& machine, PassContext& context)
      : computation_(computation), machine_(machine), context_(context) {}

  bool Prepare(Instr& dot) {
    std::optional<ElementType> type = LibraryTypeOf(dot);
    if (!type || !AmortizesLibraryCall(dot, machine_) || LibraryDotOf(dot, machine_)) return false;
    DotAttrs attrs = dot.attrs<DotAttrs>();
    DotDimensions dot_dims(dot);
    DotSide lhs{dot_dims.lhs_free, {}, false}, rhs{dot_dims.rhs_free, {}, false};
    // An order of the contracted dimensions in which neither operand must be transposed; otherwise
    // the first.
    for (const auto& [left, right] : ContractingOrders(attrs)) {
      bool lhs_laid =
          MatrixOf(dot_dims.lhs_dims, dot_dims.lhs_free, left, dot_dims.m == 1).has_value();
      bool rhs_laid =
          MatrixOf(dot_dims.rhs_dims, dot_dims.rhs_free, right, dot_dims.n == 1).has_value();
      if (!lhs.contracting.empty() && !(lhs_laid && rhs_laid)) continue;
      lhs = {dot_dims.lhs_free, left, lhs_laid};
      rhs = {dot_dims.rhs_free, right, rhs_laid};
    }
    if ((dot_dims.m == 1 && !rhs.laid && IsReadAlongRows(dot_dims.rhs_dims, rhs)) ||
        (dot_dims.n == 1 && !lhs.laid && IsReadAlongRows(dot_dims.lhs_dims, lhs)))
      return false;
    attrs.lhs_contracting = lhs.contracting;
    attrs.rhs_contracting = rhs.contracting;
    bool narrow = SupportsNarrowFloats(dot, machine_);
    if (narrow) type = dot.operand(0)->shape().type();
    std::string what = Pack(dot, 0, *type, lhs, attrs.lhs_batch, attrs.lhs_contracting) +
                       Pack(dot, 1, *type, rhs, attrs.rhs_batch, attrs.rhs_contracting);
    dot.set_attrs(std::move(attrs));
    if (!narrow && dot.shape().type() != *type) Narrow(dot, *type);
    context_.Accepted("library.prepare", dot, nullptr,
                      what.empty() ? "its result is rounded" : what);
    return true;
  }

 private:
  struct DotSide {
    Dims free, contracting;
    bool laid = false;
  };

  // Whether a CPU kernel can read this matrix directly instead of transposing it for a
  // matrix-vector product. It is read once, with contiguous vectors. (7) times (4000, 7, 100): 1.8
  // ms against 15.5 ms for transpose and library call.
  bool IsReadAlongRows(const Dims& dims, const DotSide& side) const {
    // Contiguous elements needed for vector loads. Chosen: a vector of f32 of the widest CPUs.
    constexpr int64_t kNeighbours = 16;
    auto last = static_cast<int64_t>(dims.size()) - 1;
    return !machine_.is_gpu() && std::ranges::find(side.free, last) != side.free.end() &&
           dims.back() >= kNeighbours;
  }

  Instr* Add(Op op, Shape shape, Instr* operand, Attrs attrs, const Instr& dot) {
    return Editor(dot, computation_).Make(op, std::move(shape), {operand}, std::move(attrs));
  }

  // One operand, converted to the library's type and transposed to batch, free, contracting unless
  // its layout is already supported (`laid`).
  std::string Pack(Instr& dot, size_t i, ElementType type, const DotSide& side, Dims& batch,
                   Dims& contracting) {
    Instr* operand = dot.operand(i);
    const Shape before = operand->shape();
    std::string text;
    if (before.type() != type) {
      operand = Add(Op::kConvert, Shape::Array(type, before.dims()), operand, {}, dot);
      text = " is converted";
    }
    if (!side.laid) {
      Dims order = batch, dims;
      order.insert(order.end(), side.free.begin(), side.free.end());
      order.insert(order.end(), contracting.begin(), contracting.end());
      for (int64_t d : order) dims.push_back(before.dim(static_cast<size_t>(d)));
      operand = Add(Op::kTranspose, Shape::Array(type, dims), operand, DimensionsAttrs{order}, dot);
      std::iota(batch.begin(), batch.end(), int64_t{0});
      std::iota(contracting.begin(), contracting.end(),
                static_cast<int64_t>(batch.size() + side.free.size()));
      text += text.empty() ? " is transposed" : " and transposed";
    }
    if (text.empty()) return "";
    dot.set_operand(i, operand);
    return (i == 0 ? "lhs" : "; rhs") + text;
  }

  void Narrow(Instr& dot, ElementType type) {
    Instr* rounded = Add(Op::kConvert, dot.shape().WithoutLayout(), dot.operand(0), {}, dot);
    if (computation_.root() == &dot) computation_.set_root(rounded);
    computation_.ReplaceUses(&dot, rounded);
    rounded->set_operand(0, &dot);
    dot.set_shape(Shape::Array(type, dot.shape().dims()));
  }

  Computation& computation_;
  const Machine& machine_;
  PassContext& context_;
};

}  // namespace

bool SwapSides(Instr& dot, PassContext& context) {
  // The rows of tiles are boxes of windows, columns are not (gen/gpu/window_tiling.h).
  if (context.machine().async_multiply && gpu::IsWindowed(*dot.operand(0))) return false;
  if (dot.users().size() != 1 || dot.parent()->root() == &dot) return false;
  Instr& transpose = **dot.users().begin();
  if (transpose.op() != Op::kTranspose) return false;
  DotAttrs attrs = dot.attrs<DotAttrs>();
  DotDimensions dot_dims(dot);
  auto batch = static_cast<int64_t>(attrs.lhs_batch.size());
  auto left = static_cast<int64_t>(dot_dims.lhs_free.size());
  auto right = static_cast<int64_t>(dot_dims.rhs_free.size());
  Dims order = transpose.attrs<DimensionsAttrs>().dimensions, dims;
  if (order.back() < batch || order.back() >= batch + left) return false;
  for (int64_t d = 0; d < batch + right + left; ++d)
    dims.push_back(dot.shape().dim(static_cast<size_t>(d < batch           ? d
                                                       : d < batch + right ? d + left
                                                                           : d - right)));
  for (int64_t& d : order) d = d < batch ? d : d < batch + left ? d + right : d - left;
  std::swap(attrs.lhs_batch, attrs.rhs_batch);
  std::swap(attrs.lhs_contracting, attrs.rhs_contracting);
  Instr *lhs = dot.operand(0), *rhs = dot.operand(1);
  dot.set_operand(0, rhs);
  dot.set_operand(1, lhs);
  dot.set_attrs(std::move(attrs));
  dot.set_shape(Shape::Array(dot.shape().type(), std::move(dims)));
  transpose.set_attrs(DimensionsAttrs{std::move(order)});
  context.Accepted("contraction.swap-sides", dot, nullptr, "its results are transposed");
  return true;
}

// Inserts conversions (bf16, f16 to f32 and back) and transposes around dots that a library
// computes, so that it supports them directly. Exchanges the operands of generated dots whose
// results are transposed.
Result<Changed> LegalizeDots(Module& module, PassContext& context) {
  Machine machine = context.machine();
  if (TargetLibraries* libraries = context.target.libraries; libraries != nullptr)
    machine.uses_library = NeedsBlas(module, machine) && libraries->HasMatrixMultiply();
  return EditComputations(module, [&](Computation& computation) {
    bool changed = false;
    DotLegalizer preparer(computation, machine, context);
    for (Instr* instr : computation.Instrs()) {
      if (instr->op() != Op::kDot) continue;
      bool to_library = machine.uses_library && !PrefersGenerator(*instr, machine);
      if (CanUseContract(*instr, machine) && !to_library) {
        changed |= SwapSides(*instr, context);
        changed |= MakeKMajor(*instr, context);
      } else if (machine.uses_library && preparer.Prepare(*instr)) {
        changed = true;
      }
    }
    return changed;
  });
}

}  // namespace tokamak
