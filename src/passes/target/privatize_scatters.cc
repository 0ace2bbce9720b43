// Privatizes scatters: many updates into a small array serialize on few elements. The updates are
// split into parts, each part scatters into its own copy of the array, and a reduction combines the
// copies:
//
//   scatter(a, i, u)  ->  op(a, reduce(scatter(neutral [P, ...], i [P, ...], u [P, ...])))
//
// The part is a batch dimension of the new scatter, so parts run in parallel, and the result
// depends only on the shape. Requires a combiner that is associative and commutative and has a
// neutral element. Two rewrites make more scatters qualify: f32 maxima and minima become integer
// ones, and "last update wins" becomes a maximum of update numbers followed by a gather.

#include <algorithm>
#include <limits>

#include "gen/generator.h"
#include "gen/reducer.h"
#include "ir/builder.h"
#include "passes/passes.h"
#include "passes/target/split_sizes.h"
#include "rewrite/edit_computations.h"
#include "rewrite/editor.h"
#include "support/check.h"

namespace tokamak {
namespace {

// Each private copy must be cleared and added up. Chosen: limits for which that costs less than
// threads save. kScatterMany: update elements worth several threads. kScatterMaxSplits and
// kScatterMinSplits: number of private copies. kLarge: bytes of one copy, for the L2 cache of a
// core. kAllBytes: bytes of all copies if there are more than kScatterMinSplits. kVectors: windows
// of several elements are vectorized, so they need this many times more updates per copy. kMinWalk:
// indices per copy along the dimension that is split.
constexpr int64_t kMinWalk = 16, kScatterMany = 1 << 15, kScatterMaxSplits = 32,
                  kScatterMinSplits = 4, kMaxCopyBytes = 1 << 20, kAllBytes = 1 << 21, kVectors = 8;
// Window elements from which all threads have work without splitting, as with kManyBatches. Chosen:
// each of 16 threads then has two vectors of a window.
constexpr int64_t kWideWindow = 512;

bool IsScattered(const Dims& dims, int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

void ShiftFrom(Dims& dims, int64_t first) {
  for (int64_t& d : dims)
    if (d >= first) ++d;
}

// A dimension of the indices and of the updates that enumerates windows.
struct Walk {
  int64_t of_indices = 0, of_updates = 0, size = 0;
};

// The longest such dimension that is not a batch dimension.
Walk LongestWalk(const Instr& scatter, const ScatterAttrs& attrs) {
  Walk longest;
  const Dims& updates = scatter.operand(2)->shape().dims();
  int64_t next = 0;  // dimension of the indices
  for (int64_t d = 0; d < static_cast<int64_t>(updates.size()); ++d) {
    if (IsScattered(attrs.update_window_dims, d)) continue;
    if (next == attrs.index_vector_dim) ++next;
    int64_t size = updates[static_cast<size_t>(d)];
    if (size > longest.size && !IsScattered(attrs.scatter_indices_batching_dims, next))
      longest = {next, d, size};
    ++next;
  }
  return longest;
}

class ScatterSplit {
 public:
  ScatterSplit(Instr& scatter, Walk walk, int64_t splits, Literal neutral)
      : scatter_(scatter),
        walk_(walk),
        parts_(splits),
        neutral_(std::move(neutral)),
        make_(scatter) {}

  // `within`: the combiner within a part.
  void Split(Op op, Computation* within) {
    const ScatterAttrs& attrs = scatter_.attrs<ScatterAttrs>();
    const Shape& shape = scatter_.shape();
    Instr *indices = scatter_.operand(1), *updates = scatter_.operand(2);
    // Elements that do not fit into equal parts.
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
    Instr* arrays =
        make_.Make(Op::kScatter, Shape::Array(shape.type(), all),
                   {make_.Broadcast(neutral, Shape::Array(shape.type(), all)),
                    WithSplitDim(Cut(indices, walk_.of_indices, 0, even), walk_.of_indices),
                    WithSplitDim(Cut(updates, walk_.of_updates, 0, even), walk_.of_updates)},
                   AttrsOfParts(attrs));
    arrays->set_called({within});
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

  Instr* WithSplitDim(Instr* x, int64_t dimension) {
    Dims dims = x->shape().dims();
    dims[static_cast<size_t>(dimension)] /= parts_;
    dims.insert(dims.begin() + dimension, parts_);
    return make_.Make(Op::kReshape, Shape::Array(x->shape().type(), dims), {x});
  }

  // The part becomes the first dimension of the array, and a batch dimension.
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
  Editor make_;
};

// The number of private copies that is profitable; 1: no split.
int64_t PrivateCopiesOf(const Instr& scatter, int64_t element_bytes) {
  const ScatterAttrs& attrs = scatter.attrs<ScatterAttrs>();
  const Shape &shape = scatter.shape(), &update = scatter.operand(2)->shape();
  int64_t elements = shape.ElementCount(), updates = update.ElementCount();
  int64_t window = 1, batches = 1, bytes = elements * element_bytes;
  for (int64_t d : attrs.update_window_dims) window *= update.dim(static_cast<size_t>(d));
  for (int64_t d : attrs.input_batching_dims) batches *= shape.dim(static_cast<size_t>(d));
  if (updates < kScatterMany || window >= kWideWindow || batches >= kManyBatches ||
      bytes > kMaxCopyBytes)
    return 1;
  // Vectorized windows are cheap compared with the overhead of another copy.
  int64_t most = updates / elements / (window > 1 ? kVectors : 1);
  int64_t splits = std::min({kScatterMaxSplits, most, LongestWalk(scatter, attrs).size / kMinWalk,
                             std::max(kScatterMinSplits, kAllBytes / bytes)});
  return splits < kScatterMinSplits ? 1 : FloorPowerOfTwo(splits);
}

void Log(const Instr& scatter, PassContext& context, std::string_view rule, std::string because) {
  context.Accepted(rule, scatter, nullptr, std::move(because));
}

bool IsSplittable(const Instr& scatter) {
  return !WhyNoScatterKernel(scatter) && !HasControlDependencies(scatter) &&
         !scatter.attrs<ScatterAttrs>().scatter_dims_to_operand_dims.empty();
}

bool TrySplit(Instr& scatter, PassContext& context, Computation* within = nullptr) {
  if (!IsSplittable(scatter)) return false;
  std::optional<Op> op = CommutativeOpOf(*scatter.called(0));
  if (!op) return false;
  std::optional<Literal> neutral = NeutralLiteral(*op, scatter.shape().type());
  if (!neutral) return false;
  int64_t splits =
      PrivateCopiesOf(scatter, scatter.shape().ByteSize() / scatter.shape().ElementCount());
  if (splits == 1) return false;
  Log(scatter, context, "scatter.split", std::to_string(splits) + " parts");
  Walk walk = LongestWalk(scatter, scatter.attrs<ScatterAttrs>());
  ScatterSplit(scatter, walk, splits, *neutral)
      .Split(*op, within != nullptr ? within : scatter.called(0));
  return true;
}

constexpr ElementType kScatterNumber = ElementType::kS32;

// A combiner that returns the maximum or minimum of two numbers, or the second.
Computation* BodyOf(const Instr& scatter, std::optional<Op> op) {
  Builder b(scatter, "combine");
  Shape number = Shape::Scalar(kScatterNumber);
  Instr *x = b.Parameter(number), *y = b.Parameter(number);
  return b.FinishValid(op ? b.Append(*op, {x, y}) : y);
}

// For scatters in which the last update wins: scatters the maximum update number, in any order,
// then gathers the updates. Single elements only.
bool TryLast(Instr& scatter, PassContext& context) {
  if (!IsSplittable(scatter) || scatter.called(0)->root() != scatter.called(0)->parameter(1))
    return false;
  const Shape &shape = scatter.shape(), &update = scatter.operand(2)->shape();
  int64_t count = update.ElementCount();
  for (int64_t d : scatter.attrs<ScatterAttrs>().update_window_dims)
    if (update.dim(static_cast<size_t>(d)) != 1) return false;
  if (count > std::numeric_limits<int32_t>::max() ||
      PrivateCopiesOf(scatter, BytesOf(kScatterNumber)) == 1)
    return false;
  Computation *greater = BodyOf(scatter, Op::kMaximum), *last_one = BodyOf(scatter, std::nullopt);
  Log(scatter, context, "scatter.last", "numbers of updates");
  Editor make(scatter);
  Instr* line = make.Make(Op::kIota, Shape::Array(kScatterNumber, {count}), {}, IotaAttrs{0});
  Instr* numbers = make.Make(Op::kReshape, Shape::Array(kScatterNumber, update.dims()), {line});
  Shape whole = Shape::Array(kScatterNumber, shape.dims());
  Instr* none = make.Broadcast(make.Constant(Literal::ScalarInt(kScatterNumber, -1)), whole);
  Instr* last = make.Make(Op::kScatter, whole, {none, scatter.operand(1), numbers},
                          scatter.attrs<ScatterAttrs>());
  last->set_called({greater});
  GatherAttrs fetch;
  fetch.collapsed_slice_dims = fetch.start_index_map = {0};
  fetch.index_vector_dim = shape.rank();
  fetch.slice_sizes = {1};
  Instr* updates =
      make.Make(Op::kReshape, Shape::Array(shape.type(), {count}), {scatter.operand(2)});
  Instr* fetched = make.Make(Op::kGather, Shape::Array(shape.type(), shape.dims()), {updates, last},
                             std::move(fetch));
  CompareAttrs less;
  less.direction = CompareDirection::kLt;
  Instr* zero = make.Broadcast(make.Constant(Literal::ScalarInt(kScatterNumber, 0)), whole);
  Instr* unchanged = make.Make(Op::kCompare, Shape::Array(ElementType::kPred, shape.dims()),
                               {last, zero}, std::move(less));
  make.Replace(make.Make(Op::kSelect, shape, {unchanged, scatter.operand(0), fetched}));
  // Update numbers increase within a part.
  return TrySplit(*last, context, last_one);
}

// Maps floating-point maxima and minima to integers of the same order, which need one instruction.
class KeyedScatter {
 public:
  KeyedScatter(Instr& scatter, Op op) : scatter_(scatter), op_(op), make_(scatter) {}

  Instr* Run() {
    Instr* keyed =
        make_.Make(Op::kScatter, Shape::Array(kScatterNumber, scatter_.shape().dims()),
                   {KeyOf(scatter_.operand(0)), scatter_.operand(1), KeyOf(scatter_.operand(2))},
                   scatter_.attrs<ScatterAttrs>());
    keyed->set_called({BodyOf(scatter_, op_)});
    make_.Replace(make_.Make(Op::kBitcastConvert, scatter_.shape(), {Flipped(keyed)}));
    return keyed;
  }

 private:
  Instr* Number(int64_t value, const Shape& shape) {
    return make_.Filled(shape, Literal::ScalarInt(kScatterNumber, value));
  }

  // Inverts the order of negative numbers. It is its own inverse.
  Instr* Flipped(Instr* bits) {
    const Shape& shape = bits->shape();
    using Limits = std::numeric_limits<int32_t>;
    Instr* sign =
        make_.Make(Op::kShiftRightArithmetic, shape, {bits, Number(Limits::digits, shape)});
    Instr* mask = make_.Make(Op::kAnd, shape, {sign, Number(Limits::max(), shape)});
    return make_.Make(Op::kXor, shape, {bits, mask});
  }

  // NaN wins: it is the greatest key of a maximum and the least key of a minimum. Both extreme keys
  // map back to NaN bits.
  Instr* KeyOf(Instr* x) {
    Shape shape = Shape::Array(kScatterNumber, x->shape().dims());
    Instr* key = Flipped(make_.Make(Op::kBitcastConvert, shape, {x}));
    CompareAttrs unequal;
    unequal.direction = CompareDirection::kNe;
    Instr* is_nan = make_.Make(Op::kCompare, Shape::Array(ElementType::kPred, x->shape().dims()),
                               {x, x}, std::move(unequal));
    using Limits = std::numeric_limits<int32_t>;
    Instr* nan = Number(op_ == Op::kMaximum ? Limits::max() : Limits::min(), shape);
    return make_.Make(Op::kSelect, shape, {is_nan, nan, key});
  }

  Instr& scatter_;
  Op op_;
  Editor make_;
};

bool TryKeys(Instr& scatter, PassContext& context) {
  if (!IsSplittable(scatter) || scatter.shape().type() != ElementType::kF32) return false;
  std::optional<Op> op = CommutativeOpOf(*scatter.called(0));
  if (!op || (*op != Op::kMaximum && *op != Op::kMinimum) ||
      PrivateCopiesOf(scatter, BytesOf(kScatterNumber)) == 1)
    return false;
  Log(scatter, context, "scatter.keys", "integers of the same order");
  return TrySplit(*KeyedScatter(scatter, *op).Run(), context);
}

}  // namespace

// Records scatter.split, scatter.last and scatter.keys. Floating-point sums are rounded in a
// different order.
Result<Changed> PrivatizeScatters(Module& module, PassContext& context) {
  return EditComputations(module, [&](Computation& computation) {
    bool changed = false;
    for (Instr* instr : computation.Instrs())
      if (instr->op() == Op::kScatter &&
          (TryKeys(*instr, context) || TrySplit(*instr, context) || TryLast(*instr, context)))
        changed = true;
    return changed;
  });
}

}  // namespace tokamak
