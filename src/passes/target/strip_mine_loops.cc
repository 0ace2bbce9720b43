#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/loops.h"
#include "cost/numbers.h"
#include "cost/rates.h"
#include "cost/units.h"
#include "cost/work.h"
#include "gen/generator.h"
#include "passes/passes.h"
#include "rewrite/bodies.h"

namespace tokamak {
namespace {

// Microseconds: a longer launch is split into launches of kLaunchChunkUs. Chosen: estimates err, so
// loops that just exceed a chunk stay whole.
constexpr double kMostMicros = 4 * kLaunchChunkUs;
// Iterations per launch. Chosen: they are counted in an s32, with room for the increment.
constexpr double kStripMaxIterations = 1 << 30;

class LoopStripMiner {
 public:
  LoopStripMiner(Module& module, Instr* loop, int64_t iterations)
      : module_(module), loop_(loop), iterations_(iterations) {}

  // while (more) { n = 0; while (more && n < iterations) { step; ++n } }
  void Run() {
    std::vector<Shape> shapes;
    for (const Instr* operand : loop_->operands()) shapes.push_back(operand->shape());
    Computation& chunk = *module_.AddComputation("chunk");
    chunk.is_public = false;
    std::vector<Instr*> carried = Parameters(chunk, shapes);
    carried.push_back(Number(chunk, 0));
    shapes.push_back(carried.back()->shape());
    Instr* inner = chunk.Append(Op::kWhile, Shape::Tuple(shapes), carried);
    inner->set_called({More(shapes), Step(shapes)});
    inner->set_name(loop_->name());
    inner->set_origins(loop_->origins());
    std::vector<Instr*> results;
    for (size_t i = 0; i + 1 < shapes.size(); ++i)
      results.push_back(chunk.Append(Op::kGetTupleElement, shapes[i], {inner},
                                     TupleIndexAttrs{static_cast<int64_t>(i)}));
    chunk.set_root(chunk.Append(Op::kTuple, loop_->shape(), results));
    loop_->set_called({loop_->called(0), &chunk});
    AttrDict& said = loop_->mutable_extras().frontend_attributes;
    said.push_back({std::string(kChunksAttribute), IntAttr{iterations_}});
    std::ranges::sort(said, {}, &AttrEntry::name);
  }

 private:
  static std::vector<Instr*> Parameters(Computation& of, const std::vector<Shape>& shapes) {
    std::vector<Instr*> parameters;
    for (size_t i = 0; i < shapes.size(); ++i)
      parameters.push_back(of.AppendParameter(static_cast<int64_t>(i), shapes[i]));
    return parameters;
  }
  static Instr* Number(Computation& of, int64_t value) {
    return of.Append(Op::kConstant, Shape::Scalar(ElementType::kS32), {},
                     ConstantAttrs{Literal::ScalarInt(ElementType::kS32, value)});
  }

  Computation* More(const std::vector<Shape>& shapes) {
    Computation& more = *module_.AddComputation("chunk_more");
    more.is_public = false;
    std::vector<Instr*> parameters = Parameters(more, shapes), made;
    std::vector<Instr*> own(parameters.begin(), parameters.end() - 1);
    Instr* holds = PasteBody(*loop_->called(0), own, more, made);
    Shape pred = Shape::Scalar(ElementType::kPred);
    Instr* few = more.Append(Op::kCompare, pred, {parameters.back(), Number(more, iterations_)},
                             CompareAttrs{CompareDirection::kLt, CompareType::kNone});
    more.set_root(more.Append(Op::kAnd, pred, {holds, few}));
    return &more;
  }

  Computation* Step(const std::vector<Shape>& shapes) {
    Computation& step = *module_.AddComputation("chunk_step");
    step.is_public = false;
    std::vector<Instr*> parameters = Parameters(step, shapes), made;
    std::vector<Instr*> own(parameters.begin(), parameters.end() - 1);
    Instr* next = PasteBody(*loop_->called(1), own, step, made);
    std::vector<Instr*> all;
    for (size_t i = 0; i < own.size(); ++i) all.push_back(next->operand(i));
    // An unused tuple would hide that a value is only stacked.
    if (next->users().empty() && next->op() == Op::kTuple) step.Remove(next);
    all.push_back(step.Append(Op::kAdd, shapes.back(), {parameters.back(), Number(step, 1)}));
    step.set_root(step.Append(Op::kTuple, Shape::Tuple(shapes), all));
    step.PutInOrder();
    return &step;
  }

  Module& module_;
  Instr* loop_;
  int64_t iterations_;
};

class Chooser {
 public:
  Chooser(Module& module, PassContext& context)
      : module_(module),
        context_(context),
        machine_(context.machine()),
        iterations_(context.target.chunk_iterations) {}

  // Visits the loops of a computation, and of computations it calls, except inside kernels.
  void Visit(Computation& computation, bool in_loop) {
    for (Instr* instr : computation.Callers()) {
      bool is_loop = instr->op() == Op::kWhile;
      if (is_loop && IsKernel(*instr, in_loop)) continue;
      if (RunsComputations(instr->op()))
        for (Computation* called : instr->called()) Visit(*called, in_loop || is_loop);
    }
  }

  Changed changed() const { return changed_; }

 private:
  // Whether the loop is one kernel. Splits it if it runs, or may run, for long.
  bool IsKernel(Instr& loop, bool in_loop) {
    if (RunsInChunks(loop)) return true;
    WholeLoopRegion region = WholeLoopRegionOf(loop);
    if (!region.independence.why_not.empty() || loop.operand_count() < 2) return false;
    if (region.trip_count && *region.trip_count < 2) return false;
    BuildOutcome outcome = BuildWholeLoop(region, machine_, "fused_loop");
    if (!outcome.built) return false;
    double micros = MicrosOf(*outcome.built);
    // Inside another loop, control returns to the host after every outer iteration, so this loop is
    // not split; asynchronous launches are worth more there.
    bool endless = !region.trip_count && machine_.is_gpu() && !in_loop;
    if (!endless && !(region.trip_count && (micros > kMostMicros || iterations_ > 0))) return true;
    auto evaluated = static_cast<double>(region.trip_count.value_or(kUnknownTripCount));
    double share =
        std::clamp(std::floor(kLaunchChunkUs / micros * evaluated), 1.0, kStripMaxIterations);
    int64_t iterations = iterations_ > 0 ? iterations_ : static_cast<int64_t>(share);
    context_.AcceptedByCost(
        "loop.chunks", loop, 0, micros,
        std::to_string(iterations) + " iterations of " +
            (region.trip_count ? std::to_string(*region.trip_count) : "unknown") + " a launch");
    LoopStripMiner(module_, &loop, iterations).Run();
    changed_ = Changed::kYes;
    return true;
  }

  // The estimated duration, and at least the latency of a thread's dependent operations: with few
  // points a GPU has no other threads to hide it.
  double MicrosOf(const BuiltKernel& built) const {
    Work work = WorkOf(built.kernel, built.grid, machine_);
    double micros = EstimateCost(work, machine_).total();
    if (!machine_.is_gpu()) return micros;
    double operations = std::accumulate(work.ops.begin(), work.ops.end(), 0.0);
    double of_thread = operations / std::max(1.0, work.tasks * work.threads);
    return std::max(micros, of_thread * RatesOf(machine_).latency_ns / kNsPerUs);
  }

  Module& module_;
  PassContext& context_;
  const Machine& machine_;
  int64_t iterations_;
  Changed changed_ = Changed::kNo;
};

}  // namespace

// Strip-mines long loops. A whole-loop kernel (gen/whole_loop.h) that would run too long to be
// interrupted becomes a loop of such loops: each launch runs some iterations. The same applies on a
// GPU to a loop with an unknown trip count that is not nested in another loop.
// PassTarget::chunk_iterations sets the iterations per launch; 0: as the cost model decides.
Result<Changed> StripMineLoops(Module& module, PassContext& context) {
  Chooser chooser(module, context);
  if (module.entry() != nullptr) chooser.Visit(*module.entry(), false);
  return chooser.changed();
}

}  // namespace tokamak
