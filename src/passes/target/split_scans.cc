#include <algorithm>
#include <set>
#include <unordered_map>

#include "analysis/cumulative_window.h"
#include "gen/element.h"
#include "gen/gpu/gpu.h"
#include "gen/reducer.h"
#include "ir/builder.h"
#include "passes/passes.h"
#include "passes/target/reduction_parts.h"
#include "rewrite/bodies.h"
#include "rewrite/edit_computations.h"
#include "rewrite/editor.h"
#include "rewrite/loop_edit.h"
#include "support/check.h"

namespace tokamak {
namespace {

// Elements worth more than one thread, rows that are work enough, and parts of them all.
constexpr int64_t kScanLong = 1 << 16, kManyRows = 64, kScanMostParts = 256, kScanShortPart = 1024;
// Rows side by side that are one thread's work.
constexpr int64_t kRowsOfOne = 32;
// On a GPU: teams of a multiprocessor, threads of it, and elements of a part that are worth a team,
// or a thread.
constexpr int64_t kTeamsWanted = 8, kThreadsWanted = 512, kPartOfTeam = 4096, kPartOfThread = 64;
// Of cumulative windows of any computation: threads of a multiprocessor at most, and a row that is
// worth parts.
constexpr int64_t kMostThreads = 2048, kScanLongRow = 1024;

// Steps of a scan that are written out in a loop's body.
constexpr int64_t kShortScan = 8;

// ---- windows that are scans

// Whether a body computes one number from two of the same type, element by element.
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

// Whether a body has no first and second operand: elements may be folded from the end on, too. Of
// several ops that is taken for granted, as the meaning of a window does.
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

// (part, carry) to (next, next), of arrays. What is carried comes first in the order of elements:
// from the end on, last.
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

// Sums and the like, which one may regroup; others too, but what they lose then is unknown.
bool IsPlainSum(const Computation& body) {
  const Instr* root = body.root();
  if (root->operand_count() != 2 || root->operand(0) == root->operand(1)) return false;
  return root->operand(0)->op() == Op::kParameter && root->operand(1)->op() == Op::kParameter &&
         (root->op() == Op::kAdd || root->op() == Op::kMultiply);
}

class ScanPreparer {
 public:
  explicit ScanPreparer(PassContext& context) : context_(context), machine_(context.machine()) {}

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
    Instr* first = Spread(window.operand(1), part);
    if (int64_t parts = PartsOfWindow(window, *cumulative); parts > 1)
      return InParts(window, static_cast<size_t>(cumulative->dimension), parts, first,
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

  // Steps that are written out have code for single elements, so that the loop may be one kernel.
  bool Unroll(Instr& scan) {
    const ScanAttrs& attrs = scan.attrs<ScanAttrs>();
    size_t arrays = scan.operand_count() - static_cast<size_t>(attrs.num_carries);
    auto along = static_cast<size_t>(attrs.dimension);
    const Computation& step = *scan.called(0);
    if (!CanGo(scan) || arrays == 0 || scan.captures() > 0 || !scan.shape().IsTuple() ||
        step.root()->op() != Op::kTuple || step.root()->operand_count() != scan.operand_count())
      return false;
    for (const Shape& part : PartsOf(scan.shape()))
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
    std::vector<Shape> shapes = PartsOf(scan.shape());
    for (size_t i = 0; i < given; ++i)
      values.push_back(length == 1 ? made[i][0]
                                   : Make(Op::kConcatenate, Plain(shapes[i]), made[i],
                                          DimensionAttrs{attrs.dimension}));
    values.insert(values.end(), carried.begin(), carried.end());
    Finish(values, "scan.unroll", std::to_string(length) + " steps of a loop's round");
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

  bool Split(Instr& scan) {
    std::optional<Cumulation> cumulation = CumulationOf(scan);
    if (!cumulation || !CanGo(scan)) return false;
    Scan facts = ScanOf(scan);
    ElementType type = scan.operand(0)->shape().type();
    std::optional<Literal> neutral = NeutralLiteral(cumulation->op, type);
    if (!neutral || !cumulation->with_own) return false;
    int64_t parts = machine_.is_gpu() ? PartsOnGpu(facts) : PartsOnCpu(facts);
    if (parts < 2) return false;
    int64_t length = (facts.length + parts - 1) / parts;
    for (int64_t even = parts; 2 * even > parts; --even) {
      if (facts.length % even != 0) continue;
      length = facts.length / even;
      break;
    }
    parts = (facts.length + length - 1) / length;
    Take(scan, facts, parts, length, *neutral);
    return true;
  }

 private:
  // ---- windows of any computation, in parts

  // On a GPU a thread goes through a row of what is no plain op, whose steps wait for each other:
  // where there are few rows, parts of them are threads' work, which may be regrouped as the
  // meaning of a window says. They divide the length.
  int64_t PartsOfWindow(const Instr& window, const CumulativeWindow& cumulative) const {
    const Dims& dims = window.operand(0)->shape().dims();
    int64_t length = dims[static_cast<size_t>(cumulative.dimension)];
    int64_t rows = window.operand(0)->shape().ElementCount() / length;
    if (!machine_.is_gpu() || cumulative.is_reverse || length < kScanLongRow ||
        AnyOrderOp(*window.called(0)))
      return 1;
    int64_t parts = std::min(machine_.cores * kMostThreads / rows, length / kPartOfThread);
    while (parts > 1 && length % parts != 0) --parts;
    return parts;
  }

  Instr* Spread(Instr* scalar, const Shape& shape) {
    if (shape.rank() == 0) return scalar;
    return Make(Op::kBroadcast, shape, {scalar}, DimensionsAttrs{});
  }

  // The totals of parts, what comes before each of them, and each part from there on.
  bool InParts(Instr& window, size_t along, int64_t parts, Instr* first, Computation* step) {
    ElementType type = window.shape().type();
    auto at = static_cast<int64_t>(along);
    Dims cut = window.shape().dims(), totals = cut, one = cut;
    cut[along] /= parts;
    cut.insert(cut.begin() + at, parts);
    totals[along] = parts;
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
    Instr* begin = Spread(window.operand(1), Shape::Array(type, one));
    before = Make(Op::kConcatenate, whole, {begin, before}, DimensionAttrs{at});
    Instr* value = scanned(x, before, at + 1, own.value());
    Finish({Make(Op::kReshape, Plain(window.shape()), {value}, {})}, "scan.cumulative-window",
           std::to_string(parts) + " parts");
    return true;
  }

  static int64_t PartsOnCpu(const Scan& scan) {
    int64_t rows = scan.outer * std::max<int64_t>(1, scan.inner / kRowsOfOne);
    int64_t count = scan.outer * scan.length * scan.inner;
    if (count < kScanLong || rows >= kManyRows) return 1;
    return std::min({kScanMostParts / rows, count / kScanShortPart, scan.length / 16});
  }

  // A team has a row, or a thread one of those that lie side by side.
  int64_t PartsOnGpu(const Scan& scan) const {
    bool is_team = gpu::IsShared(scan);
    int64_t rows = scan.outer * scan.inner;
    int64_t wanted = machine_.cores * (is_team ? kTeamsWanted : kThreadsWanted);
    return std::min(wanted / rows, scan.length / (is_team ? kPartOfTeam : kPartOfThread));
  }

  static Shape Plain(const Shape& shape) { return Shape::Array(shape.type(), shape.dims()); }
  static bool CanGo(const Instr& instr) { return !IsTied(instr); }

  void Take(Instr& scan, const Scan& facts, int64_t parts, int64_t length, const Literal& neutral) {
    of_ = &scan;
    make_.emplace(scan);
    ElementType type = scan.operand(0)->shape().type();
    auto along = static_cast<int64_t>(facts.along);
    bool is_even = parts * length == facts.length;
    Dims padded = facts.dims, cut, totals;
    padded[facts.along] = parts * length;
    cut = padded;
    cut[facts.along] = length;
    cut.insert(cut.begin() + along, parts);
    totals = cut;
    totals.erase(totals.begin() + along + 1);
    Instr* zero = Make(Op::kConstant, Shape::Scalar(type), {}, ConstantAttrs{neutral});
    Instr* x = scan.operand(0);
    if (!is_even) {
      Dims none(facts.dims.size()), high = none;
      high[facts.along] = parts * length - facts.length;
      x = Make(Op::kPad, Shape::Array(type, padded), {x, zero}, PadAttrs{none, high, none});
    }
    x = Make(Op::kReshape, Shape::Array(type, cut), {x}, {});
    Instr* sums = Make(Op::kReduce, Shape::Array(type, totals), {x, zero},
                       DimensionsAttrs{{along + 1}}, ReducerLike(scan, type));
    const ScanAttrs& attrs = scan.attrs<ScanAttrs>();
    Shape whole = Shape::Array(type, totals);
    Shape carry = PartsOf(scan.shape())[1];
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
    Finish({value, last}, "scan.split", std::to_string(parts) + " parts");
  }

  // The op of a scan's step as the reducer of its parts.
  Computation* ReducerLike(const Instr& scan, ElementType type) {
    Builder b(*of_, "scan_total");
    Instr* x = b.Parameter(Shape::Scalar(type));
    Instr* y = b.Parameter(Shape::Scalar(type));
    return b.FinishValid(b.Append(OpOf(scan), {x, y}));
  }

  // A step over parts of another shape. `with_own`: it gives what is carried on, else what came.
  Computation* StepLike(const Instr& scan, const Shape& part, bool with_own) {
    Builder b(*of_, "scan_step");
    Instr* x = b.Parameter(part);
    Instr* carry = b.Parameter(part);
    const Instr& op = *scan.called(0)->root()->operand(1);
    bool carry_first = op.operand(0) == scan.called(0)->parameter(1);
    Instr* next = carry_first ? b.Append(op.op(), {carry, x}) : b.Append(op.op(), {x, carry});
    return b.FinishValid(b.Tuple({with_own ? next : carry, next}));
  }

  static Op OpOf(const Instr& scan) { return scan.called(0)->root()->operand(1)->op(); }

  Instr* Make(Op op, const Shape& shape, std::vector<Instr*> operands, Attrs attrs,
              Computation* called = nullptr) {
    return make_->Make(op, shape, std::move(operands), std::move(attrs), called);
  }

  // Puts values in the place of the instruction, or of its parts.
  void Finish(const std::vector<Instr*>& values, std::string_view rule, std::string because) {
    context_.Taken(rule, *of_, nullptr, std::move(because));
    make_->ReplaceParts(values);
  }

  PassContext& context_;
  const Machine& machine_;
  Instr* of_ = nullptr;
  std::optional<Editor> make_;  // of it
};

}  // namespace

// Windows that are cumulative (all elements up to their own, or all from it on) become scans,
// whatever they compute; those whose bits stay the same are scans before (passes).
//
// A long scan of few rows is taken apart into parts: their totals, a scan of those, and a scan of
// each part that begins with what came before it. Parts follow from the shape and the kind of
// machine alone.
Result<Changed> SplitScans(Module& module, PassContext& context) {
  ScanPreparer preparer(context);
  std::set<const Computation*> rounds = ComputationsOfLoops(module);
  return EditComputations(module, [&](Computation& computation) {
    bool changed = false;
    for (Instr* instr : computation.PostOrder())
      if (instr->op() == Op::kReduceWindow && preparer.FromWindow(*instr)) changed = true;
    for (Instr* instr : computation.PostOrder())
      if (instr->op() == Op::kScan &&
          ((rounds.contains(&computation) && preparer.Unroll(*instr)) || preparer.Split(*instr)))
        changed = true;
    return changed;
  });
}

}  // namespace tokamak
