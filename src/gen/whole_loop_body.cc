// Code for elements of a loop's body: the ops of element.h, and nested loops, branches, small
// reductions and small dots.

#include <algorithm>

#include "analysis/own_condition.h"
#include "gen/whole_loop.h"
#include "gen/whole_loop_tiles.h"

namespace tokamak {
namespace {

// Elements of a reduction or dot that are unrolled. Chosen: bounds the code.
constexpr int64_t kMaxUnrolledTaps = 64;

FusedRegion RegionOf(const Computation& computation) {
  FusedRegion region{.computation = &computation, .instrs = {}, .inputs = {}, .roots = {}};
  for (const Instr* instr : computation.PostOrder())
    if (instr->op() != Op::kParameter) region.instrs.push_back(instr);
  return region;
}

// Calls visit(coordinates) for all elements of an array of these dimensions, row-major.
template <typename Visit>
void ForAll(KernelBuilder& b, const Dims& dims, Visit&& visit) {
  int64_t count = ProductOf(dims, 0, dims.size());
  for (int64_t i = 0; i < count; ++i) visit(Delinearized(b, b.Index(i), dims));
}

}  // namespace

WholeLoopFrame::WholeLoopFrame(WholeLoopContext& context, const Computation& computation,
                               std::shared_ptr<ElementSource> parameters)
    : context_(context), emitter_(context.b, RegionOf(computation)) {
  context.frames.push_back(this);
  for (size_t i = 0; i < computation.parameters().size(); ++i)
    emitter_.SetSource(
        *computation.parameter(i),
        SourceOf([parameters, i](const Coordinates& at, size_t) { return parameters->At(at, i); }));
  for (const Instr* instr : computation.PostOrder())
    if (context_.failure.empty()) EmitInstr(*instr);
}

WholeLoopFrame::~WholeLoopFrame() {
  std::erase(context_.frames, this);
}

void WholeLoopContext::ClearMemo() {
  for (WholeLoopFrame* frame : frames) frame->ClearMemo();
}

Element WholeLoopFrame::At(const Instr& instr, const Coordinates& at, size_t result_index) {
  Element value = emitter_.At(instr, at, result_index);
  if (!emitter_.failure().empty()) context_.Fail(emitter_.failure());
  return value;
}

Coordinates WholeLoopFrame::UpdateDestination(const Instr& update, const Coordinates& at) {
  return emitter_.UpdateDestination(update, at);
}

Element WholeLoopFrame::ZeroOf(const Instr& instr, size_t result_index) {
  ElementType type = ResultShapesOf(instr.shape())[result_index].type();
  Element zero{context_.b.Constant(ComputeType(type), 0), {}};
  if (IsComplex(type)) zero[1] = zero[0];
  return zero;
}

void WholeLoopFrame::EmitInstr(const Instr& instr) {
  switch (instr.op()) {
    case Op::kConstant:
      if (!IsImmediate(instr))
        emitter_.SetSource(instr, SourceOf([&](const Coordinates& at, size_t) {
                             return context_.memory_emitter.At(instr, at);
                           }));
      return;
    case Op::kWhile:
      return EmitNestedLoop(instr);
    case Op::kConditional:
    case Op::kCall:
      return EmitBranches(instr);
    case Op::kReduce:
      emitter_.SetSource(instr, SourceOf([&](const Coordinates& at, size_t result_index) {
                           std::vector<Element> values = EmitReduce(instr, at);
                           return result_index < values.size() ? values[result_index]
                                                               : ZeroOf(instr, result_index);
                         }));
      return;
    case Op::kDot:
      if (context_.tiles != nullptr)
        if (const WholeLoopTileDot* dot = context_.tiles->Find(instr)) return EmitTileDot(*dot);
      if (context_.thread_map.elements_per_point > 0)
        if (std::optional<WholeLoopMatVec> product = MatVecOf(context_.independence, instr))
          return EmitDistributedMatVec(*product);
      if (std::optional<WholeLoopMatVec> product = LoopedMatVecOf(context_.independence, instr))
        return EmitMatVec(*product);
      emitter_.SetSource(instr, SourceOf([&](const Coordinates& at, size_t) {
                           return EmitUnrolledDot(instr, at);
                         }));
      return;
    default:
      return;
  }
}

void WholeLoopFrame::EmitNestedLoop(const Instr& instr) {
  std::optional<WhileLoop> loop = LoopOf(const_cast<Instr*>(&instr));  // LoopOf does not modify it
  auto forms = context_.independence.inner.find(&instr);
  if (!loop || forms == context_.independence.inner.end())
    return context_.Fail("it contains a loop that carries tuples");
  std::optional<uint64_t> trips = TripCount(*loop);
  std::optional<int64_t> trip_count;
  if (trips && *trips <= INT32_MAX) trip_count = static_cast<int64_t>(*trips);
  loops_.push_back(
      std::make_unique<CarriedValues>(context_, *loop, forms->second, trip_count,
                                      SourceOf([this, &instr](const Coordinates& at, size_t i) {
                                        return At(*instr.operand(i), at);
                                      })));
  CarriedValues* carried = loops_.back().get();
  if (!context_.failure.empty()) return;
  EmitIterations(context_, *loop, trip_count, *carried, nullptr);
  context_.ClearMemo();
  carried->ReadRegisters(std::nullopt);
  emitter_.SetSource(instr, SourceOf([carried](const Coordinates& at, size_t result_index) {
                       return carried->At(result_index, at);
                     }));
}

// All branches are computed and each result element is selected. A loop of unknown trip count in a
// branch is rejected: it could run forever for an unused branch.
void WholeLoopFrame::EmitBranches(const Instr& instr) {
  size_t operand = instr.op() == Op::kConditional ? 1 : 0;
  std::vector<WholeLoopFrame*> branches;
  for (const Computation* branch : instr.called()) {
    for (Instr* inner : branch->Callers()) {
      std::optional<WhileLoop> loop =
          inner->op() == Op::kWhile ? LoopOf(inner) : std::optional<WhileLoop>();
      if (instr.op() == Op::kConditional && inner->op() == Op::kWhile &&
          !(loop && TripCount(*loop)))
        return context_.Fail("a branch contains a loop of unknown trip count");
    }
    branches_.push_back(std::make_unique<WholeLoopFrame>(
        context_, *branch, SourceOf([this, &instr, operand](const Coordinates& at, size_t i) {
          return At(*instr.operand(operand + i), at);
        })));
    branches.push_back(branches_.back().get());
    operand += branch->parameters().size();
  }
  emitter_.SetSource(
      instr, SourceOf([this, &instr, branches](const Coordinates& at, size_t result_index) {
        Element chosen;
        for (size_t i = branches.size(); i-- > 0;) {
          const Instr& root = *instr.called(i)->root();
          Element value = root.op() == Op::kTuple ? branches[i]->At(*root.operand(result_index), at)
                                                  : branches[i]->At(root, at, result_index);
          if (i + 1 == branches.size()) {
            chosen = value;
            continue;
          }
          Scalar index = At(*instr.operand(0), {})[0];
          Scalar here = instr.operand(0)->shape().type() == ElementType::kPred
                            ? index
                            : index == index.Like(static_cast<double>(i));
          for (size_t k : {0, 1})
            if (value[k].ok()) chosen[k] = Choose(here, value[k], chosen[k]);
        }
        return chosen;
      }));
}

// In the order of the interpreter; narrow floats are rounded at the end.
std::vector<Element> WholeLoopFrame::EmitReduce(const Instr& reduce, const Coordinates& at) {
  size_t count = (reduce.operand_count() - reduce.captures()) / 2;
  IndexMap map = *IndexMapOf(reduce, 0);
  if (reduce.captures() > 0 || map.ReadsPerElement() > kMaxUnrolledTaps) {
    context_.Fail("it contains a long reduction");
    return {};
  }
  std::vector<Element> sums;
  auto wide = [&](size_t i, Element value) {
    ElementType type = reduce.operand(i)->shape().type();
    return AccumulatorElementType(type) == type
               ? value
               : ConvertElement(context_.b, type, AccumulatorElementType(type), value);
  };
  for (size_t i = 0; i < count; ++i) sums.push_back(wide(i, At(*reduce.operand(count + i), {})));
  ForAll(context_.b, map.IteratedSizes(), [&](const Coordinates& term) {
    Coordinates coordinates = ReadCoordinates(map, at, term);
    std::vector<Element> arguments = sums;
    for (size_t i = 0; i < count; ++i)
      arguments.push_back(wide(i, At(*reduce.operand(i), coordinates)));
    std::optional<std::vector<Element>> next =
        ApplyBody(context_.b, *reduce.called(0), arguments, /*wide=*/true);
    if (!next || next->size() != count)
      return context_.Fail("it contains a reduction without a scalar formula");
    sums = std::move(*next);
  });
  for (size_t i = 0; i < count; ++i) {
    ElementType type = reduce.operand(i)->shape().type();
    if (AccumulatorElementType(type) != type)
      sums[i] = ConvertElement(context_.b, AccumulatorElementType(type), type, sums[i]);
  }
  return sums;
}

Element WholeLoopFrame::EmitUnrolledDot(const Instr& dot, const Coordinates& at) {
  IndexMap lhs = *IndexMapOf(dot, 0), rhs = *IndexMapOf(dot, 1);
  ElementType type = dot.shape().type(), wide = AccumulatorElementType(type);
  if (lhs.ReadsPerElement() > kMaxUnrolledTaps || IsComplex(type)) {
    context_.Fail("it contains a long dot");
    return ZeroOf(dot, 0);
  }
  Element sum{context_.b.Constant(ComputeType(wide), 0), {}};
  auto factor = [&](size_t i, const IndexMap& map, const Coordinates& term) {
    const Instr& operand = *dot.operand(i);
    Element value = At(operand, ReadCoordinates(map, at, term));
    return ConvertElement(context_.b, operand.shape().type(), wide, value);
  };
  ForAll(context_.b, lhs.IteratedSizes(), [&](const Coordinates& term) {
    Element x = factor(0, lhs, term);
    Element y = factor(1, rhs, term);
    std::optional<Element> next = AddProduct(context_.b, wide, sum, x, y);
    if (!next) return context_.Fail("it contains a dot without a scalar formula");
    sum = *next;
  });
  return ConvertElement(context_.b, wide, type, sum);
}

void EmitIterations(WholeLoopContext& context, const WhileLoop& loop,
                    std::optional<int64_t> trip_count, CarriedValues& carried,
                    IterationObserver* observer, const IterationRange* range) {
  KernelBuilder& b = context.b;
  auto now = SourceOf([&](const Coordinates& at, size_t i) { return carried.At(i, at); });
  auto iteration = [&] {
    WholeLoopFrame frame(context, *loop.body, now);
    std::vector<std::vector<Element>> next(loop.size());
    for (size_t i = 0; i < loop.size(); ++i)
      if (carried.InRegisters(i))
        for (int64_t e = 0; e < carried.ElementsOf(i).count() && context.failure.empty(); ++e)
          next[i].push_back(frame.At(*loop.next(i), carried.ElementsOf(i).At(context, e)));
    if (!context.failure.empty()) return;
    if (observer != nullptr) observer->OnIteration(frame);
    for (size_t i = 0; i < loop.size(); ++i)
      if (carried.InRegisters(i)) carried.Store(i, next[i]);
  };
  if (trip_count) {
    Scalar count = range == nullptr ? b.Index(*trip_count) : range->count;
    b.For("k", LoopRole::kSerial, count, [&](Scalar k) {
      if (observer != nullptr) context.thread_map.iteration = k;
      carried.ReadRegisters(range == nullptr ? k : range->from + k);
      iteration();
    });
    return;
  }
  b.While(
      [&] {
        carried.ReadRegisters(std::nullopt);
        WholeLoopFrame frame(context, *loop.condition, now);
        // A point whose condition is false keeps its values, so it can stop without the other
        // points, unless they share an array that still changes.
        const Instr* own = ConditionOfPoint(loop, context.independence.sizes);
        if (own != nullptr && !carried.HasUniformArray()) {
          Scalar goes_on = frame.At(*own, context.point)[0];
          const Instr* common = CommonCondition(loop);
          return common == nullptr ? goes_on : goes_on & frame.At(*common, {})[0];
        }
        return frame.At(*loop.condition->root(), {})[0];
      },
      [&] {
        carried.ReadRegisters(std::nullopt);
        iteration();
      });
}

}  // namespace tokamak
