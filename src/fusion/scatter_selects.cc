#include "fusion/scatter_selects.h"

#include <algorithm>
#include <limits>

#include "fusion/expand_ops.h"
#include "gen/generator.h"
#include "gen/reducer.h"

namespace tokamak {
namespace {

bool Contains(const Dims& dims, int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

bool SetsElement(const Instr& scatter) {
  const Computation& body = *scatter.called(0);
  return body.parameters().size() == 2 && body.root() == body.parameter(1);
}

// Whether each batch has one update, of one element, and batches are in order.
bool HasOneUpdateEach(const Instr& scatter) {
  const ScatterAttrs& attrs = scatter.attrs<ScatterAttrs>();
  const Shape& shape = scatter.shape();
  int64_t batches = 1;
  for (int64_t d : attrs.input_batching_dims) batches *= shape.dim(static_cast<size_t>(d));
  if (scatter.operand(2)->shape().ElementCount() != batches) return false;
  for (int64_t d = 0; d < shape.rank(); ++d)
    if (shape.dim(static_cast<size_t>(d)) != 1 && !Contains(attrs.input_batching_dims, d) &&
        !Contains(attrs.scatter_dims_to_operand_dims, d))
      return false;
  return std::is_sorted(attrs.input_batching_dims.begin(), attrs.input_batching_dims.end()) &&
         std::is_sorted(attrs.scatter_indices_batching_dims.begin(),
                        attrs.scatter_indices_batching_dims.end());
}

bool IsWanted(const Instr& scatter) {
  if (scatter.op() != Op::kScatter || WhyNoScatter(scatter) || IsTied(scatter)) return false;
  const Instr& array = *scatter.operand(0);
  if (array.op() != Op::kBroadcast || !array.operand(0)->shape().IsScalar()) return false;
  return HasOneUpdateEach(scatter) && (SetsElement(scatter) || AnyOrderOp(*scatter.called(0)));
}

class SelectedScatter {
 public:
  explicit SelectedScatter(Instr& scatter)
      : scatter_(scatter), attrs_(scatter.attrs<ScatterAttrs>()), make_(scatter) {
    for (int64_t d : attrs_.input_batching_dims)
      batch_.push_back(scatter.shape().dim(static_cast<size_t>(d)));
    // An index that the type does not hold lies outside of the array in either.
    const Dims& dims = scatter.shape().dims();
    int bits = InfoOf(scatter.operand(1)->shape().type()).bits;
    bool fits = bits <= 32 && std::all_of(dims.begin(), dims.end(), [](int64_t size) {
                  return size <= std::numeric_limits<int32_t>::max();
                });
    type_ = fits ? ElementType::kS32 : ElementType::kS64;
  }

  void Run() {
    const Shape& shape = scatter_.shape();
    Instr* old = scatter_.operand(0);
    Instr* made = InBatches(scatter_.operand(2));
    if (!SetsElement(scatter_))
      made = make_.Make(*AnyOrderOp(*scatter_.called(0)), made->shape(),
                        {make_.Spread(old->operand(0), made->shape()), made});
    Instr* here = nullptr;
    for (size_t k = 0; k < attrs_.scatter_dims_to_operand_dims.size(); ++k) {
      Instr* is = IsAt(k);
      here = here == nullptr ? is : make_.Make(Op::kAnd, is->shape(), {here, is});
    }
    if (here == nullptr) return make_.Replace(OverArray(made));
    make_.Replace(make_.Make(Op::kSelect, shape, {here, OverArray(made), old}));
  }

 private:
  // One element a batch, in the order of the array's dimensions.
  Instr* InBatches(Instr* x) {
    if (x->shape().dims() == batch_) return x;
    return make_.Make(Op::kReshape, Shape::Array(x->shape().type(), batch_), {x});
  }

  Instr* OverArray(Instr* x) {
    Shape shape = Shape::Array(x->shape().type(), scatter_.shape().dims());
    return make_.Make(Op::kBroadcast, shape, {x}, DimensionsAttrs{attrs_.input_batching_dims});
  }

  // Component k of the batches' index vectors.
  Instr* Component(size_t k) {
    Instr* x = scatter_.operand(1);
    if (attrs_.scatter_dims_to_operand_dims.size() > 1) {
      SliceAttrs slice;
      slice.limits = x->shape().dims();
      slice.starts.assign(slice.limits.size(), 0);
      slice.strides.assign(slice.limits.size(), 1);
      auto along = static_cast<size_t>(attrs_.index_vector_dim);
      slice.starts[along] = static_cast<int64_t>(k);
      slice.limits[along] = slice.starts[along] + 1;
      Dims dims = x->shape().dims();
      dims[along] = 1;
      x = make_.Make(Op::kSlice, Shape::Array(x->shape().type(), dims), {x}, std::move(slice));
    }
    x = InBatches(x);
    if (x->shape().type() == type_) return x;
    return make_.Make(Op::kConvert, Shape::Array(type_, batch_), {x});
  }

  // Whether an element of the array lies where component k of its batch's index says.
  Instr* IsAt(size_t k) {
    const Dims& dims = scatter_.shape().dims();
    Instr* place = make_.Make(Op::kIota, Shape::Array(type_, dims), {},
                              IotaAttrs{attrs_.scatter_dims_to_operand_dims[k]});
    CompareAttrs equal;
    equal.direction = CompareDirection::kEq;
    return make_.Make(Op::kCompare, Shape::Array(ElementType::kPred, dims),
                      {place, OverArray(Component(k))}, std::move(equal));
  }

  Instr& scatter_;
  const ScatterAttrs attrs_;
  Expansion make_;
  Dims batch_;
  ElementType type_;
};

}  // namespace

void SelectScatters(Module& module, DecisionLog& log) {
  for (const auto& computation : module.computations()) {
    bool changed = false;
    for (Instr* instr : computation->Instrs()) {
      if (!IsWanted(*instr)) continue;
      log.Add({.pass = "fuse",
               .rule = "scatter.select",
               .subject = LabelOf(*instr),
               .origins = instr->origins(),
               .because = "one element of each batch, and one number elsewhere"});
      SelectedScatter(*instr).Run();
      changed = true;
    }
    if (changed) computation->PutInOrder();
  }
}

}  // namespace tokamak
