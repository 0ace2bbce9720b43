// Splits long reductions with few results, so that many threads (CPU) or thread blocks (GPU) have
// work. One reduction becomes two: over parts, then over the partial results.
//
//   reduce [n] over 0   ->   reshape [P, n/P], reduce over 1, reduce [P] over 0
//
// Parts come from a side: adjacent reduced dimensions that are contiguous and split as one (a
// single dimension on a CPU). If P does not divide the length, a GPU slices P equal parts and a
// remainder, which is one more partial result. On a GPU, a reduction over rows and earlier
// dimensions first reduces the rows in a kernel with coalesced loads.
//
// P depends on the shape and the machine only, never on the run: the reduction tree, and so the
// rounding, is reproducible. Partial results start from the neutral element, and the last
// reduction from the program's initial value, which is therefore combined once. Only an
// arg-reduction repeats its initial value, which is idempotent. On a GPU, sums of bf16 and f16 are
// split as sums of f32.

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "gen/reducer.h"
#include "passes/passes.h"
#include "passes/target/split_sizes.h"
#include "rewrite/edit_computations.h"
#include "rewrite/editor.h"

namespace tokamak {
namespace {

// CPU limits. kReductionLong: input elements. Chosen: as kMinParallelWork, worth several threads
// (also on GPUs). kManyResults, kManyColumns: results from which no split is needed, for rows and
// for columns. Chosen: all threads have several rows, or several runs of adjacent columns.
// kReductionMaxSplits: parts per result. Chosen: several for each core of a CPU.
constexpr int64_t kReductionLong = 1 << 17, kManyResults = 256, kManyColumns = 16384,
                  kReductionMaxSplits = 64;
// Minimum number of columns that are read together. Chosen: two cache lines of f32.
constexpr int64_t kWideColumns = 32;
// Minimum elements per part of a result. Chosen: with fewer, storing and adding the parts costs
// more than a tenth of reading the input.
constexpr int64_t kReductionMinSplit = 16;
// GPU limits. kGpuBlocks: blocks per SM. Chosen: they hide each other's latency. kGpuSplitLength:
// elements per part and block. Chosen: with fewer, its launch and barriers outweigh its loads.
// kGpuResults: results per block if they are contiguous. Chosen: the threads of a warp.
constexpr int64_t kGpuBlocks = 4, kGpuSplitLength = 4096, kGpuResults = 32;
// For a block that reads whole rows: parts per SM. Chosen: one block loads while the other
// computes. Minimum rows per part. Chosen: the partial sums are then at most 1/16 of the input.
constexpr int64_t kGpuSplitsPerSm = 2, kGpuRows = 16;
// Input elements from which reducing the rows first, in a separate kernel, pays. Chosen: below it,
// the second launch costs more than strided accesses.
constexpr int64_t kGpuRowsFirst = 1 << 14;
// Uneven parts, GPU only: used if they allow at least kTimesMore times as many parts. Chosen: else
// even parts use the SMs nearly as well, without a kernel for the rest. Rows must be longer than a
// block can keep (kReductionLongRow elements). Part sizes are multiples of kReductionUnit elements
// for vector loads. They gain nothing on CPUs (measured: summing 16,777,259 elements takes 6.5 ms
// on two cores either way).
constexpr int64_t kTimesMore = 4, kReductionLongRow = 1 << 17, kReductionUnit = 16;

// Parts of a split reduction, and elements of a part, at least. Chosen: with fewer, the gain is
// less than the second kernel costs.
constexpr int64_t kMinSplits = 4, kMinSplitElements = 1024;

// The largest even split of `length` into at most `most` parts.
SplitSizes EvenSplit(int64_t length, int64_t most) {
  for (int64_t splits = most; splits >= kMinSplits; --splits)
    if (length % splits == 0) return {splits, length / splits, 0};
  return {1, length, 0};
}

// An uneven split if an even one would have far fewer parts (a prime length has none).
SplitSizes SplitLength(int64_t length, int64_t most, bool in_rows) {
  SplitSizes even = EvenSplit(length, most);
  int64_t unit = in_rows ? kReductionUnit : 1, size = length / most / unit * unit;
  if (even.count * kTimesMore > most || size == 0) return even;
  return {most, size, length - most * size};
}

// Adjacent dimensions of a reduce's input that are all reduced; they are split as one.
struct Side {
  size_t begin = 0, end = 0;
  int64_t length = 1;
};

// Replaces one reduction by two: over parts, and over the partial results.
class Halver {
 public:
  Halver(Instr& reduce, const Reducer& reducer)
      : reduce_(reduce), reducer_(reducer), make_(reduce, Editor::Naming::kUnnamed) {}

  // Parts start from the neutral element. An arg-reduction (pick) starts each part from its own
  // initial value, which is harmless.
  bool CanBegin() const {
    for (size_t i = 0; i < reducer_.ops.size(); ++i)
      if (!NeutralLiteral(reducer_.ops[i], reducer_.type(i))) return false;
    return reducer_.arg_reduction != ArgReduction::kNone || !reducer_.ops.empty();
  }

  // Splits the dimensions of a side into parts.
  void Split(const Side& side, const SplitSizes& splits) {
    std::vector<Instr*> partial = PartialOf(side, 0, splits.count, splits.size);
    if (splits.rest > 0) {
      std::vector<Instr*> last = PartialOf(side, splits.count * splits.size, 1, splits.rest);
      for (size_t i = 0; i < partial.size(); ++i) partial[i] = Joined({partial[i], last[i]});
    }
    Finish(std::move(partial), {along_});
  }

  // Reduces the dimensions of a side first.
  void ReduceFirst(const Side& side) {
    Dims first, rest;
    for (int64_t d : reducer_.reduced_dims) {
      auto at = static_cast<size_t>(d);
      (at >= side.begin && at < side.end ? first : rest).push_back(d);
    }
    for (int64_t& d : rest)
      if (d >= static_cast<int64_t>(side.end)) d -= static_cast<int64_t>(first.size());
    std::vector<Instr*> inputs;
    for (size_t i = 0; i < reducer_.input_count; ++i) inputs.push_back(reduce_.operand(i));
    Finish(Reduced(inputs, first), rest);
  }

  Instr* partial() const { return partial_; }
  Instr* whole() const { return whole_; }

 private:
  // The elements of an operand that belong to `count` parts of `size` of a side, starting at
  // `begin`.
  Instr* Cut(Instr* x, const Side& side, int64_t begin, int64_t count, int64_t size) {
    Dims dims = x->shape().dims();
    auto first = dims.begin() + static_cast<int64_t>(side.begin);
    auto reshape = [&] {
      if (x->shape().dims() == dims) return;
      x = make_.Make(Op::kReshape, Shape::Array(x->shape().type(), dims), {x});
    };
    if (count * size < side.length) {
      dims.erase(first + 1, dims.begin() + static_cast<int64_t>(side.end));
      dims[side.begin] = side.length;
      reshape();
      SliceAttrs slice{Dims(dims.size(), 0), dims, Dims(dims.size(), 1)};
      slice.starts[side.begin] = begin;
      slice.limits[side.begin] = begin + count * size;
      dims[side.begin] = count * size;
      x = make_.Make(Op::kSlice, Shape::Array(x->shape().type(), dims), {x}, slice);
      first = dims.begin() + static_cast<int64_t>(side.begin);
    } else {
      dims.erase(first + 1, dims.begin() + static_cast<int64_t>(side.end));
    }
    *first = count;
    dims.insert(first + 1, size);
    reshape();
    return x;
  }

  // The partial results of `count` parts of a side; the parts are one dimension of them (`along_`).
  std::vector<Instr*> PartialOf(const Side& side, int64_t begin, int64_t count, int64_t size) {
    std::vector<Instr*> cut;
    for (size_t i = 0; i < reducer_.input_count; ++i)
      cut.push_back(Cut(reduce_.operand(i), side, begin, count, size));
    auto gone = static_cast<int64_t>(side.end - side.begin), at = static_cast<int64_t>(side.begin);
    Dims reduced_count;
    for (int64_t d : reducer_.reduced_dims)
      if (d < at) reduced_count.push_back(d);
    along_ = at - static_cast<int64_t>(reduced_count.size());
    reduced_count.push_back(at + 1);
    for (int64_t d : reducer_.reduced_dims)
      if (d >= at + gone) reduced_count.push_back(d - gone + 2);
    return Reduced(cut, reduced_count);
  }

  Instr* Joined(std::vector<Instr*> concat_operands) {
    Dims dims = concat_operands[0]->shape().dims();
    auto along = static_cast<size_t>(along_);
    dims[along] += concat_operands[1]->shape().dim(along);
    Shape shape = Shape::Array(concat_operands[0]->shape().type(), dims);
    return make_.Make(Op::kConcatenate, shape, std::move(concat_operands), DimensionAttrs{along_});
  }

  // Reduces the reshaped `inputs` over these dimensions and returns the resulting arrays.
  std::vector<Instr*> Reduced(const std::vector<Instr*>& inputs, const Dims& reduced_count) {
    std::vector<Shape> shapes;
    std::vector<Instr*> operands = inputs, results;
    for (const Instr* input : inputs) {
      Dims kept;
      for (size_t d = 0; d < input->shape().dims().size(); ++d)
        if (!std::binary_search(reduced_count.begin(), reduced_count.end(),
                                static_cast<int64_t>(d)))
          kept.push_back(input->shape().dim(d));
      shapes.push_back(Shape::Array(input->shape().type(), kept));
    }
    for (size_t i = 0; i < inputs.size(); ++i)
      operands.push_back(reducer_.arg_reduction != ArgReduction::kNone
                             ? reduce_.operand(inputs.size() + i)
                             : make_.Constant(*NeutralLiteral(reducer_.ops[i], reducer_.type(i))));
    bool one = inputs.size() == 1;
    Instr* partial =
        make_.Make(Op::kReduce, one ? shapes[0] : Shape::Tuple(shapes), std::move(operands),
                   DimensionsAttrs{reduced_count}, reduce_.called(0));
    partial->set_name(reduce_.name() + ".parts");
    if (partial_ == nullptr) partial_ = partial;
    for (size_t i = 0; i < inputs.size(); ++i)
      results.push_back(one ? partial
                            : make_.Make(Op::kGetTupleElement, shapes[i], {partial},
                                         TupleIndexAttrs{static_cast<int64_t>(i)}));
    return results;
  }

  // Reduces dimensions `rest` of the partial results and replaces the original reduction.
  void Finish(std::vector<Instr*> again, const Dims& rest) {
    size_t count = again.size();
    for (size_t i = 0; i < count; ++i) again.push_back(reduce_.operand(count + i));
    whole_ = make_.Make(Op::kReduce, reduce_.shape(), std::move(again), DimensionsAttrs{rest},
                        reduce_.called(0));
    whole_->set_name(reduce_.name());
    make_.Replace(whole_);
  }

  Instr& reduce_;
  const Reducer& reducer_;
  Editor make_;
  int64_t along_ = 0;
  Instr *partial_ = nullptr, *whole_ = nullptr;
};

// Whether a reduction reduces whole rows of `row` elements of an array of `count` elements.
bool ReducesRows(const Instr& instr, int64_t count, int64_t row) {
  if (instr.op() != Op::kReduce) return false;
  Reducer reducer = ReducerOf(instr);
  return !reducer.reduced_dims.empty() &&
         reducer.reduced_dims.back() + 1 == reducer.input().rank() &&
         reducer.input().ElementCount() == count &&
         ResultShapesOf(instr.shape())[0].ElementCount() * row == count;
}

// Whether the rows of the array that a column reduction reads are reduced as well. Considers nearby
// arrays of the same size that are computed from each other, or from one number per row. One kernel
// may then read the rows for both reductions.
bool RowsAreReducedToo(const Instr& reduce, int64_t row) {
  // Instructions visited. Chosen: bounds the search.
  constexpr size_t kMaxSearched = 64;
  int64_t count = reduce.operand(0)->shape().ElementCount();
  std::unordered_set<const Instr*> seen;
  std::vector<const Instr*> open = {reduce.operand(0)};
  auto meet = [&](const Instr* instr) {
    if (!instr->shape().IsArray() || seen.size() >= kMaxSearched) return;
    int64_t own = instr->shape().ElementCount();
    if ((own == count || own * row == count) && seen.insert(instr).second) open.push_back(instr);
  };
  auto computes = [](const Instr& instr) {
    return instr.info().Is(kElementwise) || instr.op() == Op::kReshape ||
           instr.op() == Op::kBroadcast;
  };
  while (!open.empty()) {
    const Instr& instr = *open.back();
    open.pop_back();
    if (ReducesRows(instr, count, row)) return true;
    if (computes(instr))
      for (const Instr* operand : instr.operands()) meet(operand);
    for (const Instr* user : instr.users()) {
      if (ReducesRows(*user, count, row)) return true;
      if (computes(*user)) meet(user);
    }
  }
  return false;
}

// Whether the input of a reduce is computed elementwise and also stored: the kernel that writes it
// can accumulate its columns.
bool IsStoredToo(const Instr& reduce) {
  const Instr* of = reduce.operand(0);
  while ((of->op() == Op::kConvert || of->op() == Op::kReshape) && of->users().size() == 1)
    of = of->operand(0);
  if (!of->info().Is(kElementwise)) return false;
  return of->parent()->root() == of ||
         std::any_of(of->users().begin(), of->users().end(), [](const Instr* user) {
           return user->op() == Op::kTuple || user->op() == Op::kDot;
         });
}

int64_t WantedOfGpu(int64_t reduced_count, int64_t results, bool in_rows, const Machine& machine) {
  int64_t blocks = in_rows ? results : (results + kGpuResults - 1) / kGpuResults;
  int64_t wanted = (kGpuBlocks * machine.cores + blocks - 1) / blocks;
  int64_t split = in_rows ? kGpuSplitLength : kGpuSplitLength / kGpuResults;
  return std::min(wanted, reduced_count / split);
}

// The desired number of parts per result.
int64_t SplitsWanted(const Reducer& reducer, int64_t results, const Machine& machine) {
  if (!machine.is_gpu()) {
    bool columns = !reducer.kept_dims.empty() &&
                   reducer.kept_dims.back() + 1 == reducer.input().rank() &&
                   reducer.input().dims().back() >= kWideColumns;
    return results >= (columns ? kManyColumns : kManyResults) ? 1 : kReductionMaxSplits;
  }
  bool in_rows = reducer.reduced_dims.back() == reducer.input().rank() - 1;
  int64_t reduced_count = reducer.input().ElementCount() / results;
  if (!in_rows && (RowsAreReducedToo(*reducer.instr, results) || IsStoredToo(*reducer.instr)))
    return std::min(std::max(kGpuSplitsPerSm * machine.cores, kGpuBlocks),
                    reduced_count / kGpuRows);
  return WantedOfGpu(reduced_count, results, in_rows, machine);
}

// The reduced dimensions; on a GPU, adjacent ones are grouped.
std::vector<Side> SidesOf(const Reducer& reducer, const Machine& machine) {
  std::vector<Side> sides;
  for (int64_t dimension : reducer.reduced_dims) {
    auto d = static_cast<size_t>(dimension);
    if (!machine.is_gpu() || sides.empty() || sides.back().end != d) sides.push_back({d, d, 1});
    sides.back().end = d + 1;
    sides.back().length *= reducer.input().dim(d);
  }
  return sides;
}

// GPU only: if rows and also earlier dimensions are reduced, returns the rows, whose reads are
// coalesced. Null if there is no such side.
std::optional<Side> RowsToReduceFirst(const Reducer& reducer, const Machine& machine) {
  if (!machine.is_gpu() || reducer.input().ElementCount() < kGpuRowsFirst) return std::nullopt;
  std::vector<Side> sides = SidesOf(reducer, machine);
  if (sides.size() < 2 || sides.back().end != reducer.input().dims().size()) return std::nullopt;
  return sides.back();
}

// A side that can be split, and how.
std::optional<std::pair<Side, SplitSizes>> FindSplit(const Reducer& reducer,
                                                     const Machine& machine) {
  int64_t count = reducer.input().ElementCount();
  int64_t results = ResultShapesOf(reducer.instr->shape())[0].ElementCount();
  if (count < kReductionLong) return std::nullopt;
  int64_t wanted = SplitsWanted(reducer, results, machine);
  if (wanted <= 1) return std::nullopt;
  // The first reduced side, because its parts are non-contiguous in memory.
  for (const Side& side : SidesOf(reducer, machine)) {
    bool in_rows = side.end == reducer.input().dims().size();
    bool even = !machine.is_gpu() || (in_rows && side.length < kReductionLongRow);
    SplitSizes splits =
        even ? EvenSplit(side.length, wanted) : SplitLength(side.length, wanted, in_rows);
    int64_t each = count / splits.count;
    if (splits.count > 1 && each >= kMinSplitElements && each >= kReductionMinSplit * results)
      return std::pair(side, splits);
  }
  return std::nullopt;
}

// Whether it is a sum of bf16 or f16 on a GPU. Kernels accumulate it in f32.
bool IsNarrowSum(const Reducer& reducer, const Machine& machine) {
  ElementType type = reducer.type(0);
  return machine.is_gpu() && reducer.ops == std::vector{Op::kAdd} &&
         (type == ElementType::kBF16 || type == ElementType::kF16);
}

// Replaces a sum of 16-bit floats by the rounded sum of the same numbers in f32, whose parts can be
// stored without another rounding. Returns the f32 sum, or null.
Instr* WidenSum(Instr& reduce) {
  Editor make(reduce);
  Instr* x = make.Converted(reduce.operand(0), ElementType::kF32);
  Instr* initial = make.Converted(reduce.operand(1), ElementType::kF32);
  Shape shape = reduce.shape().WithType(ElementType::kF32).WithoutLayout();
  Instr* sum = make.Make(Op::kReduce, std::move(shape), {x, initial}, reduce.attrs(),
                         AdditionFor(reduce, ElementType::kF32));
  return make.TryReplace(make.Converted(sum, reduce.shape().type())) ? sum : nullptr;
}

// The recursion ends: each of the two reductions has fewer sides.
bool TrySplitReduction(Instr& reduce, PassContext& context) {
  if (WhyNoReduceKernel(reduce)) return false;
  Reducer reducer = ReducerOf(reduce);
  if (!reducer.can_reassociate || reduce.captures() > 0 || reducer.reduced_dims.empty())
    return false;
  if (IsNarrowSum(reducer, context.machine())) {
    if (!RowsToReduceFirst(reducer, context.machine()) && !FindSplit(reducer, context.machine()))
      return false;
    Instr* wide = HasControlDependencies(reduce) ? nullptr : WidenSum(reduce);
    if (wide != nullptr) TrySplitReduction(*wide, context);
    return wide != nullptr;
  }
  Halver halver(reduce, reducer);
  if (HasControlDependencies(reduce) || !halver.CanBegin()) return false;
  auto record = [&](std::string because) {
    context.Accepted("reduce.split", reduce, nullptr, std::move(because));
  };
  if (std::optional<Side> rows = RowsToReduceFirst(reducer, context.machine())) {
    record("rows of " + std::to_string(rows->length) + " first");
    halver.ReduceFirst(*rows);
    TrySplitReduction(*halver.partial(), context);
    TrySplitReduction(*halver.whole(), context);
    return true;
  }
  auto found = FindSplit(reducer, context.machine());
  if (!found) return false;
  record(std::to_string(found->second.count) +
         (found->second.rest > 0 ? " partitions and a remainder" : " partitions"));
  halver.Split(found->first, found->second);
  return true;
}

}  // namespace

std::optional<Literal> NeutralLiteral(Op op, ElementType type) {
  bool real = type == ElementType::kF32 || type == ElementType::kF64;
  bool integer = IsInteger(type) && InfoOf(type).bits >= 8;
  if (!real && !integer) return std::nullopt;
  double infinity = std::numeric_limits<double>::infinity();
  int bits = InfoOf(type).bits;
  int64_t least = IsSigned(type) ? std::numeric_limits<int64_t>::min() >> (64 - bits) : 0;
  switch (op) {
    case Op::kAdd:
      return real ? Literal::Scalar(type, -0.0) : Literal::ScalarInt(type, 0);
    case Op::kMultiply:
      return Literal::Scalar(type, 1);
    case Op::kMaximum:
      return real ? Literal::Scalar(type, -infinity) : Literal::ScalarInt(type, least);
    case Op::kMinimum:
      return real ? Literal::Scalar(type, infinity) : Literal::ScalarInt(type, ~least);
    case Op::kAnd:
      return Literal::ScalarInt(type, -1);
    case Op::kOr:
    case Op::kXor:
      return Literal::ScalarInt(type, 0);
    default:
      return std::nullopt;
  }
}

SplitSizes SplitRows(int64_t length, int64_t results, const Machine& machine) {
  int64_t wanted = machine.is_gpu() ? WantedOfGpu(length, results, true, machine) : 1;
  return wanted >= kMinSplits ? SplitLength(length, wanted, true) : SplitSizes{1, length, 0};
}

// Record reduce.split. Floating-point sums are rounded in a different order.
Result<Changed> SplitReductions(Module& module, PassContext& context) {
  return EditComputations(module, [&](Computation& computation) {
    bool changed = false;
    for (Instr* instr : computation.Instrs())
      if (instr->op() == Op::kReduce && TrySplitReduction(*instr, context)) changed = true;
    return changed;
  });
}

}  // namespace tokamak
