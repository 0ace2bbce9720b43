#include "fusion/split_scatters.h"

#include <algorithm>

#include "fusion/expand_ops.h"
#include "fusion/split_reductions.h"
#include "gen/generator.h"
#include "gen/reducer.h"

namespace tokamak {
namespace {

// Elements of updates worth more than one thread, parts, and updates for each element of all
// arrays.
constexpr int64_t kMany = 1 << 15, kMostParts = 32, kLeastParts = 4, kPerElement = 4;
// Elements of a window, batches that are work for all threads without parts.
constexpr int64_t kWideWindow = 512, kManyBatches = 16;

bool Contains(const Dims& dims, int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

void ShiftFrom(Dims& dims, int64_t first) {
  for (int64_t& d : dims)
    if (d >= first) ++d;
}

// A dimension of the indices, and of the updates, which walks through windows.
struct Walk {
  int64_t of_indices = 0, of_updates = 0, size = 0;
};

// The longest of those that are no batches.
Walk LongestWalk(const Instr& scatter, const ScatterAttrs& attrs) {
  Walk longest;
  const Dims& updates = scatter.operand(2)->shape().dims();
  int64_t next = 0;  // of the indices
  for (int64_t d = 0; d < static_cast<int64_t>(updates.size()); ++d) {
    if (Contains(attrs.update_window_dims, d)) continue;
    if (next == attrs.index_vector_dim) ++next;
    int64_t size = updates[static_cast<size_t>(d)];
    if (size > longest.size && !Contains(attrs.scatter_indices_batching_dims, next))
      longest = {next, d, size};
    ++next;
  }
  return longest;
}

class ScatterSplit {
 public:
  ScatterSplit(Instr& scatter, Walk walk, int64_t parts, Literal neutral)
      : scatter_(scatter),
        walk_(walk),
        parts_(parts),
        neutral_(std::move(neutral)),
        make_(scatter) {}

  void Split(Op op) {
    const ScatterAttrs& attrs = scatter_.attrs<ScatterAttrs>();
    const Shape& shape = scatter_.shape();
    Instr *indices = scatter_.operand(1), *updates = scatter_.operand(2);
    // What does not fit into equal parts.
    int64_t even = walk_.size - walk_.size % parts_;
    Instr* array = scatter_.operand(0);
    if (even < walk_.size) {
      array = make_.Make(Op::kScatter, shape,
                         {array, Cut(indices, walk_.of_indices, even, walk_.size),
                          Cut(updates, walk_.of_updates, even, walk_.size)},
                         attrs);
      array->set_called({scatter_.called(0)});
    }
    Dims all = shape.dims();
    all.insert(all.begin(), parts_);
    Instr* neutral = make_.Constant(neutral_);
    Instr* arrays = make_.Make(Op::kScatter, Shape::Array(shape.type(), all),
                               {make_.Spread(neutral, Shape::Array(shape.type(), all)),
                                InParts(Cut(indices, walk_.of_indices, 0, even), walk_.of_indices),
                                InParts(Cut(updates, walk_.of_updates, 0, even), walk_.of_updates)},
                               AttrsOfParts(attrs));
    arrays->set_called({scatter_.called(0)});
    Instr* whole =
        make_.Make(Op::kReduce, shape, {arrays, neutral}, DimensionsAttrs{.dimensions = {0}});
    whole->set_called({scatter_.called(0)});
    make_.Replace(make_.Make(op, shape, {array, whole}));
  }

 private:
  Instr* Cut(Instr* x, int64_t dimension, int64_t begin, int64_t end) {
    SliceAttrs slice;
    slice.limits = x->shape().dims();
    slice.starts.assign(slice.limits.size(), 0);
    slice.strides.assign(slice.limits.size(), 1);
    auto d = static_cast<size_t>(dimension);
    if (begin == 0 && end == slice.limits[d]) return x;
    slice.starts[d] = begin;
    slice.limits[d] = end;
    Dims dims = x->shape().dims();
    dims[d] = end - begin;
    return make_.Make(Op::kSlice, Shape::Array(x->shape().type(), dims), {x}, std::move(slice));
  }

  Instr* InParts(Instr* x, int64_t dimension) {
    Dims dims = x->shape().dims();
    dims[static_cast<size_t>(dimension)] /= parts_;
    dims.insert(dims.begin() + dimension, parts_);
    return make_.Make(Op::kReshape, Shape::Array(x->shape().type(), dims), {x});
  }

  // Parts are the first dimension of the array, and a batch.
  ScatterAttrs AttrsOfParts(ScatterAttrs attrs) const {
    for (Dims* dims : {&attrs.inserted_window_dims, &attrs.input_batching_dims,
                       &attrs.scatter_dims_to_operand_dims})
      ShiftFrom(*dims, 0);
    ShiftFrom(attrs.update_window_dims, walk_.of_updates);
    ShiftFrom(attrs.scatter_indices_batching_dims, walk_.of_indices);
    if (attrs.index_vector_dim > walk_.of_indices) ++attrs.index_vector_dim;
    attrs.input_batching_dims.insert(attrs.input_batching_dims.begin(), 0);
    attrs.scatter_indices_batching_dims.insert(attrs.scatter_indices_batching_dims.begin(),
                                               walk_.of_indices);
    return attrs;
  }

  Instr& scatter_;
  Walk walk_;
  int64_t parts_;
  Literal neutral_;
  Expansion make_;
};

bool TrySplit(Instr& scatter, DecisionLog& log) {
  if (WhyNoScatter(scatter) || scatter.has_extras() || scatter.is_control_predecessor())
    return false;
  const ScatterAttrs& attrs = scatter.attrs<ScatterAttrs>();
  if (attrs.scatter_dims_to_operand_dims.empty() || attrs.unique_indices) return false;
  std::optional<Op> op = AnyOrderOp(*scatter.called(0));
  if (!op) return false;
  std::optional<Literal> neutral = NeutralLiteral(*op, scatter.shape().type());
  if (!neutral) return false;
  int64_t elements = scatter.shape().ElementCount();
  int64_t updates = scatter.operand(2)->shape().ElementCount(), window = 1;
  for (int64_t d : attrs.update_window_dims)
    window *= scatter.operand(2)->shape().dim(static_cast<size_t>(d));
  int64_t batches = 1;
  for (int64_t d : attrs.input_batching_dims)
    batches *= scatter.shape().dim(static_cast<size_t>(d));
  if (updates < kMany || window >= kWideWindow || batches >= kManyBatches) return false;
  Walk walk = LongestWalk(scatter, attrs);
  int64_t parts = std::min({kMostParts, updates / elements / kPerElement, walk.size / 16});
  if (parts < kLeastParts) return false;
  parts = PowerBelow(parts);
  log.Add({.pass = "fuse",
           .rule = "scatter.split",
           .subject = LabelOf(scatter),
           .origins = scatter.origins(),
           .because = std::to_string(parts) + " parts"});
  ScatterSplit(scatter, walk, parts, *neutral).Split(*op);
  return true;
}

}  // namespace

void SplitScatters(Module& module, DecisionLog& log, const Machine& machine) {
  if (machine.is_gpu()) return;
  for (const auto& computation : module.computations()) {
    bool changed = false;
    for (Instr* instr : computation->Instrs())
      if (instr->op() == Op::kScatter && TrySplit(*instr, log)) changed = true;
    if (changed) computation->PutInOrder();
  }
}

}  // namespace tokamak
