// tok_index_map_tests: index maps against the interpreter, on random instructions of every op that
// has a map. An op with a map but without a random instruction is a failure; one elementwise op
// stands for all.
//
//   tok_index_map_tests [--seed N] [--cases N]      N cases of each op (default 200)
//
// Operands are arrays of random 64-bit numbers, so that the number of an element identifies it. Ops
// that move elements return them; reductions, windows and scatters add them; dots and convolutions
// add products. Each element of a result must be what the elements that its maps read give. The
// last line is a tally.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>

#include <fmt/format.h>

#include "analysis/dimension_flow.h"
#include "index_maps/reads.h"
#include "interp/interp.h"
#include "interp/window.h"
#include "ir/builder.h"
#include "support/splitmix.h"

namespace tokamak {
namespace {

constexpr ElementType kData = ElementType::kU64;
constexpr ElementType kIndices = ElementType::kS32;

class RandomNumbers {
 public:
  explicit RandomNumbers(uint64_t seed) : bits_(seed) {}
  uint64_t Bits() { return bits_.Next(); }
  int64_t Below(int64_t n) { return static_cast<int64_t>(Bits() % static_cast<uint64_t>(n)); }
  int64_t Between(int64_t low, int64_t high) { return low + Below(high - low + 1); }
  bool Chance(int64_t n) { return Below(n) == 0; }
  Dims Sizes(size_t rank, int64_t most = 4) {
    Dims dims;
    for (size_t d = 0; d < rank; ++d) dims.push_back(Between(1, most));
    return dims;
  }
  size_t Rank(size_t least, size_t most) {
    return static_cast<size_t>(Between(static_cast<int64_t>(least), static_cast<int64_t>(most)));
  }
  // `count` of the numbers below n, ascending or in any order.
  Dims Some(size_t count, size_t n, bool ascending = true) {
    Dims all(n);
    std::iota(all.begin(), all.end(), int64_t{0});
    for (size_t i = n; i > 1; --i)
      std::swap(all[i - 1], all[static_cast<size_t>(Below(static_cast<int64_t>(i)))]);
    all.resize(count);
    if (ascending) std::sort(all.begin(), all.end());
    return all;
  }

 private:
  SplitMix64 bits_;
};

bool IsAmong(const Dims& dims, size_t d) {
  return std::find(dims.begin(), dims.end(), static_cast<int64_t>(d)) != dims.end();
}

// A random instruction. `moved`: operands whose elements are in the result; the others are indices.
struct Case {
  Instr* instr = nullptr;
  std::vector<size_t> moved;
};

// Creates parameters for the operands of a case, with values.
class CaseMaker {
 public:
  explicit CaseMaker(RandomNumbers& random) : r(random), b(module_, "main") {}

  Instr* Array(const Dims& dims) { return b.Parameter(Shape::Array(kData, dims)); }
  Instr* Indices(const Dims& dims) { return b.Parameter(Shape::Array(kIndices, dims)); }
  Instr* Scalar() { return Array({}); }
  Computation* Sum() {
    Builder body(module_, "sum");
    Instr* x = body.Parameter(Shape::Scalar(kData));
    Instr* y = body.Parameter(Shape::Scalar(kData));
    return body.FinishValid(body.Add(x, y));
  }
  Module& module() { return module_; }

  // Values for all operands. Indices are in and out of range.
  EvaluatedInstr Evaluated(const Instr& instr) {
    EvaluatedInstr of{&instr, {}};
    for (const Instr* operand : instr.operands()) {
      const Shape& shape = operand->shape();
      auto count = static_cast<size_t>(shape.ElementCount());
      if (shape.type() == kIndices) {
        std::vector<int64_t> numbers(count);
        for (int64_t& number : numbers) number = r.Between(-2, 5);
        of.operands.push_back(Value::Array(shape, std::move(numbers)));
      } else if (shape.type() == ElementType::kPred) {
        std::vector<uint8_t> numbers(count);
        for (uint8_t& number : numbers) number = static_cast<uint8_t>(r.Below(2));
        of.operands.push_back(Value::Array(shape, std::move(numbers)));
      } else {
        std::vector<uint64_t> numbers(count);
        for (uint64_t& number : numbers) number = WrapUnsigned(shape.type(), r.Bits());
        of.operands.push_back(Value::Array(shape, std::move(numbers)));
      }
    }
    return of;
  }

  RandomNumbers& r;

 private:
  Module module_{"m"};

 public:
  Builder b;
};

Case MakeAdd(CaseMaker& m) {
  Dims dims = m.r.Sizes(m.r.Rank(0, 3));
  return {m.b.Add(m.Array(dims), m.Array(dims)), {0, 1}};
}

Case MakeCopy(CaseMaker& m) {
  Instr* x = m.Array(m.r.Sizes(m.r.Rank(0, 3)));
  return {m.b.Append(Op::kCopy, {x}, {}, {.shape = x->shape()}), {0}};
}

Case MakeOptimizationBarrier(CaseMaker& m) {
  Instr* x = m.Array(m.r.Sizes(m.r.Rank(0, 3)));
  return {m.b.Append(Op::kOptimizationBarrier, {x}, {}, {.shape = x->shape()}), {0}};
}

Case MakeBroadcast(CaseMaker& m) {
  Dims result = m.r.Sizes(m.r.Rank(0, 4)), from;
  Dims dimensions = m.r.Some(m.r.Rank(0, result.size()), result.size());
  for (int64_t d : dimensions) from.push_back(m.r.Chance(3) ? 1 : result[static_cast<size_t>(d)]);
  return {m.b.Broadcast(m.Array(from), result, dimensions), {0}};
}

// The dimensions of two arrays with the same number of elements: factors of 2 and 3 joined at
// random.
std::pair<Dims, Dims> ReshapedDims(RandomNumbers& r) {
  int64_t twos = r.Below(4), threes = r.Below(3);
  auto group = [&] {
    Dims factors(static_cast<size_t>(twos), 2), dims{1};
    factors.resize(factors.size() + static_cast<size_t>(threes), 3);
    Dims order = r.Some(factors.size(), factors.size(), false);
    for (int64_t i : order) {
      if (r.Chance(2)) dims.push_back(1);
      dims.back() *= factors[static_cast<size_t>(i)];
    }
    if (r.Chance(2)) dims.erase(std::remove(dims.begin(), dims.end(), 1), dims.end());
    return dims;
  };
  Dims from = group();
  return {from, group()};
}

Case MakeReshape(CaseMaker& m) {
  auto [from, to] = ReshapedDims(m.r);
  return {m.b.Reshape(m.Array(from), to), {0}};
}

Case MakeBitcast(CaseMaker& m) {
  auto [from, to] = ReshapedDims(m.r);
  Instr* x = m.Array(from);
  return {m.b.Append(Op::kBitcast, {x}, {}, {.shape = Shape::Array(kData, to)}), {0}};
}

Case MakeTranspose(CaseMaker& m) {
  Dims dims = m.r.Sizes(m.r.Rank(0, 4));
  return {m.b.Transpose(m.Array(dims), m.r.Some(dims.size(), dims.size(), false)), {0}};
}

Case MakeReverse(CaseMaker& m) {
  Dims dims = m.r.Sizes(m.r.Rank(1, 3));
  return {m.b.Reverse(m.Array(dims), m.r.Some(m.r.Rank(0, dims.size()), dims.size())), {0}};
}

Case MakeSlice(CaseMaker& m) {
  Dims dims = m.r.Sizes(m.r.Rank(1, 3), 7), starts, limits, strides;
  for (int64_t size : dims) {
    starts.push_back(m.r.Below(size));
    limits.push_back(m.r.Between(starts.back() + 1, size));
    strides.push_back(m.r.Between(1, 3));
  }
  return {m.b.Slice(m.Array(dims), starts, limits, strides), {0}};
}

std::vector<Instr*> BlockStarts(CaseMaker& m, size_t rank) {
  std::vector<Instr*> starts;
  for (size_t d = 0; d < rank; ++d) starts.push_back(m.Indices({}));
  return starts;
}

Case MakeDynamicSlice(CaseMaker& m) {
  Dims dims = m.r.Sizes(m.r.Rank(1, 3)), sizes;
  for (int64_t size : dims) sizes.push_back(m.r.Between(1, size));
  Instr* x = m.Array(dims);
  return {m.b.DynamicSlice(x, BlockStarts(m, dims.size()), sizes), {0}};
}

Case MakeDynamicUpdateSlice(CaseMaker& m) {
  Dims dims = m.r.Sizes(m.r.Rank(1, 3)), sizes;
  for (int64_t size : dims) sizes.push_back(m.r.Between(1, size));
  Instr *x = m.Array(dims), *update = m.Array(sizes);
  return {m.b.DynamicUpdateSlice(x, update, BlockStarts(m, dims.size())), {0, 1}};
}

Case MakeConcatenate(CaseMaker& m) {
  Dims dims = m.r.Sizes(m.r.Rank(1, 3));
  int64_t along = m.r.Below(static_cast<int64_t>(dims.size()));
  std::vector<Instr*> parts;
  std::vector<size_t> moved;
  for (int64_t i = m.r.Between(1, 3); i > 0; --i) {
    dims[static_cast<size_t>(along)] = m.r.Between(0, 3);
    moved.push_back(parts.size());
    parts.push_back(m.Array(dims));
  }
  return {m.b.Concatenate(parts, along), moved};
}

Case MakePad(CaseMaker& m) {
  Dims dims = m.r.Sizes(m.r.Rank(1, 3));
  PadAttrs pad;
  for (int64_t size : dims) {
    pad.interior.push_back(m.r.Below(3));
    int64_t dilated = (size - 1) * (pad.interior.back() + 1) + 1;
    pad.low.push_back(m.r.Between(-(dilated / 2), 2));
    pad.high.push_back(m.r.Between(-(dilated / 2), 2));
  }
  Instr* x = m.Array(dims);
  return {m.b.Pad(x, m.Scalar(), pad), {0, 1}};
}

// Random attributes that gather and scatter share, in the names of gather.
struct RandomIndexing {
  Dims array, slice_sizes, collapsed, batching, index_batching, index_map, indices;
  int64_t vector_dim = 0;
  Dims blocks, offset_dims;  // sizes and dimensions of one block in the result (or updates)
  Dims result;

  explicit RandomIndexing(RandomNumbers& r) {
    array = r.Sizes(r.Rank(1, 3));
    if (array.size() > 1 && r.Chance(2)) batching = r.Some(1, array.size());
    Dims others, batch = r.Sizes(r.Rank(batching.size(), 2), 3);
    for (size_t d = 0; d < array.size(); ++d)
      if (!IsAmong(batching, d)) others.push_back(static_cast<int64_t>(d));
    Dims chosen = r.Some(r.Rank(1, others.size()), others.size(), false);
    for (int64_t i : chosen) index_map.push_back(others[static_cast<size_t>(i)]);
    for (size_t d = 0; d < array.size(); ++d) {
      bool is_batching = IsAmong(batching, d), is_dropped = is_batching || r.Chance(3);
      slice_sizes.push_back(is_dropped ? 1 : r.Between(1, array[d]));
      if (is_dropped && !is_batching) collapsed.push_back(static_cast<int64_t>(d));
      if (!is_dropped) blocks.push_back(slice_sizes.back());
    }
    size_t batching_dim = batching.empty() ? 0 : r.Rank(0, batch.size() - 1);
    if (!batching.empty()) batch[batching_dim] = array[static_cast<size_t>(batching[0])];
    bool is_implicit = index_map.size() == 1 && r.Chance(2);
    vector_dim = is_implicit ? static_cast<int64_t>(batch.size())
                             : r.Between(0, static_cast<int64_t>(batch.size()));
    indices = batch;
    if (!is_implicit)
      indices.insert(indices.begin() + vector_dim, static_cast<int64_t>(index_map.size()));
    if (!batching.empty()) {
      auto dim = static_cast<int64_t>(batching_dim);
      index_batching.push_back(dim >= vector_dim ? dim + 1 : dim);
    }
    offset_dims = r.Some(blocks.size(), blocks.size() + batch.size());
    for (size_t d = 0, block = 0, other = 0; d < blocks.size() + batch.size(); ++d)
      result.push_back(IsAmong(offset_dims, d) ? blocks[block++] : batch[other++]);
  }
};

Case MakeGather(CaseMaker& m) {
  RandomIndexing how(m.r);
  Instr* x = m.Array(how.array);
  GatherAttrs attrs{.offset_dims = how.offset_dims,
                    .collapsed_slice_dims = how.collapsed,
                    .operand_batching_dims = how.batching,
                    .start_indices_batching_dims = how.index_batching,
                    .start_index_map = how.index_map,
                    .index_vector_dim = how.vector_dim,
                    .slice_sizes = how.slice_sizes};
  return {m.b.Gather(x, m.Indices(how.indices), attrs), {0}};
}

Case MakeTorchIndexSelect(CaseMaker& m) {
  Dims from = m.r.Sizes(m.r.Rank(1, 3));
  size_t along = m.r.Rank(0, from.size() - 1), batch = m.r.Rank(0, along);
  Dims indices(from.begin(), from.begin() + static_cast<int64_t>(batch));
  for (int64_t size : m.r.Sizes(m.r.Rank(0, 2), 3)) indices.push_back(size);
  Dims dims(from.begin(), from.begin() + static_cast<int64_t>(along));
  dims.insert(dims.end(), indices.begin() + static_cast<int64_t>(batch), indices.end());
  dims.insert(dims.end(), from.begin() + static_cast<int64_t>(along) + 1, from.end());
  TorchIndexSelectAttrs attrs{static_cast<int64_t>(along), static_cast<int64_t>(batch)};
  Instr* x = m.Array(from);
  return {m.b.Append(Op::kTorchIndexSelect, {x, m.Indices(indices)}, attrs,
                     {.shape = Shape::Array(kData, dims)}),
          {0}};
}

Case MakeScatter(CaseMaker& m) {
  RandomIndexing how(m.r);
  Instr *x = m.Array(how.array), *indices = m.Indices(how.indices);
  ScatterAttrs attrs{.update_window_dims = how.offset_dims,
                     .inserted_window_dims = how.collapsed,
                     .input_batching_dims = how.batching,
                     .scatter_indices_batching_dims = how.index_batching,
                     .scatter_dims_to_operand_dims = how.index_map,
                     .index_vector_dim = how.vector_dim};
  return {m.b.Scatter({x}, indices, {m.Array(how.result)}, attrs, m.Sum()), {0, 2}};
}

Case MakeReduce(CaseMaker& m) {
  Dims dims = m.r.Sizes(m.r.Rank(1, 4));
  Instr* x = m.Array(dims);
  Dims reduced = m.r.Some(m.r.Rank(0, dims.size()), dims.size());
  return {m.b.Reduce({x}, {m.Scalar()}, reduced, m.Sum()), {0, 1}};
}

// A window with at least one position.
WindowDim RandomWindow(RandomNumbers& r, int64_t input, int64_t size) {
  for (;;) {
    WindowDim window{.size = size,
                     .stride = r.Between(1, 3),
                     .pad_low = r.Between(-1, 3),
                     .pad_high = r.Between(-1, 3),
                     .base_dilation = r.Between(1, 3),
                     .window_dilation = r.Between(1, 2)};
    if (WindowedSize(window, input) > 0) return window;
  }
}

Case MakeReduceWindow(CaseMaker& m) {
  Dims dims = m.r.Sizes(m.r.Rank(1, 3));
  Window window;
  for (int64_t size : dims) window.push_back(RandomWindow(m.r, size, m.r.Between(1, 3)));
  Instr* x = m.Array(dims);
  return {m.b.ReduceWindow({x}, {m.Scalar()}, window, m.Sum()), {0, 1}};
}

// Windows select their greatest element.
Case MakeSelectAndScatter(CaseMaker& m) {
  Dims dims = m.r.Sizes(m.r.Rank(1, 3)), windows;
  Window window;
  for (int64_t size : dims) {
    WindowDim dim;
    do {
      dim = RandomWindow(m.r, size, m.r.Between(1, 3));
      dim.base_dilation = dim.window_dilation = 1;
    } while (WindowedSize(dim, size) <= 0);
    window.push_back(m.r.Chance(3) ? WindowDim{.size = 1} : dim);
    windows.push_back(WindowedSize(window.back(), size));
  }
  Builder body(m.module(), "greatest");
  Instr* a = body.Parameter(Shape::Scalar(kData));
  Instr* c = body.Parameter(Shape::Scalar(kData));
  Computation* greatest = body.FinishValid(body.Compare(a, c, CompareDirection::kGe));
  Instr *x = m.Array(dims), *source = m.Array(windows), *zero = m.Scalar();
  return {m.b.Append(Op::kSelectAndScatter, {x, source, zero}, WindowAttrs{window},
                     {.called = {greatest, m.Sum()}}),
          {1, 2}};
}

// Adds whole slices to a carry; every element of an output is the carry so far.
Case MakeScan(CaseMaker& m) {
  Dims dims = m.r.Sizes(m.r.Rank(1, 3)), slice = dims;
  int64_t along = m.r.Below(static_cast<int64_t>(dims.size()));
  slice.erase(slice.begin() + along);
  Computation* sum = m.Sum();
  Builder body(m.module(), "step");
  Instr* part = body.Parameter(Shape::Array(kData, slice));
  Instr* carry = body.Parameter(Shape::Scalar(kData));
  Dims all(slice.size());
  std::iota(all.begin(), all.end(), int64_t{0});
  Instr* next = body.Reduce({part}, {carry}, all, sum);
  Computation* step = body.FinishValid(body.Tuple({body.Broadcast(next, slice, {}), next}));
  Instr* x = m.Array(dims);
  ScanAttrs attrs;
  attrs.dimension = along;
  attrs.num_carries = 1;
  attrs.is_reverse = m.r.Chance(2);
  Shape shape = Shape::Tuple({Shape::Array(kData, dims), Shape::Scalar(kData)});
  return {m.b.Append(Op::kScan, {x, m.Scalar()}, attrs, {.shape = shape, .called = {step}}),
          {0, 1}};
}

Case MakeDot(CaseMaker& m) {
  size_t batch = m.r.Rank(0, 1), contracting = m.r.Rank(0, 2);
  Dims common = m.r.Sizes(batch + contracting, 3), dims[2], order[2];
  for (size_t side : {0, 1}) {
    size_t rank = common.size() + m.r.Rank(0, 2);
    order[side] = m.r.Some(rank, rank, false);  // batch, contracting, then free dimensions
    dims[side] = m.r.Sizes(rank, 3);
    for (size_t i = 0; i < common.size(); ++i)
      dims[side][static_cast<size_t>(order[side][i])] = common[i];
  }
  auto part = [&](size_t side, size_t first, size_t count) {
    auto begin = order[side].begin() + static_cast<int64_t>(first);
    return Dims(begin, begin + static_cast<int64_t>(count));
  };
  DotAttrs attrs;
  attrs.lhs_batch = part(0, 0, batch);
  attrs.rhs_batch = part(1, 0, batch);
  attrs.lhs_contracting = part(0, batch, contracting);
  attrs.rhs_contracting = part(1, batch, contracting);
  Instr* lhs = m.Array(dims[0]);
  return {m.b.Dot(lhs, m.Array(dims[1]), attrs), {0, 1}};
}

Case MakeConvolution(CaseMaker& m) {
  size_t space = m.r.Rank(0, 2), rank = space + 2;
  ConvolutionAttrs attrs;
  int64_t groups = m.r.Between(1, 2);
  (m.r.Chance(2) ? attrs.feature_group_count : attrs.batch_group_count) = groups;
  Dims input(rank), kernel(rank), order[3];
  for (Dims& one : order) one = m.r.Some(rank, rank, false);
  ConvDims& dims = attrs.dims;
  dims.input_batch = order[0][0];
  dims.input_feature = order[0][1];
  dims.kernel_input = order[1][0];
  dims.kernel_output = order[1][1];
  dims.output_batch = order[2][0];
  dims.output_feature = order[2][1];
  auto set = [](Dims& sizes, int64_t d, int64_t size) { sizes[static_cast<size_t>(d)] = size; };
  int64_t channels = m.r.Between(1, 2);
  set(input, dims.input_batch, m.r.Between(1, 2) * attrs.batch_group_count);
  set(input, dims.input_feature, channels * attrs.feature_group_count);
  set(kernel, dims.kernel_input, channels);
  set(kernel, dims.kernel_output, m.r.Between(1, 2) * groups);
  for (size_t i = 0; i < space; ++i) {
    dims.input_spatial.push_back(order[0][i + 2]);
    dims.kernel_spatial.push_back(order[1][i + 2]);
    dims.output_spatial.push_back(order[2][i + 2]);
    int64_t size = m.r.Between(1, 4), taps = m.r.Between(1, 3);
    set(input, dims.input_spatial[i], size);
    set(kernel, dims.kernel_spatial[i], taps);
    attrs.window.push_back(RandomWindow(m.r, size, taps));
    attrs.window.back().reversed = m.r.Chance(2);
  }
  Instr* lhs = m.Array(input);
  return {m.b.Convolution(lhs, m.Array(kernel), attrs), {0, 1}};
}

// ---- what one element of a result must be

using Expectation = uint64_t (*)(const EvaluatedInstr& of, const Case& one, size_t result,
                                 const Dims& at);

uint64_t NumberAt(const EvaluatedInstr& of, size_t operand, int64_t element) {
  return of.operands[operand].Data<uint64_t>()[static_cast<size_t>(element)];
}

// The sum of all elements read.
uint64_t SumOfReads(const EvaluatedInstr& of, const Case& one, size_t result, const Dims& at) {
  uint64_t sum = 0;
  for (size_t operand : one.moved) {
    IndexMap map = *IndexMapOf(*of.instr, operand, result);
    for (const Dims& variables : AssignmentsAt(map, at))
      if (std::optional<int64_t> read = ReadAt(of, operand, map, variables))
        sum += NumberAt(of, operand, *read);
  }
  return sum;
}

// The first operand that has an element there: a pad reads the padding elsewhere.
uint64_t FirstRead(const EvaluatedInstr& of, const Case& one, size_t result, const Dims& at) {
  for (size_t operand : one.moved) {
    IndexMap map = *IndexMapOf(*of.instr, operand, result);
    if (std::optional<int64_t> read = ReadAt(of, operand, map, at))
      return NumberAt(of, operand, *read);
  }
  return 0;
}

// The sum of the products of elements that two operands read at one assignment.
uint64_t SumOfProducts(const EvaluatedInstr& of, const Case&, size_t result, const Dims& at) {
  uint64_t sum = 0;
  IndexMap lhs = *IndexMapOf(*of.instr, 0, result), rhs = *IndexMapOf(*of.instr, 1, result);
  for (const Dims& variables : AssignmentsAt(lhs, at)) {
    std::optional<int64_t> x = ReadAt(of, 0, lhs, variables), y = ReadAt(of, 1, rhs, variables);
    if (x && y) sum += NumberAt(of, 0, *x) * NumberAt(of, 1, *y);
  }
  return sum;
}

struct OpCases {
  const char* name;  // of the op
  Case (*make)(CaseMaker&);
  Expectation expected;
};
constexpr OpCases kOps[] = {
    {"add", MakeAdd, SumOfReads},
    {"copy", MakeCopy, SumOfReads},
    {"opt-barrier", MakeOptimizationBarrier, SumOfReads},
    {"broadcast", MakeBroadcast, SumOfReads},
    {"reshape", MakeReshape, SumOfReads},
    {"bitcast", MakeBitcast, SumOfReads},
    {"transpose", MakeTranspose, SumOfReads},
    {"reverse", MakeReverse, SumOfReads},
    {"slice", MakeSlice, SumOfReads},
    {"dynamic-slice", MakeDynamicSlice, SumOfReads},
    {"dynamic-update-slice", MakeDynamicUpdateSlice, SumOfReads},
    {"concatenate", MakeConcatenate, SumOfReads},
    {"pad", MakePad, FirstRead},
    {"gather", MakeGather, SumOfReads},
    {"torch-index-select", MakeTorchIndexSelect, SumOfReads},
    {"reduce", MakeReduce, SumOfReads},
    {"reduce-window", MakeReduceWindow, SumOfReads},
    {"select-and-scatter", MakeSelectAndScatter, SumOfReads},
    {"scatter", MakeScatter, SumOfReads},
    {"scan", MakeScan, SumOfReads},
    {"dot", MakeDot, SumOfProducts},
    {"convolution", MakeConvolution, SumOfProducts},
};

// Whether every read along one dimension of an operand is in the block of the factor's index: a
// device that has one block of each needs no other.
bool ReadsOwnBlocks(const EvaluatedInstr& of, const IndexMap& map, const DimFactor& factor,
                    const FlowDim& flow, const Dims& variables) {
  std::optional<int64_t> read = ReadAt(of, flow.operand, map, variables);
  if (!read) return true;
  const Dims& dims = of.operands[flow.operand].dims();
  int64_t index = *read;
  for (size_t d = dims.size(); --d > flow.dim;) index /= dims[d];
  index %= dims[flow.dim];
  auto has_name = [&](const Extent& extent) {
    return extent.array == factor.extent.array && extent.part == factor.extent.part &&
           extent.dim == factor.extent.dim;
  };
  auto variable = std::find_if(map.variables.begin(), map.variables.end(), has_name);
  int64_t blocks = std::gcd(variable->size, dims[flow.dim]);
  int64_t own = variables[static_cast<size_t>(variable - map.variables.begin())];
  return own / (variable->size / blocks) == index / (dims[flow.dim] / blocks);
}

std::string DifferenceOfFlow(const EvaluatedInstr& of, size_t result, const Dims& at) {
  for (const DimFactor& factor : DimensionFlow(*of.instr, result)) {
    for (const FlowDim& flow : factor.operand_dims) {
      IndexMap map = *IndexMapOf(*of.instr, flow.operand, result);
      for (const Dims& variables : AssignmentsAt(map, at))
        if (!ReadsOwnBlocks(of, map, factor, flow, variables))
          return fmt::format("operand {}, dimension {}: another block is read", flow.operand,
                             flow.dim);
    }
  }
  return "";
}

// Compares all elements of all results; an empty text if they agree.
std::string Difference(const OpCases& op, CaseMaker& maker) {
  Case one = op.make(maker);
  if (one.instr == nullptr) return "the case is invalid: " + maker.b.error()->message;
  EvaluatedInstr of = maker.Evaluated(*one.instr);
  Result<Value> value = EvaluateInstr(*one.instr, of.operands);
  if (!value.ok()) return "it does not run: " + value.error().message;
  bool is_tuple = value.value().shape().IsTuple();
  for (size_t r = 0; r < (is_tuple ? value.value().elements().size() : 1); ++r) {
    const Value& result = is_tuple ? value.value().elements()[r] : value.value();
    if (result.ElementCount() == 0) continue;
    Dims at(result.dims().size(), 0);
    do {
      uint64_t want = op.expected(of, one, r, at);
      uint64_t got = result.Data<uint64_t>()[static_cast<size_t>(LinearOf(at, result.dims()))];
      if (want != got)
        return fmt::format("result {}, element {}: the elements that the map reads give {}, not {}",
                           r, LinearOf(at, result.dims()), want, got);
      std::string flow = DifferenceOfFlow(of, r, at);
      if (!flow.empty()) return flow;
    } while (NextOf(at, result.dims()));
  }
  return "";
}

// ---- ops whose elements are not sums of elements

std::string DifferenceOfIota(RandomNumbers& r) {
  Module module("m");
  Builder b(module, "main");
  Dims dims = r.Sizes(r.Rank(1, 3));
  Instr* iota = b.Iota(Shape::Array(kData, dims), r.Below(static_cast<int64_t>(dims.size())));
  IndexMap map = *IndexMapOf(*iota, 0);
  Value value = EvaluateInstr(*iota, {}).value();
  Dims at(dims.size(), 0);
  do {
    const IndexTerm& term = map.TermsOf(map.dims[0])[0];
    auto want = static_cast<uint64_t>(term.coefficient * at[term.variable] + map.dims[0].offset);
    if (value.Data<uint64_t>()[static_cast<size_t>(LinearOf(at, dims))] != want)
      return "an iota is not its index";
  } while (NextOf(at, dims));
  return "";
}

// A narrow element is a half of the wide element read; a wide one consists of the two narrow ones.
std::string DifferenceOfBitcast(RandomNumbers& r) {
  CaseMaker maker(r);
  Dims dims = r.Sizes(r.Rank(0, 2)), halves = dims;
  halves.push_back(2);
  Shape wide = Shape::Array(ElementType::kU32, dims),
        narrow = Shape::Array(ElementType::kU16, halves);
  bool widens = r.Chance(2);
  Instr* x = maker.b.Parameter(widens ? narrow : wide);
  Instr* y = maker.b.BitcastConvert(x, widens ? wide : narrow);
  EvaluatedInstr of = maker.Evaluated(*y);
  IndexMap map = *IndexMapOf(*y, 0);
  Value value = EvaluateInstr(*y, of.operands).value();
  Dims at(value.dims().size(), 0);
  do {
    uint64_t want = 0, shift = 0;
    for (const Dims& variables : AssignmentsAt(map, at)) {
      want |= NumberAt(of, 0, *ReadAt(of, 0, map, variables)) << shift;
      shift += 16;
    }
    if (!widens) want = want >> (16 * at.back()) & 0xffff;
    if (value.Data<uint64_t>()[static_cast<size_t>(LinearOf(at, value.dims()))] != want)
      return "a bitcast-convert reads other elements";
  } while (NextOf(at, value.dims()));
  return "";
}

// Along one dimension an element may come from any index, along the others from its own.
bool PermutesOnlyAlong(const Instr& instr, size_t along, size_t result) {
  IndexMap map = *IndexMapOf(instr, 0, result);
  const Dims& dims = instr.operand(0)->shape().dims();
  for (size_t d = 0; d < dims.size(); ++d) {
    bool permutes = map.dims[d].start.kind == RunTimeStart::Kind::kPermutation;
    if (permutes != (d == along) || (!permutes && map.SameDim(d, dims[d]) != d)) return false;
  }
  return true;
}

std::string DifferenceOfSort(RandomNumbers& r) {
  CaseMaker maker(r);
  Dims dims = r.Sizes(r.Rank(1, 3));
  auto along = static_cast<size_t>(r.Below(static_cast<int64_t>(dims.size())));
  Builder body(maker.module(), "less");
  Instr* a = body.Parameter(Shape::Scalar(kData));
  Instr* c = body.Parameter(Shape::Scalar(kData));
  Computation* less = body.FinishValid(body.Compare(a, c, CompareDirection::kLt));
  Instr* sort = maker.b.Sort({maker.Array(dims)}, static_cast<int64_t>(along), true, less);
  return PermutesOnlyAlong(*sort, along, 0) ? "" : "a sort permutes another dimension";
}

// The second result says which index of the last dimension was read.
std::string DifferenceOfTopK(RandomNumbers& r) {
  CaseMaker maker(r);
  Dims dims = r.Sizes(r.Rank(1, 3));
  Instr* top = maker.b.Append(Op::kTopK, {maker.Array(dims)},
                              TopKAttrs{.k = r.Between(1, dims.back()), .largest = r.Chance(2)});
  if (!PermutesOnlyAlong(*top, dims.size() - 1, 0) || !PermutesOnlyAlong(*top, dims.size() - 1, 1))
    return "a topk permutes another dimension";
  EvaluatedInstr of = maker.Evaluated(*top);
  Value value = EvaluateInstr(*top, of.operands).value();
  const Value &found = value.elements()[0], &indices = value.elements()[1];
  IndexMap map = *IndexMapOf(*top, 0);
  for (IndexExpr& expr : map.dims) expr.start = {};
  Dims at(dims.size(), 0);
  do {
    int64_t element = LinearOf(at, found.dims());
    Dims from = at;
    from.back() = indices.IntAt(element);
    if (found.Data<uint64_t>()[static_cast<size_t>(element)] !=
        NumberAt(of, 0, *ReadAt(of, 0, map, from)))
      return "a topk reads another line";
  } while (NextOf(at, found.dims()));
  return "";
}

struct OwnCheck {
  const char* name;  // of the op
  std::string (*difference)(RandomNumbers& r);
};
constexpr OwnCheck kOwnChecks[] = {
    {"iota", DifferenceOfIota},
    {"bitcast-convert", DifferenceOfBitcast},
    {"sort", DifferenceOfSort},
    {"topk", DifferenceOfTopK},
};

// Whether random instructions of the op, or of another elementwise op, are compared.
bool IsCompared(const OpInfo& info) {
  auto names = [&](const auto& one) { return info.name == one.name; };
  return info.Is(kElementwise) || std::any_of(std::begin(kOps), std::end(kOps), names) ||
         std::any_of(std::begin(kOwnChecks), std::end(kOwnChecks), names);
}

struct Options {
  uint64_t seed = 1;
  int64_t cases = 200;
};

int Run(const Options& options) {
  int64_t cases = 0, failures = 0;
  auto check = [&](const char* name, int64_t i, const std::string& difference) {
    ++cases;
    if (difference.empty()) return;
    ++failures;
    fmt::print("{}, case {}: {}\n", name, i, difference);
  };
  RandomNumbers random(options.seed);
  for (int64_t i = 0; i < options.cases; ++i) {
    for (const OpCases& op : kOps) {
      CaseMaker maker(random);
      check(op.name, i, Difference(op, maker));
    }
    for (const OwnCheck& op : kOwnChecks) check(op.name, i, op.difference(random));
  }
  for (const OpInfo& info : AllOps()) {
    if (!HasIndexMap(info.op) || IsCompared(info)) continue;
    ++failures;
    fmt::print("{}: it has an index map, but no random instruction here\n", info.name);
  }
  fmt::print("index maps: {} cases, {} failures\n", cases, failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tokamak

int main(int argc, char** argv) {
  tokamak::Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--seed") == 0) options.seed = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--cases") == 0)
      options.cases = std::strtoll(argv[i + 1], nullptr, 10);
  }
  return tokamak::Run(options);
}
