// Ops with run-time indices: dynamic-slice and -update-slice, gather, scatter. Indices are
// constants, in range or not, iotas, and values of the program.
#include <algorithm>

#include "random/program_builder.h"

namespace tokamak::fuzz {
namespace {

std::vector<Instr*> Starts(ProgramBuilder& builder, const Shape& shape) {
  ElementType type = builder.IndexType();
  bool zeros = builder.random().Percent(15);
  std::vector<Instr*> starts;
  for (int64_t size : shape.dims())
    starts.push_back(zeros ? builder.Integer(type, 0) : builder.Index(type, size));
  return starts;
}

Dims Sizes(ProgramBuilder& builder, const Shape& shape) {
  Dims sizes;
  for (int64_t size : shape.dims())
    sizes.push_back(builder.random().Percent(40)
                        ? size
                        : builder.random().Between(std::min<int64_t>(size, 1), size));
  return sizes;
}

Instr* SliceAt(ProgramBuilder& builder, Instr* x, const std::vector<Instr*>& starts,
               const Dims& sizes) {
  std::vector<Instr*> operands{x};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return builder.Put(Op::kDynamicSlice, operands, DynamicSliceAttrs{sizes});
}

Instr* UpdateAt(ProgramBuilder& builder, Instr* x, Instr* update,
                const std::vector<Instr*>& starts) {
  std::vector<Instr*> operands{x, update};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return builder.Put(Op::kDynamicUpdateSlice, operands);
}

bool DrawDynamicSlice(ProgramBuilder& builder) {
  Instr* x = builder.AnyOfRank(1);
  std::vector<Instr*> starts = Starts(builder, x->shape());
  return SliceAt(builder, x, starts, Sizes(builder, x->shape())) != nullptr;
}

bool DrawDynamicUpdateSlice(ProgramBuilder& builder) {
  Instr* x = builder.AnyOfRank(1);
  std::vector<Instr*> starts = Starts(builder, x->shape());
  Instr* update = builder.Like(x->shape().WithDims(Sizes(builder, x->shape())));
  return UpdateAt(builder, x, update, starts) != nullptr;
}

// Reads the elements just written, or next to them; writes twice to the same or different
// positions.
bool DrawUpdateAndRead(ProgramBuilder& builder) {
  Instr* x = builder.AnyOfRank(1);
  std::vector<Instr*> starts = Starts(builder, x->shape());
  Dims sizes = Sizes(builder, x->shape());
  Instr* update = builder.Like(x->shape().WithDims(sizes));
  Instr* written = UpdateAt(builder, x, update, starts);
  if (written == nullptr) return false;
  bool same_start = builder.random().Percent(60);
  std::vector<Instr*> others = same_start ? starts : Starts(builder, x->shape());
  if (builder.random().Percent(50)) return SliceAt(builder, written, others, sizes) != nullptr;
  Instr* second = builder.Like(update->shape());
  return UpdateAt(builder, written, second, others) != nullptr;
}

// Indices of the given shape that point into dimensions of about `size`.
Instr* Indices(ProgramBuilder& builder, const Dims& dims, int64_t size) {
  Shape shape = Shape::Array(builder.IndexType(), dims);
  int64_t dice = builder.random().Below(100);
  if (dice < 30) return builder.Constant(shape, Mood::kSmall);
  if (dice < 45) return builder.Constant(shape, Mood::kIota);
  if (dice < 55) return builder.Constant(shape, Mood::kSpecial);
  if (dice < 65 && !dims.empty())
    return builder.Put(Op::kIota, {}, IotaAttrs{builder.random().Below(shape.rank())},
                       {.shape = shape});
  Instr* x = builder.LikeButDrawn(shape);
  if (builder.random().Percent(40)) return x;
  Instr* limit =
      builder.BroadcastTo(builder.Integer(shape.type(), std::max<int64_t>(size, 1)), dims);
  return builder.Put(Op::kRemainder, {x, limit});
}

// Common to gather and scatter: the dimensions that indices select, and the dimensions of the array
// that are batched with those of the indices.
struct Pointing {
  Dims index_dims;                // of the indices, the vector included
  int64_t vector_dim = 0;         // position of the index vector in them
  Dims map;                       // dimensions of the array that indices select
  Dims batching, index_batching;  // dimensions batched together
  Dims batch;                     // index_dims without the vector
};

Pointing DrawPointing(ProgramBuilder& builder, const Shape& x) {
  Pointing how;
  Dims order = builder.Permutation(x.rank());
  size_t count = At(builder.random().Between(1, std::min<int64_t>(x.rank(), 2)));
  how.map.assign(order.begin(), order.begin() + static_cast<ptrdiff_t>(count));
  if (builder.random().Percent(70)) std::sort(how.map.begin(), how.map.end());
  for (int64_t i = builder.random().Between(0, 2); i > 0; --i)
    how.batch.push_back(builder.random().Between(1, 3));
  bool batched = count < order.size() && builder.random().Percent(25);
  if (batched) {
    how.batching.push_back(order[count]);
    int64_t position = builder.random().Below(static_cast<int64_t>(how.batch.size()) + 1);
    how.batch.insert(how.batch.begin() + position, x.dim(At(order[count])));
    how.index_batching.push_back(position);
  }
  how.index_dims = how.batch;
  how.vector_dim = static_cast<int64_t>(how.batch.size());
  bool scalar = count == 1 && builder.random().Percent(40);
  if (scalar) return how;
  if (builder.random().Percent(15)) {
    how.vector_dim = 0;
    for (int64_t& d : how.index_batching) ++d;
  }
  how.index_dims.insert(how.index_dims.begin() + how.vector_dim, static_cast<int64_t>(count));
  return how;
}

bool Has(const Dims& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// The positions of a window's dimensions among `rank` dimensions: `count` of them, ascending.
Dims WindowDimPositions(ProgramBuilder& builder, size_t count, size_t rank) {
  Dims permutation = builder.Permutation(static_cast<int64_t>(rank));
  if (builder.random().Percent(60))  // trailing, as in JAX
    for (size_t i = 0; i < rank; ++i) permutation[i] = static_cast<int64_t>(rank - 1 - i);
  permutation.resize(count);
  std::sort(permutation.begin(), permutation.end());
  return permutation;
}

bool DrawGather(ProgramBuilder& builder) {
  Instr* x = builder.AnyOfRank(1);
  const Shape& shape = x->shape();
  Pointing how = DrawPointing(builder, shape);
  Instr* indices = Indices(builder, how.index_dims, shape.dim(At(how.map[0])));
  GatherAttrs attrs;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    int64_t size = shape.dim(At(d));
    bool batching = Has(how.batching, d);
    bool moved = Has(how.map, d);
    int64_t slice = batching || (moved && builder.random().Percent(65)) ? 1
                    : builder.random().Percent(80)                      ? size
                                                   : builder.random().Between(1, size);
    attrs.slice_sizes.push_back(slice);
    if (!batching && slice == 1 && builder.random().Percent(75))
      attrs.collapsed_slice_dims.push_back(d);
  }
  size_t window = At(shape.rank()) - attrs.collapsed_slice_dims.size() - how.batching.size();
  attrs.offset_dims = WindowDimPositions(builder, window, window + how.batch.size());
  attrs.operand_batching_dims = how.batching;
  attrs.start_indices_batching_dims = how.index_batching;
  attrs.start_index_map = how.map;
  attrs.index_vector_dim = how.vector_dim;
  return builder.Put(Op::kGather, {x, indices}, attrs) != nullptr;
}

bool DrawScatter(ProgramBuilder& builder) {
  Instr* x = builder.AnyOfRank(1);
  const Shape shape = x->shape();
  if (shape.ElementCount() == 0) return false;
  Pointing how = DrawPointing(builder, shape);
  Instr* indices = Indices(builder, how.index_dims, shape.dim(At(how.map[0])));
  ScatterAttrs attrs;
  Dims window;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (Has(how.batching, d)) continue;
    int64_t size = shape.dim(At(d));
    bool moved = Has(how.map, d);
    if ((moved || size == 1) && builder.random().Percent(65)) {
      attrs.inserted_window_dims.push_back(d);
    } else {
      window.push_back(moved ? builder.random().Between(1, size) : size);
    }
  }
  size_t rank = window.size() + how.batch.size();
  attrs.update_window_dims = WindowDimPositions(builder, window.size(), rank);
  attrs.input_batching_dims = how.batching;
  attrs.scatter_indices_batching_dims = how.index_batching;
  attrs.scatter_dims_to_operand_dims = how.map;
  attrs.index_vector_dim = how.vector_dim;
  Dims update_dims;
  size_t next_window = 0, next_batch = 0;
  for (size_t d = 0; d < rank; ++d) {
    bool in_window = Has(attrs.update_window_dims, static_cast<int64_t>(d));
    update_dims.push_back(in_window ? window[next_window++] : how.batch[next_batch++]);
  }
  Shape update_shape = Shape::Array(shape.type(), update_dims);
  if (update_shape.ElementCount() > builder.program_state().size.max_elements) return false;
  Instr* updates = builder.Like(update_shape);
  Op combine = builder.random().Pick({Op::kAdd, Op::kAdd, Op::kMultiply, Op::kMaximum, Op::kMinimum,
                                      Op::kCopy});  // copy: the update replaces the element
  Computation* body = Combiner(builder, shape.type(), combine);
  return builder.Put(Op::kScatter, {x, indices, updates}, attrs, {.called = {body}}) != nullptr;
}

bool DrawIndexSelect(ProgramBuilder& builder) {
  Instr* x = builder.AnyOfRank(1);
  int64_t dim = builder.random().Below(x->shape().rank());
  Instr* indices = Indices(builder, {builder.random().Between(1, 3)}, x->shape().dim(At(dim)));
  if (indices == nullptr) return false;
  Dims dims = x->shape().dims();
  dims[At(dim)] = indices->shape().dim(0);
  return builder.Put(Op::kTorchIndexSelect, {x, indices}, TorchIndexSelectAttrs{dim, 0},
                     {.shape = x->shape().WithDims(dims)}) != nullptr;
}

constexpr Drawer kIndexingDrawers[] = {
    {"dynamic-slice", 30, 4, DrawDynamicSlice},
    {"dynamic-update-slice", 25, 5, DrawDynamicUpdateSlice},
    {"update-and-read", 15, 8, DrawUpdateAndRead},
    {"gather", 35, 3, DrawGather},
    {"scatter", 25, 7, DrawScatter},
    {"torch-index-select", 3, 3, DrawIndexSelect},
};

}  // namespace

std::span<const Drawer> IndexingDrawers() {
  return kIndexingDrawers;
}

}  // namespace tokamak::fuzz
