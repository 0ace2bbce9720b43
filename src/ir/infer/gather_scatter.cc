// Shape inference of gather and scatter. They mirror each other, and Indexing names the attributes
// that they share after gather. An index is a vector along `index_vector_dim` of the indices (or a
// scalar, if that equals their rank).
//
//   gather    result  = batch dimensions of the indices, interleaved with dimensions of the slice
//   scatter   updates = the same, with update_window_dims for offset_dims
//
// A slice (window) has the rank of the array. Dimensions that are collapsed (inserted) or batching
// have size 1 in it and are omitted from the result (updates). Component i of an index selects
// along index_map[i] of the array.

#include <algorithm>

#include "ir/infer/families.h"
#include "ir/infer/require.h"

namespace tokamak {
namespace {

// The attributes that gather and scatter share about the indexed array.
struct Indexing {
  const char* window_name;     // name of the collapsed or inserted dimensions
  const Dims& dropped;         // dimensions of the array that a window omits
  const Dims& array_batching;  // batch dimensions of the array, paired with
  const Dims& index_batching;  //   these dimensions of the indices
  const Dims& index_map;       // component i of an index selects along index_map[i]
  int64_t index_vector_dim;
};

Status CheckIndexVector(const InferInput& in, const Indexing& how, const Shape& array,
                        const Shape& indices) {
  if (how.index_vector_dim < 0 || how.index_vector_dim > indices.rank())
    return MakeInferError(in, ErrorCode::kIndexVectorDim,
                          "index_vector_dim is {}, the indices are {}: 0 to {} needed",
                          how.index_vector_dim, ToString(indices), indices.rank());
  int64_t components = how.index_vector_dim == indices.rank()
                           ? 1
                           : indices.dim(static_cast<size_t>(how.index_vector_dim));
  if (!SizesAgree(components, static_cast<int64_t>(how.index_map.size())))
    return MakeInferError(in, ErrorCode::kStartIndexMap,
                          "the map of indices {} has {} entries, an index of {} has {} components",
                          ListText(how.index_map), how.index_map.size(), ToString(indices),
                          components);
  return RequireUnique(in, "the map of indices", how.index_map, array.rank());
}

Status CheckBatching(const InferInput& in, const Indexing& how, const Shape& array,
                     const Shape& indices) {
  TOK_RETURN_IF_ERROR(RequireUnique(in, "operand_batching_dims", how.array_batching, array.rank()));
  TOK_RETURN_IF_ERROR(RequireAscending(in, "operand_batching_dims", how.array_batching));
  TOK_RETURN_IF_ERROR(
      RequireUnique(in, "indices_batching_dims", how.index_batching, indices.rank()));
  if (how.array_batching.size() != how.index_batching.size())
    return MakeInferError(in, ErrorCode::kBatchingDims,
                          "{} batching dimensions of the operand, {} of the indices",
                          how.array_batching.size(), how.index_batching.size());
  for (size_t i = 0; i < how.array_batching.size(); ++i) {
    int64_t a = how.array_batching[i], b = how.index_batching[i];
    int64_t size_a = array.dim(static_cast<size_t>(a)),
            size_b = indices.dim(static_cast<size_t>(b));
    if (b == how.index_vector_dim || Has(how.index_map, a) || Has(how.dropped, a) ||
        !SizesAgree(size_a, size_b))
      return MakeInferError(in, ErrorCode::kBatchingDims,
                            "batching dimension {} of {} does not match dimension {} of {}", a,
                            ToString(array), b, ToString(indices));
  }
  return Ok();
}

Status CheckIndexing(const InferInput& in, const Indexing& how, const Shape& array,
                     size_t operand) {
  const Shape& indices = in.operands[operand];
  TOK_RETURN_IF_ERROR(RequireIntegers(in, operand, ErrorCode::kIndicesType));
  TOK_RETURN_IF_ERROR(CheckIndexVector(in, how, array, indices));
  TOK_RETURN_IF_ERROR(RequireUnique(in, how.window_name, how.dropped, array.rank()));
  TOK_RETURN_IF_ERROR(RequireAscending(in, how.window_name, how.dropped));
  return CheckBatching(in, how, array, indices);
}

// The sizes of the indices without the index vector dimension.
Sizes IndexSizes(const Shape& indices, int64_t index_vector_dim) {
  Sizes sizes;
  for (size_t d = 0; d < indices.dims().size(); ++d)
    if (static_cast<int64_t>(d) != index_vector_dim) sizes.push_back(indices.dim(d));
  return sizes;
}

// `slices` has unknown sizes for a dynamic gather, where they are an operand.
Result<Shape> InferGathered(const InferInput& in, const GatherAttrs& attrs, const Sizes& slices) {
  const Shape &x = in.operands[0], &indices = in.operands[1];
  Indexing how{"collapsed_slice_dims",      attrs.collapsed_slice_dims,
               attrs.operand_batching_dims, attrs.start_indices_batching_dims,
               attrs.start_index_map,       attrs.index_vector_dim};
  TOK_RETURN_IF_ERROR(CheckIndexing(in, how, x, 1));
  Sizes batch = IndexSizes(indices, attrs.index_vector_dim), shown;
  for (size_t d = 0; d < slices.size(); ++d) {
    int64_t dim = static_cast<int64_t>(d);
    bool dropped = Has(attrs.collapsed_slice_dims, dim) || Has(attrs.operand_batching_dims, dim);
    bool fits = slices[d] == kDynamic ||
                (slices[d] >= 0 && (x.dim(d) == kDynamic || slices[d] <= x.dim(d)));
    if (!fits || (dropped && slices[d] != kDynamic && slices[d] > 1))
      return MakeInferError(in, ErrorCode::kGatherSliceSize,
                            "slice size {} does not fit {}dimension {} of {}", slices[d],
                            dropped ? "the dropped " : "", d, ToString(x));
    if (!dropped) shown.push_back(slices[d]);
  }
  if (shown.size() != attrs.offset_dims.size())
    return MakeInferError(in, ErrorCode::kOffsetDims,
                          "offset_dims {} are {}, a slice has {} dimensions",
                          ListText(attrs.offset_dims), attrs.offset_dims.size(), shown.size());
  int64_t rank = static_cast<int64_t>(batch.size() + shown.size());
  TOK_RETURN_IF_ERROR(RequireUnique(in, "offset_dims", attrs.offset_dims, rank));
  TOK_RETURN_IF_ERROR(RequireAscending(in, "offset_dims", attrs.offset_dims));
  Sizes dims;
  size_t next_shown = 0, next_batch = 0;
  for (int64_t d = 0; d < rank; ++d)
    dims.push_back(Has(attrs.offset_dims, d) ? shown[next_shown++] : batch[next_batch++]);
  return InferArray(in, x.type(), dims, &x);
}

}  // namespace

Result<Shape> InferGather(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  const auto& attrs = in.attrs.As<GatherAttrs>();
  TOK_RETURN_IF_ERROR(
      RequireCount(in, "slice_sizes", attrs.slice_sizes.size(), in.operands[0].rank()));
  return InferGathered(in, attrs, Sizes(attrs.slice_sizes));
}

Result<Shape> InferDynamicGather(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  TOK_RETURN_IF_ERROR(RequireWrittenArray(in));
  int64_t rank = in.operands[0].rank();
  TOK_RETURN_IF_ERROR(RequireSizeVector(in, 2, rank));
  Sizes slices;
  for (int64_t d = 0; d < rank; ++d) slices.push_back(kDynamic);
  return InferGathered(in, in.attrs.As<GatherAttrs>(), slices);
}

Result<Shape> InferTorchIndexSelect(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  TOK_RETURN_IF_ERROR(RequireIntegers(in, 1, ErrorCode::kIndicesType));
  const auto& attrs = in.attrs.As<TorchIndexSelectAttrs>();
  const Shape &x = in.operands[0], &indices = in.operands[1];
  TOK_RETURN_IF_ERROR(RequireDimension(in, "dim", attrs.dim, x.rank()));
  bool good =
      attrs.batch_dims >= 0 && attrs.batch_dims <= attrs.dim && attrs.batch_dims <= indices.rank();
  size_t batches = good ? static_cast<size_t>(attrs.batch_dims) : 0;
  for (size_t i = 0; i < batches; ++i) good = good && SizesAgree(x.dim(i), indices.dim(i));
  if (!good)
    return MakeInferError(in, ErrorCode::kBatchingDims,
                          "batch_dims {} do not fit {} indexed by {} along {}", attrs.batch_dims,
                          ToString(x), ToString(indices), attrs.dim);
  size_t along = static_cast<size_t>(attrs.dim);
  Sizes dims;
  dims.Append(std::span(x.dims()).first(along));
  dims.Append(std::span(indices.dims()).subspan(batches));
  dims.Append(std::span(x.dims()).subspan(along + 1));
  return InferArray(in, x.type(), dims, &x);
}

namespace {

// Checks the updates of one input: windows of the input, one per index.
Status CheckUpdates(const InferInput& in, const Shape& x, const Shape& indices,
                    const Shape& update) {
  const auto& attrs = in.attrs.As<ScatterAttrs>();
  Sizes batch = IndexSizes(indices, attrs.index_vector_dim);
  size_t rank = batch.size() + attrs.update_window_dims.size();
  if (update.dims().size() != rank)
    return MakeInferError(in, ErrorCode::kUpdateShape, "the updates are {}, {} dimensions needed",
                          ToString(update), rank);
  std::vector<size_t> shown;
  for (size_t d = 0; d < x.dims().size(); ++d) {
    int64_t dim = static_cast<int64_t>(d);
    if (!Has(attrs.inserted_window_dims, dim) && !Has(attrs.input_batching_dims, dim))
      shown.push_back(d);
  }
  if (shown.size() != attrs.update_window_dims.size())
    return MakeInferError(in, ErrorCode::kWindowDims,
                          "update_window_dims {} are {}, a window of {} has {} dimensions",
                          ListText(attrs.update_window_dims), attrs.update_window_dims.size(),
                          ToString(x), shown.size());
  size_t next_shown = 0, next_batch = 0;
  for (size_t d = 0; d < rank; ++d) {
    bool window = Has(attrs.update_window_dims, static_cast<int64_t>(d));
    int64_t limit = window ? x.dim(shown[next_shown++]) : batch[next_batch++];
    bool fits = update.dim(d) == kDynamic || limit == kDynamic ||
                (window ? update.dim(d) <= limit : update.dim(d) == limit);
    if (!fits)
      return MakeInferError(in, ErrorCode::kUpdateShape,
                            "dimension {} of the updates {} must be {}{}", d, ToString(update),
                            window ? "at most " : "", limit);
  }
  return Ok();
}

// Checks that n inputs and n updates agree in their dimensions.
Result<size_t> CheckScatterOperands(const InferInput& in) {
  size_t count = OwnOperands(in);
  if (count < 3 || count % 2 == 0)
    return MakeInferError(in, ErrorCode::kOperandCount,
                          "{} operands: expected inputs, indices and as many updates as inputs",
                          count);
  for (size_t i = 0; i < count; ++i) TOK_RETURN_IF_ERROR(RequireArray(in, i));
  size_t n = count / 2;
  for (size_t i = 1; i < n; ++i) {
    Sizes inputs(in.operands[0].dims()), updates(in.operands[n + 1].dims());
    if (!UnifySizes(inputs, in.operands[i].dims()) ||
        !UnifySizes(updates, in.operands[n + 1 + i].dims()))
      return MakeInferError(in, ErrorCode::kOperandDimensions,
                            "input {} is {} with updates {}, input 0 is {} with {}", i,
                            ToString(in.operands[i]), ToString(in.operands[n + 1 + i]),
                            ToString(in.operands[0]), ToString(in.operands[n + 1]));
  }
  return n;
}

}  // namespace

Result<Shape> InferScatter(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireCalled(in, 1));
  TOK_TRY(size_t n, CheckScatterOperands(in));
  const auto& attrs = in.attrs.As<ScatterAttrs>();
  const Shape &x = in.operands[0], &indices = in.operands[n];
  Indexing how{"inserted_window_dims",
               attrs.inserted_window_dims,
               attrs.input_batching_dims,
               attrs.scatter_indices_batching_dims,
               attrs.scatter_dims_to_operand_dims,
               attrs.index_vector_dim};
  TOK_RETURN_IF_ERROR(CheckIndexing(in, how, x, n));
  TOK_RETURN_IF_ERROR(
      RequireUnique(in, "update_window_dims", attrs.update_window_dims, in.operands[n + 1].rank()));
  TOK_RETURN_IF_ERROR(RequireAscending(in, "update_window_dims", attrs.update_window_dims));
  TOK_RETURN_IF_ERROR(CheckUpdates(in, x, indices, in.operands[n + 1]));
  std::vector<ElementType> types(n);
  TOK_RETURN_IF_ERROR(
      RequireReducer(in, 0, in.operands.subspan(n + 1, n), in.operands.first(n), types.data()));
  std::vector<Shape> parts;
  for (size_t i = 0; i < n; ++i) {
    TOK_TRY(const Shape* written, WrittenPart(in, i, n));
    const Shape& input = in.operands[i];
    const Shape& root = RootShape(*in.called[0]);
    TOK_TRY(Shape part, InferResult(in, written, types[i], Sizes(input.dims()),
                                    n == 1 ? &root : &root.elements()[i]));
    if (n == 1) return part;
    parts.push_back(std::move(part));
  }
  return InferResults(in, std::move(parts));
}

}  // namespace tokamak
