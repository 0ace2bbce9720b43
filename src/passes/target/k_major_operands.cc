#include "passes/target/k_major_operands.h"

#include <algorithm>
#include <numeric>

#include "analysis/dot_chains.h"
#include "gen/gpu/k_major.h"
#include "gen/library/dot.h"
#include "rewrite/editor.h"

namespace tokamak {
namespace {

// The operand as [batch, free, contracting], in f32 unless it has 8 bits and those are multiplied;
// these dimensions of it are then `batch` and `contracting`.
Instr* Copied(Instr& dot, size_t i, const gpu::TensorForm& form, const Dims& free, Dims& batch,
              Dims& contracting) {
  Editor make = Editor::Beside(dot);
  Instr* operand = dot.operand(i);
  if (form.tf32) operand = make.Converted(operand, ElementType::kF32);
  Dims order = batch, dims;
  order.insert(order.end(), free.begin(), free.end());
  order.insert(order.end(), contracting.begin(), contracting.end());
  if (std::ranges::is_sorted(order)) return operand;
  for (int64_t d : order) dims.push_back(operand->shape().dim(static_cast<size_t>(d)));
  std::iota(batch.begin(), batch.end(), int64_t{0});
  std::iota(contracting.begin(), contracting.end(),
            static_cast<int64_t>(batch.size() + free.size()));
  return make.Make(Op::kTranspose, Shape::Array(operand->shape().type(), dims), {operand},
                   DimensionsAttrs{order});
}

}  // namespace

bool MakeKMajor(Instr& dot, PassContext& context) {
  gpu::KMajorCopies choice;
  if (!AmortizesLibraryCall(dot, context.machine()) ||
      !gpu::ChooseKMajorCopies(dot, context.machine(), choice) || !choice.IsWorthwhile())
    return false;
  // A kernel of both dots of a chain may read what one dot alone could not.
  if (!choice.form.IsKMajorOnly() && IsInDotChain(dot)) return false;
  const auto [of_lhs, of_rhs] = choice.copies;
  context.AcceptedByCost("contraction.copy-operand", dot, choice.before_us, choice.after_us,
                         !of_rhs   ? "lhs"
                         : !of_lhs ? "rhs"
                                   : "lhs, rhs");
  DotDimensions dot_dims(dot);
  DotAttrs attrs = dot.attrs<DotAttrs>();
  std::array<Instr*, 2> operands = {dot.operand(0), dot.operand(1)};
  if (of_lhs)
    operands[0] =
        Copied(dot, 0, choice.form, dot_dims.lhs_free, attrs.lhs_batch, attrs.lhs_contracting);
  if (of_rhs)
    operands[1] =
        Copied(dot, 1, choice.form, dot_dims.rhs_free, attrs.rhs_batch, attrs.rhs_contracting);
  for (size_t i : {0, 1}) dot.set_operand(i, operands[i]);
  dot.set_attrs(std::move(attrs));
  return true;
}

}  // namespace tokamak
