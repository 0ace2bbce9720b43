#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/loops.h"
#include "cost/rates.h"
#include "cost/work.h"
#include "gen/generator.h"
#include "passes/passes.h"
#include "rewrite/bodies.h"

namespace tokamak {
namespace {

// Microseconds: what a launch may take, and what it takes when it is one of several.
constexpr double kMostMicros = 1e6, kChunkMicros = 2.5e5;
constexpr double kSplitMostRounds = 1 << 30;
constexpr int64_t kUnknownRounds = 16;  // as kernels of unknown rounds are priced

class RoundSplitter {
 public:
  RoundSplitter(Module& module, Instr* loop, int64_t rounds)
      : module_(module), loop_(loop), rounds_(rounds) {}

  // while (more) { n = 0; while (more && n < rounds) { step; ++n } }
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
    said.push_back({std::string(kChunksAttribute), IntAttr{rounds_}});
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
    Instr* few = more.Append(Op::kCompare, pred, {parameters.back(), Number(more, rounds_)},
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
    // A user that nobody uses hides that a value is only stacked.
    if (next->users().empty() && next->op() == Op::kTuple) step.Remove(next);
    all.push_back(step.Append(Op::kAdd, shapes.back(), {parameters.back(), Number(step, 1)}));
    step.set_root(step.Append(Op::kTuple, Shape::Tuple(shapes), all));
    step.PutInOrder();
    return &step;
  }

  Module& module_;
  Instr* loop_;
  int64_t rounds_;
};

class Chooser {
 public:
  Chooser(Module& module, PassContext& context)
      : module_(module),
        context_(context),
        machine_(context.machine()),
        rounds_(context.target.chunk_iterations) {}

  // Loops of a computation, and of those that it calls, as long as they are no kernels.
  void Visit(Computation& computation, bool in_loop) {
    for (Instr* instr : computation.Callers()) {
      bool is_loop = instr->op() == Op::kWhile;
      if (is_loop && IsKernel(*instr, in_loop)) continue;
      if (is_loop || instr->op() == Op::kConditional || instr->op() == Op::kCall)
        for (Computation* called : instr->called()) Visit(*called, in_loop || is_loop);
    }
  }

  Changed changed() const { return changed_; }

 private:
  // Splits it, if it is one that takes long or may.
  bool IsKernel(Instr& loop, bool in_loop) {
    if (RunsInChunks(loop)) return true;
    RoundsRegion region = RoundsRegionOf(loop);
    if (!region.form.why_not.empty() || loop.operand_count() < 2) return false;
    if (region.rounds && *region.rounds < 2) return false;
    BuildOutcome outcome = BuildRounds(region, machine_, "rounds");
    if (!outcome.built) return false;
    double micros = MicrosOf(*outcome.built);
    // Between the rounds of a loop around it the host has its turn; a launch that the next one
    // need not wait for is worth more there.
    bool endless = !region.rounds && machine_.is_gpu() && !in_loop;
    if (!endless && !(region.rounds && (micros > kMostMicros || rounds_ > 0))) return true;
    auto priced = static_cast<double>(region.rounds.value_or(kUnknownRounds));
    double share = std::clamp(std::floor(kChunkMicros / micros * priced), 1.0, kSplitMostRounds);
    int64_t rounds = rounds_ > 0 ? rounds_ : static_cast<int64_t>(share);
    context_.TakenByCost("loop.chunks", loop, 0, micros,
                         std::to_string(rounds) + " rounds of " +
                             (region.rounds ? std::to_string(*region.rounds) : "unknown") +
                             " a launch");
    RoundSplitter(module_, &loop, rounds).Run();
    changed_ = Changed::kYes;
    return true;
  }

  // What it takes, and not less than operations that each wait for the one before: few places leave
  // a GPU's threads nothing else to do.
  double MicrosOf(const BuiltKernel& built) const {
    Work work = WorkOf(built.kernel, built.grid, machine_);
    double micros = PriceOf(work, machine_).total();
    if (!machine_.is_gpu()) return micros;
    double operations = std::accumulate(work.ops.begin(), work.ops.end(), 0.0);
    double of_thread = operations / std::max(1.0, work.tasks * work.threads);
    return std::max(micros, of_thread * RatesOf(machine_).latency_ns / 1000);
  }

  Module& module_;
  PassContext& context_;
  const Machine& machine_;
  int64_t rounds_;
  Changed changed_ = Changed::kNo;
};

}  // namespace

// A loop that is one kernel (gen/rounds.h), but would run for longer than anybody should wait who
// wants to stop it, becomes a loop of such loops: each launch does some rounds. So does one on a
// GPU whose rounds are not known, where it stands in no other loop. `rounds`: of a launch; 0: as
// many as take a while, by price.
Result<Changed> StripMineLoops(Module& module, PassContext& context) {
  Chooser chooser(module, context);
  if (module.entry() != nullptr) chooser.Visit(*module.entry(), false);
  return chooser.changed();
}

}  // namespace tokamak
