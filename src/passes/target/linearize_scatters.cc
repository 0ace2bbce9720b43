#include "gen/generator.h"
#include "gen/library/scatter.h"
#include "passes/passes.h"
#include "passes/target/window_starts.h"
#include "rewrite/edit_computations.h"

namespace tokamak {
namespace {

// A scatter of the same elements into a flat array.
void Linearize(Instr& scatter) {
  Editor make(scatter);
  WindowStarts windows(scatter, make);
  const Shape shape = scatter.shape();
  const ScatterAttrs old = scatter.attrs<ScatterAttrs>();
  int64_t size = shape.ElementCount(), count = windows.count();
  Dims strides;
  for (size_t d = 0; d < shape.dims().size(); ++d)
    strides.push_back(ProductOf(shape.dims(), d + 1, shape.dims().size()));
  Instr* indices = nullptr;
  const Dims& moved = old.scatter_dims_to_operand_dims;
  if (moved.size() == 1 && shape.dim(static_cast<size_t>(moved[0])) == size &&
      scatter.operand(1)->shape().type() == ElementType::kS32 && old.input_batching_dims.empty()) {
    indices = make.Reshaped(scatter.operand(1), {count});
  } else {
    indices = windows.Sum(strides, -1);
    if (indices->shape().type() != ElementType::kS32)
      indices = make.Make(Op::kConvert, Shape::Array(ElementType::kS32, {count}), {indices});
  }
  ScatterAttrs attrs;
  attrs.inserted_window_dims = attrs.scatter_dims_to_operand_dims = {0};
  attrs.index_vector_dim = 1;
  attrs.unique_indices = old.unique_indices;
  Instr* scattered = make.Make(Op::kScatter, Shape::Array(shape.type(), {size}),
                               {make.Reshaped(scatter.operand(0), {size}), indices,
                                make.Reshaped(scatter.operand(2), {count})},
                               std::move(attrs));
  scattered->set_called({scatter.called(0)});
  make.Replace(make.Reshaped(scattered, shape.dims()));
}

}  // namespace

// Converts scatters of many single elements into scatters into a flat array with one s32 index
// array, which the runtime supports directly (runtime/scatter.h).
Result<Changed> LinearizeScatters(Module& module, PassContext& context) {
  return EditComputations(module, [&](Computation& computation) {
    bool changed = false;
    for (Instr* instr : computation.Instrs()) {
      if (instr->op() != Op::kScatter || !CanUseRuntimeScatter(*instr) ||
          UsesRuntimeScatter(*instr))
        continue;
      context.Accepted("scatter.linearize", *instr, nullptr, "many single elements");
      Linearize(*instr);
      changed = true;
    }
    return changed;
  });
}

}  // namespace tokamak
