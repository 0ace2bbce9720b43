// One function per geometry, in the order of ops.def. A function describes the dimensions of the
// operand first to last; IndexMapMaker::Read appends one. Iterated variables are created in the
// same order for all operands of an op, so that one loop nest serves all of its maps.

#include "analysis/index_map.h"

#include <algorithm>
#include <initializer_list>

namespace tokamak {
namespace {

// The position of d in a list of dimensions.
std::optional<size_t> PositionIn(const Dims& dims, size_t d) {
  auto it = std::find(dims.begin(), dims.end(), static_cast<int64_t>(d));
  if (it == dims.end()) return std::nullopt;
  return static_cast<size_t>(it - dims.begin());
}

class IndexMapMaker {
 public:
  IndexMapMaker(const Instr& instr, size_t operand, size_t result, IndexMap& map)
      : instr_(instr), operand_(operand), result_(result), map_(map) {
    const Shape& shape = instr.shape().IsTuple() ? instr.shape().elements()[result] : instr.shape();
    map_.result_rank = shape.dims().size();
    for (size_t d = 0; d < map_.result_rank; ++d)
      map_.variables.push_back({shape.dim(d), &instr, result, d});
  }

  const Instr& instr() const { return instr_; }
  size_t operand() const { return operand_; }
  size_t result() const { return result_; }
  const Dims& dims() const { return instr_.operand(operand_)->shape().dims(); }
  size_t rank() const { return dims().size(); }
  size_t result_rank() const { return map_.result_rank; }
  int64_t SizeOf(size_t variable) const { return map_.variables[variable].size; }
  // The dimension that the next Read describes.
  size_t NextDim() const { return map_.dims.size(); }

  // A new iterated variable.
  size_t Iterate(const Extent& extent) {
    map_.variables.push_back(extent);
    return map_.variables.size() - 1;
  }
  size_t IterateDim(size_t operand, size_t dim) {
    const Instr& array = *instr_.operand(operand);
    return Iterate({array.shape().dim(dim), &array, 0, dim});
  }
  // The iterated variable along the index vectors of this operand.
  size_t IterateComponents(size_t dim) {
    map_.component = IterateDim(operand_, dim);
    return *map_.component;
  }

  // The next dimension of the operand is read at this index.
  void Read(std::initializer_list<IndexTerm> terms, const IndexExpr& expr = {}) {
    map_.dims.push_back(WithTerms(terms, expr));
  }
  void ReadJoined(std::span<const IndexTerm> terms, const IndexExpr& expr) {
    map_.dims.push_back(WithTerms(terms, expr));
  }
  void Guard(std::initializer_list<IndexTerm> terms, const IndexExpr& expr) {
    map_.guards.push_back(WithTerms(terms, expr));
  }
  void ReadOutsideGuards() { map_.outside = true; }

 private:
  IndexExpr WithTerms(std::span<const IndexTerm> terms, IndexExpr expr) {
    expr.first_term = map_.terms.size();
    expr.term_count = terms.size();
    for (const IndexTerm& term : terms) map_.terms.push_back(term);
    return expr;
  }

  const Instr& instr_;
  size_t operand_, result_;
  IndexMap& map_;
};

// An array of one element and no dimensions.
void MapScalar(IndexMapMaker&) {}

void MapSame(IndexMapMaker& map) {
  for (size_t d = 0; d < map.rank(); ++d) map.Read({{d}});
}

void MapIota(IndexMapMaker& map) {
  map.Read({{static_cast<size_t>(map.instr().attrs<IotaAttrs>().dimension)}});
}

// If widths differ, the last dimension of one of the two numbers the pieces of one element.
void MapBitcastConvert(IndexMapMaker& map) {
  for (size_t d = 0; d < map.rank(); ++d)
    map.Read({{d < map.result_rank() ? d : map.IterateDim(map.operand(), d)}});
}

void MapBroadcast(IndexMapMaker& map) {
  const Dims& dimensions = map.instr().attrs<DimensionsAttrs>().dimensions;
  for (size_t d = 0; d < map.rank(); ++d) {
    if (map.dims()[d] == 1) {
      map.Read({});
    } else {
      map.Read({{static_cast<size_t>(dimensions[d])}});
    }
  }
}

// Splits both shapes into minimal groups of dimensions with equal element counts. Within a group,
// the row-major index of the result's dimensions is split into the operand's.
void MapReshape(IndexMapMaker& map) {
  const Dims &from = map.dims(), &to = map.instr().shape().dims();
  InlineVector<IndexTerm, 6> joined;
  for (size_t i = 0, k = 0; i < from.size() || k < to.size();) {
    size_t first_i = i, first_k = k;
    int64_t x = 1, y = 1;
    do {
      if (i < from.size() && (k >= to.size() || x <= y)) {
        x *= from[i++];
      } else if (k < to.size()) {
        y *= to[k++];
      } else {
        break;
      }
    } while (x != y);
    joined.clear();
    int64_t stride = 1;
    for (size_t d = k; d-- > first_k; stride *= to[d])
      if (to[d] != 1) joined.push_back({d, stride});
    std::reverse(joined.begin(), joined.end());
    bool is_major = true;  // needs no remainder
    for (size_t d = first_i; d < i; ++d) {
      if (from[d] == 1) {
        map.Read({});
        continue;
      }
      x = from[d] == 0 ? 0 : x / from[d];
      map.ReadJoined(joined,
                     {.divisor = std::max<int64_t>(x, 1), .modulus = is_major ? 0 : from[d]});
      is_major = false;
    }
  }
}

void MapTranspose(IndexMapMaker& map) {
  const Dims& permutation = map.instr().attrs<DimensionsAttrs>().dimensions;
  for (size_t d = 0; d < map.rank(); ++d) map.Read({{*PositionIn(permutation, d)}});
}

void MapReverse(IndexMapMaker& map) {
  for (size_t d = 0; d < map.rank(); ++d) {
    bool is_reversed = PositionIn(map.instr().attrs<DimensionsAttrs>().dimensions, d).has_value();
    if (is_reversed) {
      map.Read({{d, -1}}, {.offset = map.dims()[d] - 1});
    } else {
      map.Read({{d}});
    }
  }
}

void MapSlice(IndexMapMaker& map) {
  const SliceAttrs& slice = map.instr().attrs<SliceAttrs>();
  for (size_t d = 0; d < map.rank(); ++d)
    map.Read({{d, d < slice.strides.size() ? slice.strides[d] : 1}}, {.offset = slice.starts[d]});
}

// The start of a block along one dimension, a scalar operand.
RunTimeStart BlockStart(size_t operand, int64_t last) {
  return {.kind = RunTimeStart::Kind::kClamped, .operand = operand, .last = last};
}

void MapDynamicSlice(IndexMapMaker& map) {
  const Instr& instr = map.instr();
  for (size_t d = 0; d < map.rank(); ++d)
    map.Read({{d}}, {.start = BlockStart(1 + d, map.dims()[d] - instr.shape().dim(d))});
}

// The array that is updated is read outside of the block.
void MapDynamicUpdateSlice(IndexMapMaker& map) {
  const Instr& instr = map.instr();
  if (map.operand() == 0) MapSame(map);
  for (size_t d = 0; d < map.rank(); ++d) {
    int64_t size = instr.operand(1)->shape().dim(d);
    IndexExpr block{.last = size - 1, .start = BlockStart(2 + d, instr.shape().dim(d) - size)};
    block.start.is_subtracted = true;
    if (map.operand() == 0) {
      map.Guard({{d}}, block);
    } else {
      map.Read({{d}}, block);
    }
  }
  if (map.operand() == 0) map.ReadOutsideGuards();
}

void MapConcatenate(IndexMapMaker& map) {
  auto along = static_cast<size_t>(map.instr().attrs<DimensionAttrs>().dimension);
  int64_t begin = 0;
  for (size_t i = 0; i < map.operand(); ++i) begin += map.instr().operand(i)->shape().dim(along);
  for (size_t d = 0; d < map.rank(); ++d) {
    if (d == along) {
      map.Read({{d}}, {.offset = -begin, .last = map.dims()[d] - 1});
    } else {
      map.Read({{d}});
    }
  }
}

void MapPad(IndexMapMaker& map) {
  const PadAttrs& pad = map.instr().attrs<PadAttrs>();
  for (size_t d = 0; d < map.rank(); ++d) {
    int64_t step = (d < pad.interior.size() ? pad.interior[d] : 0) + 1;
    map.Read({{d}}, {.offset = -pad.low[d], .divisor = step, .last = (map.dims()[d] - 1) * step});
  }
}

// A dimension of the indices of a gather or scatter, given the variables of the other dimensions.
void MapIndexVectors(IndexMapMaker& map, const std::vector<size_t>& batch, size_t vector_dim) {
  for (size_t d = 0; d < map.rank(); ++d)
    map.Read({{d == vector_dim ? map.IterateComponents(d) : batch[d > vector_dim ? d - 1 : d]}});
}

// The offset_dims of the result are indices into one slice; the other dimensions select the start
// indices.
void MapGather(IndexMapMaker& map) {
  const GatherAttrs& attrs = map.instr().attrs<GatherAttrs>();
  auto vector_dim = static_cast<size_t>(attrs.index_vector_dim);
  std::vector<size_t> offset, batch;
  for (size_t d = 0; d < map.result_rank(); ++d)
    (PositionIn(attrs.offset_dims, d) ? offset : batch).push_back(d);
  if (map.operand() == 1) return MapIndexVectors(map, batch, vector_dim);
  for (size_t d = 0, next = 0; d < map.rank(); ++d) {
    IndexExpr expr;
    if (std::optional<size_t> component = PositionIn(attrs.start_index_map, d))
      expr.start = {.kind = RunTimeStart::Kind::kClamped,
                    .operand = 1,
                    .component = static_cast<int64_t>(*component),
                    .last = map.dims()[d] - attrs.slice_sizes[d]};
    if (std::optional<size_t> i = PositionIn(attrs.operand_batching_dims, d)) {
      auto dim = static_cast<size_t>(attrs.start_indices_batching_dims[*i]);
      map.Read({{batch[dim > vector_dim ? dim - 1 : dim]}}, expr);
    } else if (PositionIn(attrs.collapsed_slice_dims, d)) {
      map.Read({}, expr);
    } else {
      map.Read({{offset[next++]}}, expr);
    }
  }
}

// The result has the dimensions of the operand; those of the indices without batch dimensions
// replace the one that is selected from.
void MapTorchIndexSelect(IndexMapMaker& map) {
  const TorchIndexSelectAttrs& attrs = map.instr().attrs<TorchIndexSelectAttrs>();
  const Dims& from = map.instr().operand(0)->shape().dims();
  auto along = static_cast<size_t>(attrs.dim), batch = static_cast<size_t>(attrs.batch_dims);
  for (size_t d = 0; d < map.rank(); ++d) {
    if (map.operand() == 1) {
      map.Read({{d < batch ? d : along + d - batch}});
    } else if (d == along) {
      map.Read(
          {},
          {.start = {.kind = RunTimeStart::Kind::kFromEnd, .operand = 1, .last = from[along] - 1}});
    } else {
      map.Read({{d < along ? d : d + map.result_rank() - map.rank()}});
    }
  }
}

void MapReduce(IndexMapMaker& map) {
  const Dims& reduced = map.instr().attrs<DimensionsAttrs>().dimensions;
  for (size_t d = 0, next = 0; d < map.rank(); ++d)
    map.Read({{PositionIn(reduced, d) ? map.IterateDim(0, d) : next++}});
}

// A dimension that a window slides over, at one tap.
void ReadWindow(IndexMapMaker& map, const WindowDim& window, size_t variable, size_t tap) {
  int64_t size = map.dims()[map.NextDim()];
  IndexExpr expr{.offset = -window.pad_low,
                 .divisor = window.base_dilation,
                 .last = (size - 1) * window.base_dilation};
  if (map.SizeOf(tap) == 1) return map.Read({{variable, window.stride}}, expr);
  map.Read({{variable, window.stride}, {tap, window.window_dilation}}, expr);
}

void MapReduceWindow(IndexMapMaker& map) {
  const Window& window = map.instr().attrs<WindowAttrs>().window;
  for (size_t d = 0; d < map.rank(); ++d)
    ReadWindow(map, window[d], d, map.Iterate({.size = window[d].size}));
}

// An element of the result combines the sources of all windows that select it. Iterated variables:
// the windows; for the operand in which windows select, also the taps, and it is read by all
// windows that contain the element. Along a dimension where windows are elements, neither is
// iterated.
void MapSelectAndScatter(IndexMapMaker& map) {
  const Window& window = map.instr().attrs<WindowAttrs>().window;
  auto is_element = [&](size_t d) {
    return window[d].size == 1 && window[d].stride == 1 && window[d].pad_low == 0 &&
           window[d].pad_high == 0;
  };
  std::vector<size_t> windows(map.rank());
  for (size_t d = 0; d < map.rank(); ++d) windows[d] = is_element(d) ? d : map.IterateDim(1, d);
  size_t next_tap = map.result_rank();
  for (size_t d = 0; d < map.rank(); ++d) next_tap += is_element(d) ? 0 : 1;
  for (size_t d = 0; d < map.rank(); ++d) {
    const WindowDim& dim = window[d];
    if (is_element(d)) {
      map.Read({{d}});
      continue;
    }
    std::initializer_list<IndexTerm> in_window = {{d}, {windows[d], -dim.stride}};
    if (map.operand() == 0) {
      map.Guard(in_window, {.offset = dim.pad_low, .last = dim.size - 1});
      ReadWindow(map, dim, windows[d], map.Iterate({.size = dim.size}));
    } else {
      map.Guard(in_window, {.offset = dim.pad_low,
                            .last = 0,
                            .start = {.kind = RunTimeStart::Kind::kSelected,
                                      .is_subtracted = true,
                                      .component = static_cast<int64_t>(next_tap++),
                                      .last = dim.size - 1}});
      map.Read({{windows[d]}});
    }
  }
}

// An element of the result combines the updates of all windows that contain it. Iterated variables:
// the dimensions of the updates that number windows.
void MapScatter(IndexMapMaker& map) {
  const Instr& instr = map.instr();
  const ScatterAttrs& attrs = instr.attrs<ScatterAttrs>();
  const size_t indices = (instr.operand_count() - instr.captures() - 1) / 2;
  if (map.operand() < indices) return MapSame(map);
  const Dims& updates = instr.operand(indices + 1)->shape().dims();
  auto vector_dim = static_cast<size_t>(attrs.index_vector_dim);
  std::vector<size_t> batch;
  std::vector<int64_t> window;  // sizes
  for (size_t d = 0; d < updates.size(); ++d) {
    if (PositionIn(attrs.update_window_dims, d)) {
      window.push_back(updates[d]);
    } else {
      batch.push_back(map.IterateDim(indices + 1, d));
    }
  }
  if (map.operand() == indices) return MapIndexVectors(map, batch, vector_dim);

  std::vector<IndexExpr> in_window;
  std::vector<size_t> window_dims;  // of the result
  const Dims& dims = instr.operand(0)->shape().dims();
  for (size_t d = 0, next = 0; d < dims.size(); ++d) {
    std::optional<size_t> batching = PositionIn(attrs.input_batching_dims, d);
    bool is_dropped = batching || PositionIn(attrs.inserted_window_dims, d);
    int64_t size = is_dropped ? 1 : window[next++];
    IndexExpr expr{.last = size - 1};
    if (std::optional<size_t> component = PositionIn(attrs.scatter_dims_to_operand_dims, d))
      expr.start = {.kind = RunTimeStart::Kind::kSkipped,
                    .is_subtracted = true,
                    .operand = indices,
                    .component = static_cast<int64_t>(*component),
                    .last = dims[d] - size};
    if (batching) {
      auto dim = static_cast<size_t>(attrs.scatter_indices_batching_dims[*batching]);
      map.Guard({{d}, {batch[dim > vector_dim ? dim - 1 : dim], -1}}, expr);
    } else if (is_dropped) {
      map.Guard({{d}}, expr);
    } else {
      in_window.push_back(expr);
      window_dims.push_back(d);
    }
  }
  for (size_t d = 0, next = 0, next_batch = 0; d < map.rank(); ++d) {
    if (PositionIn(attrs.update_window_dims, d)) {
      map.Read({{window_dims[next]}}, in_window[next]);
      ++next;
    } else {
      map.Read({{batch[next_batch++]}});
    }
  }
}

// Values decide which element along one dimension is read.
void ReadPermuted(IndexMapMaker& map, size_t along) {
  for (size_t d = 0; d < map.rank(); ++d) {
    if (d == along) {
      map.Read({{d}}, {.start = {.kind = RunTimeStart::Kind::kPermutation}});
    } else {
      map.Read({{d}});
    }
  }
}

void MapSort(IndexMapMaker& map) {
  int64_t along = map.instr().attrs<SortAttrs>().dimension;
  if (along < 0) along += static_cast<int64_t>(map.rank());
  ReadPermuted(map, static_cast<size_t>(along));
}

void MapTopK(IndexMapMaker& map) {
  ReadPermuted(map, map.rank() - 1);
}

// The body gets whole slices of the inputs. An output depends on the steps up to its own; a last
// carry on all of them.
void MapScan(IndexMapMaker& map) {
  const Instr& instr = map.instr();
  const ScanAttrs& attrs = instr.attrs<ScanAttrs>();
  auto along = static_cast<size_t>(attrs.dimension);
  auto carries = static_cast<size_t>(attrs.num_carries);
  size_t results = instr.shape().IsTuple() ? instr.shape().elements().size() : 1;
  bool is_output = map.result() + carries < results;
  bool is_input = map.operand() + carries + instr.captures() < instr.operand_count();
  for (size_t d = 0; d < map.rank(); ++d) {
    size_t variable = map.IterateDim(map.operand(), d);
    map.Read({{variable}});
    if (!is_output || !is_input || d != along) continue;
    int64_t later = attrs.is_reverse ? -1 : 1;
    map.Guard({{along, later}, {variable, -later}}, {.last = map.dims()[d] - 1});
  }
}

// The result has batch dimensions, then the free dimensions of lhs, then those of rhs.
void MapDot(IndexMapMaker& map) {
  const DotAttrs& attrs = map.instr().attrs<DotAttrs>();
  bool is_lhs = map.operand() == 0;
  const Dims& batch = is_lhs ? attrs.lhs_batch : attrs.rhs_batch;
  const Dims& contracting = is_lhs ? attrs.lhs_contracting : attrs.rhs_contracting;
  size_t first = map.result_rank();  // of the contracted variables
  for (int64_t d : attrs.lhs_contracting) map.IterateDim(0, static_cast<size_t>(d));
  size_t next = is_lhs ? batch.size() : first - (map.rank() - batch.size() - contracting.size());
  for (size_t d = 0; d < map.rank(); ++d) {
    std::optional<size_t> i = PositionIn(batch, d), k = PositionIn(contracting, d);
    map.Read({{i ? *i : k ? first + *k : next++}});
  }
}

// Iterated variables: the taps, the input features of one group, the group. Only the group of the
// result's feature is read.
void MapConvolution(IndexMapMaker& map) {
  const Instr& instr = map.instr();
  const ConvolutionAttrs& attrs = instr.attrs<ConvolutionAttrs>();
  const ConvDims& dims = attrs.dims;
  auto feature = static_cast<size_t>(dims.output_feature);
  auto batch = static_cast<size_t>(dims.output_batch);
  std::vector<size_t> taps;
  for (int64_t d : dims.kernel_spatial) taps.push_back(map.IterateDim(1, static_cast<size_t>(d)));
  size_t channel = map.IterateDim(1, static_cast<size_t>(dims.kernel_input));
  int64_t groups = attrs.feature_group_count * attrs.batch_group_count;
  size_t group = map.Iterate({.size = groups});
  int64_t features = instr.shape().dim(feature) / groups;
  if (groups > 1) map.Guard({{feature}, {group, -features}}, {.last = features - 1});
  // `variable` within the group; `count` groups along this dimension.
  auto read_group = [&](size_t variable, int64_t count) {
    if (count == 1) return map.Read({{variable}});
    map.Read({{group, map.SizeOf(variable)}, {variable}});
  };
  for (size_t d = 0; d < map.rank(); ++d) {
    auto is = [&](int64_t role) { return static_cast<int64_t>(d) == role; };
    if (map.operand() == 1) {
      std::optional<size_t> i = PositionIn(dims.kernel_spatial, d);
      bool reversed = i && attrs.window[*i].reversed;
      map.Read({{i                        ? taps[*i]
                 : is(dims.kernel_output) ? feature
                                          : channel,
                 reversed ? -1 : 1}},
               {.offset = reversed ? map.dims()[d] - 1 : 0});
    } else if (std::optional<size_t> i = PositionIn(dims.input_spatial, d)) {
      ReadWindow(map, attrs.window[*i], static_cast<size_t>(dims.output_spatial[*i]), taps[*i]);
    } else if (is(dims.input_batch)) {
      read_group(batch, attrs.batch_group_count);
    } else {
      read_group(channel, attrs.feature_group_count);
    }
  }
}

using MapFunction = void (*)(IndexMapMaker&);

struct GeometryDefinition {
  MapFunction map = nullptr;
  // It computes with sizes: there is no map if they are dynamic.
  bool needs_sizes = false;
};

bool IsRowMajorShape(const Shape& shape) {
  return shape.layout() == nullptr || IsRowMajor(shape.layout()->minor_to_major);
}

GeometryDefinition DefinitionOf(Op op) {
  switch (op) {
    case Op::kIota:
      return {MapIota};
    case Op::kCopy:
    case Op::kOptimizationBarrier:
      return {MapSame};
    case Op::kBitcastConvert:
      return {MapBitcastConvert};
    case Op::kBroadcast:
      return {MapBroadcast};
    case Op::kBitcast:
    case Op::kReshape:
      return {MapReshape, true};
    case Op::kTranspose:
      return {MapTranspose};
    case Op::kReverse:
      return {MapReverse, true};
    case Op::kSlice:
      return {MapSlice};
    case Op::kDynamicSlice:
      return {MapDynamicSlice, true};
    case Op::kDynamicUpdateSlice:
      return {MapDynamicUpdateSlice, true};
    case Op::kConcatenate:
      return {MapConcatenate, true};
    case Op::kPad:
      return {MapPad, true};
    case Op::kGather:
      return {MapGather, true};
    case Op::kTorchIndexSelect:
      return {MapTorchIndexSelect, true};
    case Op::kReduce:
      return {MapReduce};
    case Op::kReduceWindow:
      return {MapReduceWindow, true};
    case Op::kSelectAndScatter:
      return {MapSelectAndScatter, true};
    case Op::kScatter:
      return {MapScatter, true};
    case Op::kSort:
      return {MapSort};
    case Op::kTopK:
      return {MapTopK};
    case Op::kScan:
      return {MapScan, true};
    case Op::kDot:
      return {MapDot};
    case Op::kConvolution:
      return {MapConvolution, true};
    default:
      return {InfoOf(op).Is(kElementwise) ? MapSame : nullptr};
  }
}

// Whether the geometry of an instruction is that of its op.
bool HasGeometryOfOp(const Instr& instr) {
  if (instr.op() == Op::kOptimizationBarrier) return instr.shape().IsArray();
  if (instr.op() == Op::kSelectAndScatter) {
    const Window& window = instr.attrs<WindowAttrs>().window;
    return std::none_of(window.begin(), window.end(), [](const WindowDim& dim) {
      return dim.base_dilation != 1 || dim.window_dilation != 1 || dim.reversed;
    });
  }
  if (instr.op() != Op::kBitcast) return true;
  const Shape& from = instr.operand(0)->shape();
  return from.type() == instr.shape().type() && IsRowMajorShape(from) &&
         IsRowMajorShape(instr.shape());
}

// Null if the operand has no map.
MapFunction MapFunctionOf(const Instr& instr, size_t operand) {
  GeometryDefinition definition = DefinitionOf(instr.op());
  if (definition.map == nullptr || !HasGeometryOfOp(instr)) return nullptr;
  if (operand >= instr.operand_count()) return definition.map;
  const Shape& from = instr.operand(operand)->shape();
  bool is_captured = operand + instr.captures() >= instr.operand_count();
  // Only updates of a scatter are read under a condition if they are scalars.
  if (from.IsScalar() && (is_captured || definition.map != MapScatter)) return MapScalar;
  bool has_other_dims = definition.map == MapSame && from.dims() != instr.shape().dims();
  bool lacks_sizes =
      definition.needs_sizes && (from.HasDynamicDims() || instr.shape().HasDynamicDims());
  return !from.IsArray() || is_captured || has_other_dims || lacks_sizes ? nullptr : definition.map;
}

}  // namespace

std::optional<size_t> IndexMap::SameDim(size_t dim, int64_t size) const {
  const IndexExpr& expr = dims[dim];
  if (expr.term_count != 1 || expr.offset != 0 || expr.divisor != 1 || expr.modulus != 0 ||
      expr.start.Moves())
    return std::nullopt;
  const IndexTerm& term = terms[expr.first_term];
  bool same =
      term.coefficient == 1 && term.variable < result_rank && variables[term.variable].size == size;
  return same ? std::optional(term.variable) : std::nullopt;
}

bool IndexMap::AlwaysHolds(const IndexExpr& expr) const {
  if (!expr.last) return true;
  int64_t low = expr.offset, high = expr.offset;
  for (const IndexTerm& term : TermsOf(expr)) {
    int64_t span = term.coefficient * (variables[term.variable].size - 1);
    (span < 0 ? low : high) += span;
  }
  return low >= 0 && high <= *expr.last && expr.divisor == 1 && !expr.start.Moves();
}

bool IndexMap::ReadsOneFixedElement() const {
  return variables.size() == result_rank && guards.empty() &&
         std::all_of(dims.begin(), dims.end(), [&](const IndexExpr& expr) {
           return !expr.start.Moves() && AlwaysHolds(expr);
         });
}

Dims IndexMap::IteratedSizes() const {
  Dims sizes;
  for (size_t v = result_rank; v < variables.size(); ++v) sizes.push_back(variables[v].size);
  return sizes;
}

int64_t IndexMap::ReadsPerElement() const {
  int64_t reads = 1;
  for (size_t v = result_rank; v < variables.size(); ++v) {
    if (variables[v].size == kDynamic) continue;
    if (__builtin_mul_overflow(reads, variables[v].size, &reads)) return INT64_MAX;
  }
  return reads;
}

bool HasIndexMap(Op op) {
  return DefinitionOf(op).map != nullptr;
}

bool HasIndexMap(const Instr& instr, size_t operand) {
  return MapFunctionOf(instr, operand) != nullptr;
}

std::optional<IndexMap> IndexMapOf(const Instr& instr, size_t operand, size_t result) {
  std::optional<IndexMap> map;  // the only object returned: it is not copied
  if (MapFunction function = MapFunctionOf(instr, operand)) {
    IndexMapMaker maker(instr, operand, result, map.emplace());
    function(maker);
  }
  return map;
}

int64_t ReadsPerElement(const Instr& instr) {
  std::optional<IndexMap> map = IndexMapOf(instr, 0);
  return map ? map->ReadsPerElement() : 1;
}

}  // namespace tokamak
