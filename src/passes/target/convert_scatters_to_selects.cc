#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <set>

#include "gen/generator.h"
#include "gen/reducer.h"
#include "passes/passes.h"
#include "rewrite/edit_computations.h"
#include "rewrite/editor.h"
#include "rewrite/loop_edit.h"

namespace tokamak {
namespace {

bool IsSelected(const Dims& dims, int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

bool SetsElement(const Instr& scatter) {
  const Computation& body = *scatter.called(0);
  return body.parameters().size() == 2 && body.root() == body.parameter(1);
}

// Inside a loop body: maximum array elements per update element for which a select over the whole
// array is used. Chosen: a select per element of that many fuses and costs less than a scatter.
constexpr int64_t kFewChoices = 8;

// The dimension of the array that each dimension of updates and of indices runs along; -1: none,
// because it has size 1.
struct SelectForm {
  std::vector<int64_t> updates, indices;
};

// Null if a batch may have several updates, or if windows cover a dimension only partially.
std::optional<SelectForm> SelectFormOf(const Instr& scatter) {
  const ScatterAttrs& attrs = scatter.attrs<ScatterAttrs>();
  const Shape &shape = scatter.shape(), &updates = scatter.operand(2)->shape();
  const Dims& indices = scatter.operand(1)->shape().dims();
  SelectForm form{std::vector<int64_t>(updates.dims().size(), -1),
                  std::vector<int64_t>(indices.size(), -1)};
  for (size_t i = 0; i < attrs.input_batching_dims.size(); ++i)
    form.indices[static_cast<size_t>(attrs.scatter_indices_batching_dims[i])] =
        attrs.input_batching_dims[i];
  std::vector<int64_t> windows;  // dimensions of the array that windows cover
  for (int64_t d = 0; d < shape.rank(); ++d)
    if (!IsSelected(attrs.inserted_window_dims, d) && !IsSelected(attrs.input_batching_dims, d))
      windows.push_back(d);
  size_t next_window = 0, next_index = 0;
  for (size_t u = 0; u < form.updates.size(); ++u) {
    if (IsSelected(attrs.update_window_dims, static_cast<int64_t>(u))) {
      int64_t d = windows[next_window++];
      if (updates.dim(u) == 1 && shape.dim(static_cast<size_t>(d)) != 1 &&
          IsSelected(attrs.scatter_dims_to_operand_dims, d))
        continue;
      if (updates.dim(u) != shape.dim(static_cast<size_t>(d)) ||
          (IsSelected(attrs.scatter_dims_to_operand_dims, d) && updates.dim(u) != 1))
        return std::nullopt;
      form.updates[u] = d;
      continue;
    }
    if (static_cast<int64_t>(next_index) == attrs.index_vector_dim) ++next_index;
    form.updates[u] = form.indices[next_index++];
    if (form.updates[u] < 0 && updates.dim(u) != 1) return std::nullopt;
  }
  return form;
}

bool IsWanted(const Instr& scatter, bool in_loop) {
  if (scatter.op() != Op::kScatter || WhyNoScatterKernel(scatter) ||
      HasControlDependencies(scatter))
    return false;
  const Instr& array = *scatter.operand(0);
  bool one_number = array.op() == Op::kBroadcast && array.operand(0)->shape().IsScalar();
  bool few = in_loop && scatter.shape().ElementCount() <=
                            kFewChoices * scatter.operand(2)->shape().ElementCount();
  if (!one_number && !few) return false;
  return (SetsElement(scatter) || CommutativeOpOf(*scatter.called(0))) && SelectFormOf(scatter);
}

class SelectedScatter {
 public:
  explicit SelectedScatter(Instr& scatter)
      : scatter_(scatter),
        attrs_(scatter.attrs<ScatterAttrs>()),
        form_(*SelectFormOf(scatter)),
        make_(scatter) {
    // An index that the type cannot represent is outside the array in either case.
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
    Instr* made = OverArray(scatter_.operand(2), form_.updates);
    if (!SetsElement(scatter_))
      made = make_.Make(*CommutativeOpOf(*scatter_.called(0)), shape, {old, made});
    Instr* here = nullptr;
    for (size_t k = 0; k < attrs_.scatter_dims_to_operand_dims.size(); ++k) {
      Instr* is = IsAt(k);
      here = here == nullptr ? is : make_.Make(Op::kAnd, is->shape(), {here, is});
    }
    if (here == nullptr) return make_.Replace(made);
    make_.Replace(make_.Make(Op::kSelect, shape, {here, made, old}));
  }

 private:
  // Broadcasts an array whose dimensions run along the array, or have size 1, over the whole array.
  Instr* OverArray(Instr* x, const std::vector<int64_t>& form) {
    Dims own, along;
    for (size_t d = 0; d < form.size(); ++d) {
      if (form[d] < 0) continue;
      own.push_back(x->shape().dim(d));
      along.push_back(form[d]);
    }
    ElementType type = x->shape().type();
    if (x->shape().dims() != own) x = make_.Make(Op::kReshape, Shape::Array(type, own), {x});
    Dims order(along.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](int64_t i) { return along[static_cast<size_t>(i)]; });
    if (!std::ranges::is_sorted(order)) {
      Dims sorted;
      for (int64_t i : order) sorted.push_back(own[static_cast<size_t>(i)]);
      x = make_.Make(Op::kTranspose, Shape::Array(type, sorted), {x}, DimensionsAttrs{order});
      std::ranges::sort(along);
    }
    Shape shape = Shape::Array(type, scatter_.shape().dims());
    if (x->shape().dims() == shape.dims()) return x;
    return make_.Make(Op::kBroadcast, shape, {x}, DimensionsAttrs{along});
  }

  // Component k of the index vectors, broadcast over the array.
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
    if (x->shape().type() != type_)
      x = make_.Make(Op::kConvert, Shape::Array(type_, x->shape().dims()), {x});
    return OverArray(x, form_.indices);
  }

  // Whether an element of the array is at component k of its batch's index.
  Instr* IsAt(size_t k) {
    const Dims& dims = scatter_.shape().dims();
    Instr* index = make_.Make(Op::kIota, Shape::Array(type_, dims), {},
                              IotaAttrs{attrs_.scatter_dims_to_operand_dims[k]});
    CompareAttrs equal;
    equal.direction = CompareDirection::kEq;
    return make_.Make(Op::kCompare, Shape::Array(ElementType::kPred, dims), {index, Component(k)},
                      std::move(equal));
  }

  Instr& scatter_;
  const ScatterAttrs attrs_;
  const SelectForm form_;
  Editor make_;
  ElementType type_;
};

}  // namespace

// Converts a scatter with one update per batch into a select: every element compares its index with
// the scattered index. Applies if the array is filled with one number (the gradient of picking an
// element of each row), or if a loop body scatters into few elements per batch. The select fuses
// with its consumers, so neither the array nor the scatter is materialized.
Result<Changed> ConvertScattersToSelects(Module& module, PassContext& context) {
  std::set<const Computation*> bodies = ComputationsOfLoops(module);
  return EditComputations(module, [&](Computation& computation) {
    bool changed = false, in_loop = bodies.contains(&computation);
    for (Instr* instr : computation.Instrs()) {
      if (!IsWanted(*instr, in_loop)) continue;
      context.Accepted("scatter.select", *instr, nullptr,
                       "one update per batch: every element selects its value");
      SelectedScatter(*instr).Run();
      changed = true;
    }
    return changed;
  });
}

}  // namespace tokamak
