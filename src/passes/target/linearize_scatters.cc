#include "gen/generator.h"
#include "gen/library/scatter.h"
#include "passes/passes.h"
#include "passes/target/window_places.h"
#include "rewrite/edit_computations.h"

namespace tokamak {
namespace {

// A scatter of the same elements into a line.
void Linearize(Instr& scatter) {
  Editor make(scatter);
  WindowPlaces windows(scatter, make);
  const Shape shape = scatter.shape();
  const ScatterAttrs old = scatter.attrs<ScatterAttrs>();
  int64_t size = shape.ElementCount(), count = windows.count();
  Dims strides;
  for (size_t d = 0; d < shape.dims().size(); ++d)
    strides.push_back(ProductOf(shape.dims(), d + 1, shape.dims().size()));
  Instr* places = nullptr;
  const Dims& moved = old.scatter_dims_to_operand_dims;
  if (moved.size() == 1 && shape.dim(static_cast<size_t>(moved[0])) == size &&
      scatter.operand(1)->shape().type() == ElementType::kS32 && old.input_batching_dims.empty()) {
    places = Reshaped(make, scatter.operand(1), {count});
  } else {
    places = windows.Sum(strides, -1);
    if (places->shape().type() != ElementType::kS32)
      places = make.Make(Op::kConvert, Shape::Array(ElementType::kS32, {count}), {places});
  }
  ScatterAttrs attrs;
  attrs.inserted_window_dims = attrs.scatter_dims_to_operand_dims = {0};
  attrs.index_vector_dim = 1;
  attrs.unique_indices = old.unique_indices;
  Instr* placed = make.Make(Op::kScatter, Shape::Array(shape.type(), {size}),
                            {Reshaped(make, scatter.operand(0), {size}), places,
                             Reshaped(make, scatter.operand(2), {count})},
                            std::move(attrs));
  placed->set_called({scatter.called(0)});
  make.Replace(Reshaped(make, placed, shape.dims()));
}

}  // namespace

// Scatters of many single elements become scatters into a line, at indices that are one array of
// s32: the runtime has a function for those (runtime/scatter.h).
Result<Changed> LinearizeScatters(Module& module, PassContext& context) {
  return EditComputations(module, [&](Computation& computation) {
    bool changed = false;
    for (Instr* instr : computation.Instrs()) {
      if (instr->op() != Op::kScatter || !MayBePlacedScatter(*instr) || IsPlacedScatter(*instr))
        continue;
      context.Taken("scatter.places", *instr, nullptr, "many single elements");
      Linearize(*instr);
      changed = true;
    }
    return changed;
  });
}

}  // namespace tokamak
