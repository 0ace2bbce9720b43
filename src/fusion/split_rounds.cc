#include "fusion/split_rounds.h"

#include <algorithm>
#include <cmath>

#include "cost/work.h"
#include "gen/generator.h"
#include "rewrite/bodies.h"

namespace tokamak {
namespace {

// Microseconds: what a launch may take, and what it takes when it is one of several.
constexpr double kMostMicros = 1e6, kChunkMicros = 2.5e5;
constexpr std::string_view kChunks = "tokamak.chunks";

class Splitter {
 public:
  Splitter(Module& module, Instr* loop, int64_t rounds)
      : module_(module), loop_(loop), rounds_(rounds) {}

  // while (more) { n = 0; while (more && n < rounds) { step; ++n } }
  void Run() {
    std::vector<Shape> shapes;
    for (const Instr* operand : loop_->operands()) shapes.push_back(operand->shape());
    Computation& chunk = *module_.AddComputation("chunk");
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
    said.push_back({std::string(kChunks), IntAttr{rounds_}});
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
    std::vector<Instr*> parameters = Parameters(step, shapes), made;
    std::vector<Instr*> own(parameters.begin(), parameters.end() - 1);
    Instr* next = PasteBody(*loop_->called(1), own, step, made);
    std::vector<Instr*> all;
    for (size_t i = 0; i < own.size(); ++i) all.push_back(next->operand(i));
    all.push_back(step.Append(Op::kAdd, shapes.back(), {parameters.back(), Number(step, 1)}));
    step.set_root(step.Append(Op::kTuple, Shape::Tuple(shapes), all));
    step.PutInOrder();
    return &step;
  }

  Module& module_;
  Instr* loop_;
  int64_t rounds_;
};

// Loops of a computation, and of those that it calls, as long as they are no kernels.
void SplitIn(Module& module, Computation& computation, DecisionLog& log, const Machine& machine) {
  for (Instr* instr : computation.Callers()) {
    if (instr->op() == Op::kWhile) {
      RoundsRegion region = RoundsRegionOf(*instr);
      bool fits = region.form.why_not.empty() && region.rounds && instr->operand_count() > 1;
      if (fits && *region.rounds > 1) {
        BuildOutcome outcome = BuildRounds(region, machine, "rounds");
        if (outcome.built) {
          double micros =
              PriceOf(WorkOf(outcome.built->kernel, outcome.built->grid, machine), machine).total();
          if (micros <= kMostMicros) continue;
          double share = kChunkMicros / micros * static_cast<double>(*region.rounds);
          auto rounds = static_cast<int64_t>(std::max(1.0, std::floor(share)));
          log.Add({.pass = "fuse",
                   .rule = "loop.chunks",
                   .subject = LabelOf(*instr),
                   .origins = instr->origins(),
                   .after_us = micros,
                   .because = std::to_string(rounds) + " rounds of " +
                              std::to_string(*region.rounds) + " a launch"});
          Splitter(module, instr, rounds).Run();
          continue;
        }
      }
    }
    if (instr->op() == Op::kWhile || instr->op() == Op::kConditional || instr->op() == Op::kCall)
      for (Computation* called : instr->called()) SplitIn(module, *called, log, machine);
  }
}

}  // namespace

void SplitRounds(Module& module, DecisionLog& log, const Machine& machine) {
  if (module.entry() != nullptr) SplitIn(module, *module.entry(), log, machine);
}

bool RunsInChunks(const Instr& loop) {
  if (!loop.has_extras()) return false;
  return std::ranges::any_of(loop.extras().frontend_attributes,
                             [](const auto& entry) { return entry.name == kChunks; });
}

}  // namespace tokamak
