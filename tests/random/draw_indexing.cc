// Ops that take indices at run time: dynamic-slice and -update-slice, gather,
// scatter. Indices are constants, in range or not, iotas, and what the program has.
#include <algorithm>

#include "random/draft.h"

namespace tokamak::fuzz {
namespace {

std::vector<Instr*> Starts(Draft& draft, const Shape& shape) {
  ElementType type = draft.IndexType();
  bool zeros = draft.random().Percent(15);
  std::vector<Instr*> starts;
  for (int64_t size : shape.dims())
    starts.push_back(zeros ? draft.Integer(type, 0) : draft.Index(type, size));
  return starts;
}

Dims Sizes(Draft& draft, const Shape& shape) {
  Dims sizes;
  for (int64_t size : shape.dims())
    sizes.push_back(draft.random().Percent(40)
                        ? size
                        : draft.random().Between(std::min<int64_t>(size, 1), size));
  return sizes;
}

Instr* SliceAt(Draft& draft, Instr* x, const std::vector<Instr*>& starts, const Dims& sizes) {
  std::vector<Instr*> operands{x};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return draft.Put(Op::kDynamicSlice, operands, DynamicSliceAttrs{sizes});
}

Instr* UpdateAt(Draft& draft, Instr* x, Instr* update, const std::vector<Instr*>& starts) {
  std::vector<Instr*> operands{x, update};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return draft.Put(Op::kDynamicUpdateSlice, operands);
}

bool DrawDynamicSlice(Draft& draft) {
  Instr* x = draft.AnyOfRank(1);
  std::vector<Instr*> starts = Starts(draft, x->shape());
  return SliceAt(draft, x, starts, Sizes(draft, x->shape())) != nullptr;
}

bool DrawDynamicUpdateSlice(Draft& draft) {
  Instr* x = draft.AnyOfRank(1);
  std::vector<Instr*> starts = Starts(draft, x->shape());
  Instr* update = draft.Like(x->shape().WithDims(Sizes(draft, x->shape())));
  return UpdateAt(draft, x, update, starts) != nullptr;
}

// Reads what was just written, or beside it; writes twice in one place or two.
bool DrawUpdateAndRead(Draft& draft) {
  Instr* x = draft.AnyOfRank(1);
  std::vector<Instr*> starts = Starts(draft, x->shape());
  Dims sizes = Sizes(draft, x->shape());
  Instr* update = draft.Like(x->shape().WithDims(sizes));
  Instr* written = UpdateAt(draft, x, update, starts);
  if (written == nullptr) return false;
  bool same_place = draft.random().Percent(60);
  std::vector<Instr*> others = same_place ? starts : Starts(draft, x->shape());
  if (draft.random().Percent(50)) return SliceAt(draft, written, others, sizes) != nullptr;
  Instr* second = draft.Like(update->shape());
  return UpdateAt(draft, written, second, others) != nullptr;
}

// Indices of the given shape that point into dimensions of about `size`.
Instr* Indices(Draft& draft, const Dims& dims, int64_t size) {
  Shape shape = Shape::Array(draft.IndexType(), dims);
  int64_t dice = draft.random().Below(100);
  if (dice < 30) return draft.Constant(shape, Mood::kSmall);
  if (dice < 45) return draft.Constant(shape, Mood::kIota);
  if (dice < 55) return draft.Constant(shape, Mood::kSpecial);
  if (dice < 65 && !dims.empty())
    return draft.Put(Op::kIota, {}, IotaAttrs{draft.random().Below(shape.rank())},
                     {.shape = shape});
  Instr* x = draft.LikeButDrawn(shape);
  if (draft.random().Percent(40)) return x;
  Instr* limit = draft.Spread(draft.Integer(shape.type(), std::max<int64_t>(size, 1)), dims);
  return draft.Put(Op::kRemainder, {x, limit});
}

// What gather and scatter share: which dimensions indices move along, and
// which of the array go with dimensions of the indices.
struct Pointing {
  Dims index_dims;                // of the indices, the vector included
  int64_t vector_dim = 0;         // where an index stands in them
  Dims map;                       // dimensions of the array that indices move along
  Dims batching, index_batching;  // dimensions that go together
  Dims batch;                     // index_dims without the vector
};

Pointing DrawPointing(Draft& draft, const Shape& x) {
  Pointing how;
  Dims order = draft.Permutation(x.rank());
  size_t count = At(draft.random().Between(1, std::min<int64_t>(x.rank(), 2)));
  how.map.assign(order.begin(), order.begin() + static_cast<ptrdiff_t>(count));
  if (draft.random().Percent(70)) std::sort(how.map.begin(), how.map.end());
  for (int64_t i = draft.random().Between(0, 2); i > 0; --i)
    how.batch.push_back(draft.random().Between(1, 3));
  bool batched = count < order.size() && draft.random().Percent(25);
  if (batched) {
    how.batching.push_back(order[count]);
    int64_t place = draft.random().Below(static_cast<int64_t>(how.batch.size()) + 1);
    how.batch.insert(how.batch.begin() + place, x.dim(At(order[count])));
    how.index_batching.push_back(place);
  }
  how.index_dims = how.batch;
  how.vector_dim = static_cast<int64_t>(how.batch.size());
  bool scalar = count == 1 && draft.random().Percent(40);
  if (scalar) return how;
  if (draft.random().Percent(15)) {
    how.vector_dim = 0;
    for (int64_t& d : how.index_batching) ++d;
  }
  how.index_dims.insert(how.index_dims.begin() + how.vector_dim, static_cast<int64_t>(count));
  return how;
}

bool Has(const Dims& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// Where the dimensions of a window stand among `rank` ones: `count` of them, ascending.
Dims WindowPlaces(Draft& draft, size_t count, size_t rank) {
  Dims places = draft.Permutation(static_cast<int64_t>(rank));
  if (draft.random().Percent(60))  // at the end, as JAX has them
    for (size_t i = 0; i < rank; ++i) places[i] = static_cast<int64_t>(rank - 1 - i);
  places.resize(count);
  std::sort(places.begin(), places.end());
  return places;
}

bool DrawGather(Draft& draft) {
  Instr* x = draft.AnyOfRank(1);
  const Shape& shape = x->shape();
  Pointing how = DrawPointing(draft, shape);
  Instr* indices = Indices(draft, how.index_dims, shape.dim(At(how.map[0])));
  GatherAttrs attrs;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    int64_t size = shape.dim(At(d));
    bool batching = Has(how.batching, d);
    bool moved = Has(how.map, d);
    int64_t slice = batching || (moved && draft.random().Percent(65)) ? 1
                    : draft.random().Percent(80)                      ? size
                                                 : draft.random().Between(1, size);
    attrs.slice_sizes.push_back(slice);
    if (!batching && slice == 1 && draft.random().Percent(75))
      attrs.collapsed_slice_dims.push_back(d);
  }
  size_t window = At(shape.rank()) - attrs.collapsed_slice_dims.size() - how.batching.size();
  attrs.offset_dims = WindowPlaces(draft, window, window + how.batch.size());
  attrs.operand_batching_dims = how.batching;
  attrs.start_indices_batching_dims = how.index_batching;
  attrs.start_index_map = how.map;
  attrs.index_vector_dim = how.vector_dim;
  return draft.Put(Op::kGather, {x, indices}, attrs) != nullptr;
}

bool DrawScatter(Draft& draft) {
  Instr* x = draft.AnyOfRank(1);
  const Shape shape = x->shape();
  if (shape.ElementCount() == 0) return false;
  Pointing how = DrawPointing(draft, shape);
  Instr* indices = Indices(draft, how.index_dims, shape.dim(At(how.map[0])));
  ScatterAttrs attrs;
  Dims window;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (Has(how.batching, d)) continue;
    int64_t size = shape.dim(At(d));
    bool moved = Has(how.map, d);
    if ((moved || size == 1) && draft.random().Percent(65)) {
      attrs.inserted_window_dims.push_back(d);
    } else {
      window.push_back(moved ? draft.random().Between(1, size) : size);
    }
  }
  size_t rank = window.size() + how.batch.size();
  attrs.update_window_dims = WindowPlaces(draft, window.size(), rank);
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
  if (update_shape.ElementCount() > draft.plot().size.max_elements) return false;
  Instr* updates = draft.Like(update_shape);
  Op combine = draft.random().Pick({Op::kAdd, Op::kAdd, Op::kMultiply, Op::kMaximum, Op::kMinimum,
                                    Op::kCopy});  // copy: the update stands
  Computation* body = Combiner(draft, shape.type(), combine);
  return draft.Put(Op::kScatter, {x, indices, updates}, attrs, {.called = {body}}) != nullptr;
}

bool DrawIndexSelect(Draft& draft) {
  Instr* x = draft.AnyOfRank(1);
  int64_t dim = draft.random().Below(x->shape().rank());
  Instr* indices = Indices(draft, {draft.random().Between(1, 3)}, x->shape().dim(At(dim)));
  if (indices == nullptr) return false;
  Dims dims = x->shape().dims();
  dims[At(dim)] = indices->shape().dim(0);
  return draft.Put(Op::kTorchIndexSelect, {x, indices}, TorchIndexSelectAttrs{dim, 0},
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
