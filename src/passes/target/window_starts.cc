#include "passes/target/window_starts.h"

#include <algorithm>

namespace tokamak {
namespace {

bool IsWindowed(const Dims& dims, int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

}  // namespace

Dims WindowExtent(const Instr& scatter) {
  const ScatterAttrs& attrs = scatter.attrs<ScatterAttrs>();
  Dims extent(scatter.shape().dims().size(), 1);
  size_t next = 0;
  for (size_t d = 0; d < extent.size(); ++d) {
    auto dimension = static_cast<int64_t>(d);
    if (IsWindowed(attrs.inserted_window_dims, dimension) ||
        IsWindowed(attrs.input_batching_dims, dimension))
      continue;
    extent[d] =
        scatter.operand(2)->shape().dim(static_cast<size_t>(attrs.update_window_dims[next++]));
  }
  return extent;
}

bool WindowsMayPartlyOverlap(const Instr& scatter) {
  Dims extent = WindowExtent(scatter);
  for (int64_t dimension : scatter.attrs<ScatterAttrs>().scatter_dims_to_operand_dims) {
    auto d = static_cast<size_t>(dimension);
    if (extent[d] > 1 && extent[d] < scatter.shape().dim(d)) return true;
  }
  return false;
}

WindowStarts::WindowStarts(Instr& scatter, Editor& make)
    : scatter_(scatter),
      attrs_(scatter.attrs<ScatterAttrs>()),
      make_(make),
      indices_(scatter.operand(1)),
      extent_(WindowExtent(scatter)) {
  const Dims& dims = indices_->shape().dims();
  for (size_t d = 0; d < dims.size(); ++d)
    if (static_cast<int64_t>(d) != attrs_.index_vector_dim) count_ *= dims[d];
  ElementType type = indices_->shape().type();
  // An unsigned number needs a wider signed type.
  int bits = InfoOf(type).bits + (IsSigned(type) ? 0 : 1);
  type_ = bits <= 32 ? ElementType::kS32 : ElementType::kS64;
  for (int64_t d = 0; d < scatter.shape().rank(); ++d)
    if (IsWindowed(attrs_.scatter_dims_to_operand_dims, d) ||
        IsWindowed(attrs_.input_batching_dims, d))
      moved_.push_back(d);
}

Dims WindowStarts::StartsAlong() const {
  Dims start_counts;
  for (int64_t d : moved_)
    start_counts.push_back(scatter_.shape().dim(static_cast<size_t>(d)) - Extent(d) + 1);
  return start_counts;
}

Instr* WindowStarts::Number(int64_t value) {
  return make_.Filled(Line(), Literal::ScalarInt(type_, value));
}

// Component k of all index vectors.
Instr* WindowStarts::Component(size_t k) {
  Instr* x = indices_;
  auto along = static_cast<size_t>(attrs_.index_vector_dim);
  if (attrs_.scatter_dims_to_operand_dims.size() > 1) {
    SliceAttrs slice;
    slice.limits = x->shape().dims();
    slice.starts.assign(slice.limits.size(), 0);
    slice.strides.assign(slice.limits.size(), 1);
    slice.starts[along] = static_cast<int64_t>(k);
    slice.limits[along] = slice.starts[along] + 1;
    Dims dims = x->shape().dims();
    dims[along] = 1;
    x = make_.Make(Op::kSlice, Shape::Array(x->shape().type(), dims), {x}, std::move(slice));
  }
  x = make_.Reshaped(x, {count_});
  return x->shape().type() == type_ ? x : make_.Make(Op::kConvert, Line(), {x});
}

// The index of a window along a batching dimension of the indices.
Instr* WindowStarts::Batch(int64_t of_indices) {
  Dims dims = indices_->shape().dims();
  if (attrs_.index_vector_dim < static_cast<int64_t>(dims.size()))
    dims[static_cast<size_t>(attrs_.index_vector_dim)] = 1;
  Instr* iota = make_.Make(Op::kIota, Shape::Array(type_, dims), {}, IotaAttrs{of_indices});
  return make_.Reshaped(iota, {count_});
}

Instr* WindowStarts::Compared(Instr* x, Instr* y) {
  CompareAttrs compare;
  compare.direction = CompareDirection::kLt;
  return make_.Make(Op::kCompare, Shape::Array(ElementType::kPred, {count_}), {x, y},
                    std::move(compare));
}

Instr* WindowStarts::Sum(const Dims& strides, int64_t outside) {
  Instr *place = nullptr, *is_outside = nullptr;
  auto add = [&](Instr* along, int64_t d) {
    int64_t stride = strides[static_cast<size_t>(d)];
    if (stride != 1) along = make_.Make(Op::kMultiply, Line(), {along, Number(stride)});
    place = place == nullptr ? along : make_.Make(Op::kAdd, Line(), {place, along});
  };
  const Dims& along = attrs_.scatter_dims_to_operand_dims;
  for (size_t k = 0; k < along.size(); ++k) {
    Instr* x = Component(k);
    int64_t last = scatter_.shape().dim(static_cast<size_t>(along[k])) - Extent(along[k]);
    for (Instr* out : {Compared(x, Number(0)), Compared(Number(last), x)})
      is_outside =
          is_outside == nullptr ? out : make_.Make(Op::kOr, out->shape(), {is_outside, out});
    add(x, along[k]);
  }
  for (size_t i = 0; i < attrs_.input_batching_dims.size(); ++i)
    add(Batch(attrs_.scatter_indices_batching_dims[i]), attrs_.input_batching_dims[i]);
  return make_.Make(Op::kSelect, Line(), {is_outside, Number(outside), place});
}

}  // namespace tokamak
