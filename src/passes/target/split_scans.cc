// Prepares scans (prefix sums and other recurrences along a dimension) for parallel execution.
// Three rewrites:
//
//   cumulative window   all elements up to i            ->  scan, O(n) instead of O(n^2)
//   short scan          at most 8 steps in a loop body  ->  unrolled, so that the loop fuses
//   long scan           few rows of many elements       ->  parts (reduce-then-scan):
//
//   x [P, n/P]   totals = reduce(x) over each part      P partial results
//                begins = exclusive scan of totals      P steps
//                y      = scan of each part from its begin, all parts in parallel
//
// This reads x twice and writes y once. Reassociation requires a neutral element, or the semantics
// of a window, which leave the order of combinations open. P depends on the shape and the
// machine only, not on the run.

#include <algorithm>
#include <set>
#include <unordered_map>

#include "analysis/cumulative_window.h"
#include "gen/element.h"
#include "gen/gpu/gpu.h"
#include "gen/reducer.h"
#include "ir/builder.h"
#include "passes/passes.h"
#include "passes/target/split_sizes.h"
#include "rewrite/bodies.h"
#include "rewrite/edit_computations.h"
#include "rewrite/editor.h"
#include "rewrite/loop_edit.h"
#include "support/check.h"

namespace tokamak {
namespace {

// CPU limits. A split scan reads its input twice. Chosen: limits for which threads save more.
// kScanLong: elements worth several threads. kManyRows: rows from which no split is needed.
// kScanMaxSplits: parts of all rows. kScanMinSplit: elements per part. kMinScanSplitLength:
// elements of a part along the scan.
constexpr int64_t kScanLong = 1 << 16, kManyRows = 64, kScanMaxSplits = 256, kScanMinSplit = 1024,
                  kMinScanSplitLength = 16;
// Adjacent rows that one thread scans together. Chosen: some vectors, as the scan generator takes.
constexpr int64_t kRowsOfOne = 32;
// GPU limits. kBlocksPerSmWanted: blocks per SM. Chosen: 8 blocks of 256 threads fill an SM.
// kSplitPerBlock, kSplitPerThread: minimum elements of a part for a block and for a thread. Chosen:
// shorter parts do not repay the second pass over them.
constexpr int64_t kBlocksPerSmWanted = 8, kSplitPerBlock = 4096, kSplitPerThread = 64;
// For cumulative windows with arbitrary combiners. kMostThreads: resident threads per SM (CUDA
// programming guide). kScanLongRow: elements of a row. Chosen: in shorter rows, the passes over the
// parts cost more than the sequential scan.
constexpr int64_t kMostThreads = 2048, kScanLongRow = 1024;

// Scans of at most this many steps are unrolled in a loop body. Chosen: unrolled, they do not
// prevent a whole-loop kernel; the code grows with the steps.
constexpr int64_t kShortScan = 8;

// ---- cumulative windows

// Whether a body computes one number from two of the same type, elementwise.
bool IsPlainBody(const Computation& body, ElementType type) {
  if (body.parameters().size() != 2 || !body.root()->shape().IsArray()) return false;
  for (const Instr* instr : body.PostOrder()) {
    if (!IsPlainArray(instr->shape()) || instr->shape().rank() != 0) return false;
    bool known = instr->op() == Op::kParameter || instr->op() == Op::kConstant ||
                 (instr->info().Is(kElementwise) && instr->op() != Op::kMap &&
                  instr->called().empty() && instr->operand_count() > 0);
    if (!known) return false;
    if (instr->op() == Op::kParameter && instr->shape().type() != type) return false;
  }
  return body.root()->shape().type() == type;
}

// Whether a body is commutative, so that elements may also be combined from the end. For a body of
// several ops this is assumed, as the semantics of a window allow.
bool HasNoOrder(const Computation& body) {
  const Instr* root = body.root();
  size_t parameters = 0, ops = 0;
  for (const Instr* instr : body.PostOrder()) {
    if (instr->op() == Op::kParameter) ++parameters;
    if (instr->info().Is(kElementwise)) ++ops;
  }
  if (parameters != 2 || ops == 0) return false;
  if (ops > 1) return true;
  return IsCommutative(root->op()) && root->operand(0) != root->operand(1);
}

// (element, carry) to (next, next) for arrays. The carry precedes the element in element order; in
// a reverse scan it follows.
Result<Computation*> StepOf(const Instr& window, const Shape& part, bool is_reverse) {
  const Computation& body = *window.called(0);
  Builder b(window, "scan_step");
  Instr* x = b.Parameter(part);
  Instr* carry = b.Parameter(part);
  std::unordered_map<const Instr*, Instr*> made;
  for (const Instr* instr : body.PostOrder()) {
    Shape shape = Shape::Array(instr->shape().type(), part.dims());
    if (instr->op() == Op::kParameter) {
      bool is_first = instr->attrs<ParameterAttrs>().number == 0;
      made[instr] = is_first == is_reverse ? x : carry;
      continue;
    }
    std::vector<Instr*> operands;
    for (const Instr* operand : instr->operands()) operands.push_back(made[operand]);
    bool is_constant = instr->op() == Op::kConstant;
    Instr* value = b.Append(instr->op(), std::move(operands), instr->attrs(),
                            {.shape = is_constant ? instr->shape() : shape});
    if (is_constant && part.rank() > 0) value = b.Broadcast(value, part.dims(), {});
    made[instr] = value;
  }
  Instr* next = made[body.root()];
  return b.Finish(b.Tuple({next, next}));
}

// Sums and similar ops that may be reassociated. Others may be reassociated too, but with unknown
// loss of precision.
bool IsPlainSum(const Computation& body) {
  const Instr* root = body.root();
  if (root->operand_count() != 2 || root->operand(0) == root->operand(1)) return false;
  return root->operand(0)->op() == Op::kParameter && root->operand(1)->op() == Op::kParameter &&
         (root->op() == Op::kAdd || root->op() == Op::kMultiply);
}

class ScanPreparer {
 public:
  explicit ScanPreparer(PassContext& context) : context_(context), machine_(context.machine()) {}

  // The scan combines elements one by one along the dimension, which the semantics of a window
  // allow.
  bool FromWindow(Instr& window) {
    if (window.operand_count() != 2 || window.captures() > 0 || !CanGo(window)) return false;
    const Shape& shape = window.operand(0)->shape();
    if (!IsPlainArray(shape) || !IsPlainArray(window.shape()) || shape.ElementCount() == 0)
      return false;
    if (shape.dims() != window.shape().dims() || shape.type() != window.shape().type())
      return false;
    std::optional<CumulativeWindow> cumulative = CumulativeWindowOf(window);
    if (!cumulative || !IsPlainBody(*window.called(0), shape.type())) return false;
    if (cumulative->is_reverse && !HasNoOrder(*window.called(0))) return false;
    Dims dims = shape.dims();
    dims.erase(dims.begin() + cumulative->dimension);
    Shape part = Shape::Array(shape.type(), std::move(dims));
    Result<Computation*> step = StepOf(window, part, cumulative->is_reverse);
    if (!step.ok()) return false;
    of_ = &window;
    make_.emplace(window);
    Instr* first = BroadcastTo(window.operand(1), part);
    if (int64_t splits = SplitsOfWindow(window, *cumulative); splits > 1)
      return WithSplitDim(window, static_cast<size_t>(cumulative->dimension), splits, first,
                          step.value());
    Instr* scan = Make(Op::kScan, Shape::Tuple({Plain(shape), part}), {window.operand(0), first},
                       ScanAttrs{.dimension = cumulative->dimension,
                                 .num_carries = 1,
                                 .is_reverse = cumulative->is_reverse,
                                 .is_associative = IsPlainSum(*window.called(0))},
                       step.value());
    Finish({Make(Op::kGetTupleElement, Plain(shape), {scan}, TupleIndexAttrs{0})},
           "scan.cumulative-window", "");
    return true;
  }

  // ---- short scans in loops

  // Unrolled steps are generated per element, so the loop can become one kernel.
  bool Unroll(Instr& scan) {
    const ScanAttrs& attrs = scan.attrs<ScanAttrs>();
    size_t arrays = scan.operand_count() - static_cast<size_t>(attrs.num_carries);
    auto along = static_cast<size_t>(attrs.dimension);
    const Computation& step = *scan.called(0);
    if (!CanGo(scan) || arrays == 0 || scan.captures() > 0 || !scan.shape().IsTuple() ||
        step.root()->op() != Op::kTuple || step.root()->operand_count() != scan.operand_count())
      return false;
    for (const Shape& part : ResultShapesOf(scan.shape()))
      if (!IsPlainArray(part)) return false;
    int64_t length = scan.operand(0)->shape().dim(along);
    if (length > kShortScan || length < 1) return false;
    of_ = &scan;
    make_.emplace(scan);
    std::vector<Instr*> carried(scan.operands().begin() + static_cast<int64_t>(arrays),
                                scan.operands().end());
    size_t given = step.root()->operand_count() - carried.size();
    std::vector<std::vector<Instr*>> made(given, std::vector<Instr*>(static_cast<size_t>(length)));
    for (int64_t t = 0; t < length; ++t) {
      int64_t at = attrs.is_reverse ? length - 1 - t : t;
      std::vector<Instr*> arguments, pasted;
      for (size_t i = 0; i < arrays; ++i) arguments.push_back(PartAt(scan.operand(i), along, at));
      arguments.insert(arguments.end(), carried.begin(), carried.end());
      Instr* next = PasteBody(step, arguments, *scan.parent(), pasted);
      for (size_t i = 0; i < given; ++i) {
        Dims dims = next->operand(i)->shape().dims();
        dims.insert(dims.begin() + attrs.dimension, 1);
        made[i][static_cast<size_t>(at)] =
            Make(Op::kReshape, Shape::Array(next->operand(i)->shape().type(), dims),
                 {next->operand(i)}, {});
      }
      for (size_t i = 0; i < carried.size(); ++i) carried[i] = next->operand(given + i);
      scan.parent()->Remove(next);
    }
    std::vector<Instr*> values;
    std::vector<Shape> shapes = ResultShapesOf(scan.shape());
    for (size_t i = 0; i < given; ++i)
      values.push_back(length == 1 ? made[i][0]
                                   : Make(Op::kConcatenate, Plain(shapes[i]), made[i],
                                          DimensionAttrs{attrs.dimension}));
    values.insert(values.end(), carried.begin(), carried.end());
    Finish(values, "scan.unroll", std::to_string(length) + " steps of a loop iteration");
    return true;
  }

  Instr* PartAt(Instr* x, size_t along, int64_t at) {
    Dims dims = x->shape().dims(), starts(dims.size()), limits = dims;
    starts[along] = at;
    limits[along] = at + 1;
    dims[along] = 1;
    ElementType type = x->shape().type();
    x = Make(Op::kSlice, Shape::Array(type, dims), {x},
             SliceAttrs{starts, limits, Dims(dims.size(), 1)});
    dims.erase(dims.begin() + static_cast<int64_t>(along));
    return Make(Op::kReshape, Shape::Array(type, dims), {x}, {});
  }

  // ---- long scans

  // Prefers a number of parts that divides the length, down to half of the wanted number; otherwise
  // the last part is padded with the neutral element.
  bool Split(Instr& scan) {
    std::optional<PrefixScan> cumulation = PrefixScanOf(scan);
    if (!cumulation || !CanGo(scan)) return false;
    Scan facts = ScanOf(scan);
    ElementType type = scan.operand(0)->shape().type();
    std::optional<Literal> neutral = NeutralLiteral(cumulation->op, type);
    if (!neutral || !cumulation->is_inclusive) return false;
    int64_t splits = machine_.is_gpu() ? SplitsOnGpu(facts) : SplitsOnCpu(facts);
    if (splits < 2) return false;
    int64_t length = (facts.length + splits - 1) / splits;
    for (int64_t even = splits; 2 * even > splits; --even) {
      if (facts.length % even != 0) continue;
      length = facts.length / even;
      break;
    }
    splits = (facts.length + length - 1) / length;
    Take(scan, facts, splits, length, *neutral);
    return true;
  }

 private:
  // ---- windows with arbitrary combiners, in parts

  // On a GPU one thread scans a row if the combiner is not a plain op, and its steps depend on each
  // other. With few rows, each row is split into parts for several threads; the semantics of a
  // window allow the reassociation. The number of parts divides the length.
  int64_t SplitsOfWindow(const Instr& window, const CumulativeWindow& cumulative) const {
    const Dims& dims = window.operand(0)->shape().dims();
    int64_t length = dims[static_cast<size_t>(cumulative.dimension)];
    int64_t rows = window.operand(0)->shape().ElementCount() / length;
    if (!machine_.is_gpu() || cumulative.is_reverse || length < kScanLongRow ||
        CommutativeOpOf(*window.called(0)))
      return 1;
    int64_t splits = std::min(machine_.cores * kMostThreads / rows, length / kSplitPerThread);
    while (splits > 1 && length % splits != 0) --splits;
    return splits;
  }

  Instr* BroadcastTo(Instr* scalar, const Shape& shape) {
    if (shape.rank() == 0) return scalar;
    return Make(Op::kBroadcast, shape, {scalar}, DimensionsAttrs{});
  }

  // Computes the totals of all parts, the prefix before each part, and then each part from its
  // prefix.
  bool WithSplitDim(Instr& window, size_t along, int64_t splits, Instr* first, Computation* step) {
    ElementType type = window.shape().type();
    auto at = static_cast<int64_t>(along);
    Dims cut = window.shape().dims(), totals = cut, one = cut;
    cut[along] /= splits;
    cut.insert(cut.begin() + at, splits);
    totals[along] = splits;
    one[along] = 1;
    Shape whole = Shape::Array(type, totals);
    Result<Computation*> own = StepOf(window, whole, false);
    if (!own.ok()) return false;
    Instr* x = Make(Op::kReshape, Shape::Array(type, cut), {window.operand(0)}, {});
    Instr* sums = Make(Op::kReduce, whole, {x, window.operand(1)}, DimensionsAttrs{{at + 1}},
                       window.called(0));
    auto scanned = [&](Instr* of, Instr* from, int64_t d, Computation* by) {
      Instr* scan = Make(
          Op::kScan, Shape::Tuple({Plain(of->shape()), Plain(from->shape())}), {of, from},
          ScanAttrs{.dimension = d, .num_carries = 1, .is_reverse = false, .is_associative = false},
          by);
      return Make(Op::kGetTupleElement, Plain(of->shape()), {scan}, TupleIndexAttrs{0});
    };
    Instr* before = scanned(sums, first, at, step);
    Dims none(totals.size()), limits = totals, ones(totals.size(), 1);
    --limits[along];
    before = Make(Op::kSlice, Shape::Array(type, limits), {before}, SliceAttrs{none, limits, ones});
    Instr* begin = BroadcastTo(window.operand(1), Shape::Array(type, one));
    before = Make(Op::kConcatenate, whole, {begin, before}, DimensionAttrs{at});
    Instr* value = scanned(x, before, at + 1, own.value());
    Finish({Make(Op::kReshape, Plain(window.shape()), {value}, {})}, "scan.cumulative-window",
           std::to_string(splits) + " parts");
    return true;
  }

  static int64_t SplitsOnCpu(const Scan& scan) {
    int64_t rows = scan.outer * std::max<int64_t>(1, scan.inner / kRowsOfOne);
    int64_t count = scan.outer * scan.length * scan.inner;
    if (count < kScanLong || rows >= kManyRows) return 1;
    return std::min(
        {kScanMaxSplits / rows, count / kScanMinSplit, scan.length / kMinScanSplitLength});
  }

  // A block scans a row, or each thread one of several adjacent rows.
  int64_t SplitsOnGpu(const Scan& scan) const {
    bool by_block = gpu::IsCooperativeScan(scan);
    int64_t rows = scan.outer * scan.inner;
    int64_t wanted = machine_.cores * (by_block ? kBlocksPerSmWanted : gpu::kThreadsWanted);
    return std::min(wanted / rows, scan.length / (by_block ? kSplitPerBlock : kSplitPerThread));
  }

  static Shape Plain(const Shape& shape) { return Shape::Array(shape.type(), shape.dims()); }
  static bool CanGo(const Instr& instr) { return !HasControlDependencies(instr); }

  // Reduce-then-scan. The exclusive scan of the totals also returns the final carry, which is that
  // of the whole scan.
  void Take(Instr& scan, const Scan& facts, int64_t splits, int64_t length,
            const Literal& neutral) {
    of_ = &scan;
    make_.emplace(scan);
    ElementType type = scan.operand(0)->shape().type();
    auto along = static_cast<int64_t>(facts.along);
    bool is_even = splits * length == facts.length;
    Dims padded = facts.dims, cut, totals;
    padded[facts.along] = splits * length;
    cut = padded;
    cut[facts.along] = length;
    cut.insert(cut.begin() + along, splits);
    totals = cut;
    totals.erase(totals.begin() + along + 1);
    Instr* zero = Make(Op::kConstant, Shape::Scalar(type), {}, ConstantAttrs{neutral});
    Instr* x = scan.operand(0);
    if (!is_even) {
      Dims none(facts.dims.size()), high = none;
      high[facts.along] = splits * length - facts.length;
      x = Make(Op::kPad, Shape::Array(type, padded), {x, zero}, PadAttrs{none, high, none});
    }
    x = Make(Op::kReshape, Shape::Array(type, cut), {x}, {});
    Instr* sums = Make(Op::kReduce, Shape::Array(type, totals), {x, zero},
                       DimensionsAttrs{{along + 1}}, ReducerLike(scan, type));
    const ScanAttrs& attrs = scan.attrs<ScanAttrs>();
    Shape whole = Shape::Array(type, totals);
    Shape carry = ResultShapesOf(scan.shape())[1];
    Instr* before = Make(Op::kScan, Shape::Tuple({whole, carry}), {sums, scan.operand(1)}, attrs,
                         StepLike(scan, carry, false));
    Instr* begins = Make(Op::kGetTupleElement, whole, {before}, TupleIndexAttrs{0});
    Instr* last = Make(Op::kGetTupleElement, carry, {before}, TupleIndexAttrs{1});
    ScanAttrs own = attrs;
    own.dimension = along + 1;
    Instr* each = Make(Op::kScan, Shape::Tuple({Shape::Array(type, cut), whole}), {x, begins}, own,
                       StepLike(scan, whole, true));
    Instr* value = Make(Op::kGetTupleElement, Shape::Array(type, cut), {each}, TupleIndexAttrs{0});
    value = Make(Op::kReshape, Shape::Array(type, padded), {value}, {});
    if (!is_even)
      value = Make(Op::kSlice, Shape::Array(type, facts.dims), {value},
                   SliceAttrs{Dims(facts.dims.size()), facts.dims, Dims(facts.dims.size(), 1)});
    Finish({value, last}, "scan.split", std::to_string(splits) + " parts");
  }

  // The op of a scan's step as the reducer of its parts.
  Computation* ReducerLike(const Instr& scan, ElementType type) {
    Builder b(*of_, "scan_total");
    Instr* x = b.Parameter(Shape::Scalar(type));
    Instr* y = b.Parameter(Shape::Scalar(type));
    return b.FinishValid(b.Append(OpOf(scan), {x, y}));
  }

  // A step over parts of another shape. `is_inclusive`: it returns the carry after the step,
  // otherwise the carry before it (exclusive scan).
  Computation* StepLike(const Instr& scan, const Shape& part, bool is_inclusive) {
    Builder b(*of_, "scan_step");
    Instr* x = b.Parameter(part);
    Instr* carry = b.Parameter(part);
    const Instr& op = *scan.called(0)->root()->operand(1);
    bool carry_first = op.operand(0) == scan.called(0)->parameter(1);
    Instr* next = carry_first ? b.Append(op.op(), {carry, x}) : b.Append(op.op(), {x, carry});
    return b.FinishValid(b.Tuple({is_inclusive ? next : carry, next}));
  }

  static Op OpOf(const Instr& scan) { return scan.called(0)->root()->operand(1)->op(); }

  Instr* Make(Op op, const Shape& shape, std::vector<Instr*> operands, Attrs attrs,
              Computation* called = nullptr) {
    return make_->Make(op, shape, std::move(operands), std::move(attrs), called);
  }

  // Replaces the instruction, or its elements, by these values.
  void Finish(const std::vector<Instr*>& values, std::string_view rule, std::string because) {
    context_.Accepted(rule, *of_, nullptr, std::move(because));
    make_->ReplaceParts(values);
  }

  PassContext& context_;
  const Machine& machine_;
  Instr* of_ = nullptr;
  std::optional<Editor> make_;  // edits of_
};

}  // namespace

// The windows whose scans are bit-exact have become scans earlier (recognize_scans.cc). Records
// scan.cumulative-window, scan.unroll and scan.split.
Result<Changed> SplitScans(Module& module, PassContext& context) {
  ScanPreparer preparer(context);
  std::set<const Computation*> computations = ComputationsOfLoops(module);
  return EditComputations(module, [&](Computation& computation) {
    bool changed = false;
    for (Instr* instr : computation.PostOrder())
      if (instr->op() == Op::kReduceWindow && preparer.FromWindow(*instr)) changed = true;
    for (Instr* instr : computation.PostOrder())
      if (instr->op() == Op::kScan &&
          ((computations.contains(&computation) && preparer.Unroll(*instr)) ||
           preparer.Split(*instr)))
        changed = true;
    return changed;
  });
}

}  // namespace tokamak
