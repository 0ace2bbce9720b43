// Code for elements of a loop's body: the ops of element.h, and nested loops, branches, small
// reductions and small dots.

#include <algorithm>

#include "analysis/own_condition.h"
#include "gen/fused_loop.h"

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

FusedLoopFrame::FusedLoopFrame(FusedLoopContext& context, const Computation& computation,
                               std::shared_ptr<ElementSource> given)
    : context_(context), emitter_(context.b, RegionOf(computation)) {
  context.frames.push_back(this);
  for (size_t i = 0; i < computation.parameters().size(); ++i)
    emitter_.SetSource(
        *computation.parameter(i),
        SourceOf([given, i](const Coordinates& at, size_t) { return given->At(at, i); }));
  for (const Instr* instr : computation.PostOrder())
    if (context_.failure.empty()) Add(*instr);
}

FusedLoopFrame::~FusedLoopFrame() {
  std::erase(context_.frames, this);
}

void FusedLoopContext::Forget() {
  for (FusedLoopFrame* frame : frames) frame->Forget();
}

Element FusedLoopFrame::At(const Instr& instr, const Coordinates& at, size_t part) {
  Element value = emitter_.At(instr, at, part);
  if (!emitter_.failure().empty()) context_.Fail(emitter_.failure());
  return value;
}

Coordinates FusedLoopFrame::UpdateIndex(const Instr& update, const Coordinates& at) {
  return emitter_.UpdateIndex(update, at);
}

Element FusedLoopFrame::ZeroOf(const Instr& instr, size_t part) {
  ElementType type = PartsOf(instr.shape())[part].type();
  Element zero{context_.b.Constant(ComputeType(type), 0), {}};
  if (IsComplex(type)) zero[1] = zero[0];
  return zero;
}

void FusedLoopFrame::Add(const Instr& instr) {
  switch (instr.op()) {
    case Op::kConstant:
      if (!IsImmediate(instr))
        emitter_.SetSource(instr, SourceOf([&](const Coordinates& at, size_t) {
                             return context_.top.At(instr, at);
                           }));
      return;
    case Op::kWhile:
      return AddLoop(instr);
    case Op::kConditional:
    case Op::kCall:
      return AddBranches(instr);
    case Op::kReduce:
      emitter_.SetSource(instr, SourceOf([&](const Coordinates& at, size_t part) {
                           std::vector<Element> values = Reduced(instr, at);
                           return part < values.size() ? values[part] : ZeroOf(instr, part);
                         }));
      return;
    case Op::kDot:
      if (context_.thread_map.elements > 0)
        if (std::optional<FusedLoopDot> product = LargeDotOf(context_.form, instr))
          return AddDistributedDot(*product);
      if (std::optional<FusedLoopDot> product = ProductOf(context_.form, instr))
        return AddDot(*product);
      emitter_.SetSource(
          instr, SourceOf([&](const Coordinates& at, size_t) { return Contracted(instr, at); }));
      return;
    default:
      return;
  }
}

void FusedLoopFrame::AddLoop(const Instr& instr) {
  std::optional<WhileLoop> loop = LoopOf(const_cast<Instr*>(&instr));  // LoopOf does not modify it
  auto forms = context_.form.inner.find(&instr);
  if (!loop || forms == context_.form.inner.end())
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
  context_.Forget();
  carried->Read(std::nullopt);
  emitter_.SetSource(instr, SourceOf([carried](const Coordinates& at, size_t part) {
                       return carried->At(part, at);
                     }));
}

// All branches are computed and each result element is selected. A loop of unknown trip count in a
// branch is rejected: it could run forever for an unused branch.
void FusedLoopFrame::AddBranches(const Instr& instr) {
  size_t operand = instr.op() == Op::kConditional ? 1 : 0;
  std::vector<FusedLoopFrame*> branches;
  for (const Computation* branch : instr.called()) {
    for (Instr* inner : branch->Callers()) {
      std::optional<WhileLoop> loop =
          inner->op() == Op::kWhile ? LoopOf(inner) : std::optional<WhileLoop>();
      if (instr.op() == Op::kConditional && inner->op() == Op::kWhile &&
          !(loop && TripCount(*loop)))
        return context_.Fail("a branch contains a loop of unknown trip count");
    }
    branches_.push_back(std::make_unique<FusedLoopFrame>(
        context_, *branch, SourceOf([this, &instr, operand](const Coordinates& at, size_t i) {
          return At(*instr.operand(operand + i), at);
        })));
    branches.push_back(branches_.back().get());
    operand += branch->parameters().size();
  }
  emitter_.SetSource(instr, SourceOf([this, &instr, branches](const Coordinates& at, size_t part) {
                       Element chosen;
                       for (size_t i = branches.size(); i-- > 0;) {
                         const Instr& root = *instr.called(i)->root();
                         Element value = root.op() == Op::kTuple
                                             ? branches[i]->At(*root.operand(part), at)
                                             : branches[i]->At(root, at, part);
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
std::vector<Element> FusedLoopFrame::Reduced(const Instr& reduce, const Coordinates& at) {
  size_t count = (reduce.operand_count() - reduce.captures()) / 2;
  const Dims& reduced = reduce.attrs<DimensionsAttrs>().dimensions;
  const Dims& from = reduce.operand(0)->shape().dims();
  Dims taps;
  for (int64_t d : reduced) taps.push_back(from[static_cast<size_t>(d)]);
  if (reduce.captures() > 0 || ProductOf(taps, 0, taps.size()) > kMaxUnrolledTaps) {
    context_.Fail("it contains a long reduction");
    return {};
  }
  std::vector<Element> sums;
  auto wide = [&](size_t i, Element value) {
    ElementType type = reduce.operand(i)->shape().type();
    return WideType(type) == type ? value : ConvertElement(context_.b, type, WideType(type), value);
  };
  for (size_t i = 0; i < count; ++i) sums.push_back(wide(i, At(*reduce.operand(count + i), {})));
  // Ascending dimensions: row-major order.
  Dims ascending = reduced;
  std::ranges::sort(ascending);
  taps.clear();
  for (int64_t d : ascending) taps.push_back(from[static_cast<size_t>(d)]);
  ForAll(context_.b, taps, [&](const Coordinates& tap) {
    Coordinates coordinates(from.size());
    size_t kept = 0, contracting = 0;
    for (size_t d = 0; d < from.size(); ++d) {
      bool is_reduced = std::ranges::binary_search(ascending, static_cast<int64_t>(d));
      coordinates[d] = is_reduced ? tap[contracting++] : at[kept++];
    }
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
    if (WideType(type) != type) sums[i] = ConvertElement(context_.b, WideType(type), type, sums[i]);
  }
  return sums;
}

// Products are rounded before they are added, as in all small dots.
Element FusedLoopFrame::Contracted(const Instr& dot, const Coordinates& at) {
  const DotAttrs& attrs = dot.attrs<DotAttrs>();
  const Instr &lhs = *dot.operand(0), &rhs = *dot.operand(1);
  Dims taps;
  for (int64_t d : attrs.lhs_contracting) taps.push_back(lhs.shape().dim(static_cast<size_t>(d)));
  ElementType type = dot.shape().type(), wide = WideType(type);
  if (ProductOf(taps, 0, taps.size()) > kMaxUnrolledTaps || IsComplex(type)) {
    context_.Fail("it contains a long dot");
    return ZeroOf(dot, 0);
  }
  Element sum{context_.b.Constant(ComputeType(wide), 0), {}};
  auto of = [&](const Instr& side, const Dims& batch, const Dims& contracting, size_t first,
                const Coordinates& tap) {
    Coordinates coordinates(side.shape().dims().size());
    for (size_t i = 0; i < batch.size(); ++i) coordinates[static_cast<size_t>(batch[i])] = at[i];
    for (size_t i = 0; i < contracting.size(); ++i)
      coordinates[static_cast<size_t>(contracting[i])] = tap[i];
    for (Scalar& c : coordinates)
      if (!c.ok()) c = at[first++];
    return ConvertElement(context_.b, side.shape().type(), wide, At(side, coordinates));
  };
  size_t lhs_free = attrs.lhs_batch.size();
  size_t rhs_free =
      lhs_free + lhs.shape().dims().size() - attrs.lhs_batch.size() - attrs.lhs_contracting.size();
  ForAll(context_.b, taps, [&](const Coordinates& tap) {
    Scalar x = of(lhs, attrs.lhs_batch, attrs.lhs_contracting, lhs_free, tap)[0];
    Scalar y = of(rhs, attrs.rhs_batch, attrs.rhs_contracting, rhs_free, tap)[0];
    sum[0] = sum[0] + x * y;
  });
  return ConvertElement(context_.b, wide, type, sum);
}

void EmitIterations(FusedLoopContext& context, const WhileLoop& loop,
                    std::optional<int64_t> trip_count, CarriedValues& carried,
                    IterationObserver* watcher, const IterationRange* span) {
  KernelBuilder& b = context.b;
  auto now = SourceOf([&](const Coordinates& at, size_t i) { return carried.At(i, at); });
  auto iteration = [&] {
    FusedLoopFrame frame(context, *loop.body, now);
    std::vector<std::vector<Element>> next(loop.size());
    for (size_t i = 0; i < loop.size(); ++i)
      if (carried.IsHeld(i))
        for (int64_t e = 0; e < carried.Own(i).count() && context.failure.empty(); ++e)
          next[i].push_back(frame.At(*loop.next(i), carried.Own(i).At(context, e)));
    if (!context.failure.empty()) return;
    if (watcher != nullptr) watcher->Look(frame);
    for (size_t i = 0; i < loop.size(); ++i)
      if (carried.IsHeld(i)) carried.Store(i, next[i]);
  };
  if (trip_count) {
    Scalar count = span == nullptr ? b.Index(*trip_count) : span->count;
    b.For("k", LoopRole::kSerial, count, [&](Scalar k) {
      if (watcher != nullptr) context.thread_map.iteration = k;
      carried.Read(span == nullptr ? k : span->from + k);
      iteration();
    });
    return;
  }
  b.While(
      [&] {
        carried.Read(std::nullopt);
        FusedLoopFrame frame(context, *loop.condition, now);
        // A point whose condition is false keeps its values, so it can stop without the other
        // points, unless they share an array that still changes.
        const Instr* own = ConditionOfPoint(loop, context.form.sizes);
        if (own != nullptr && !carried.HoldsUniformArray()) {
          Scalar goes_on = frame.At(*own, context.point)[0];
          const Instr* common = CommonCondition(loop);
          return common == nullptr ? goes_on : goes_on & frame.At(*common, {})[0];
        }
        return frame.At(*loop.condition->root(), {})[0];
      },
      [&] {
        carried.Read(std::nullopt);
        iteration();
      });
}

}  // namespace tokamak
