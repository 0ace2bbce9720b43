// Code for elements of a loop's body: what element.h has code for, and loops, branches, small
// reductions and small contractions within it.

#include <algorithm>

#include "analysis/own_condition.h"
#include "gen/rounds.h"

namespace tokamak {
namespace {

// Elements that are folded one by one, in code.
constexpr int64_t kRoundMostTaps = 64;

Region RegionOf(const Computation& computation) {
  Region region{.computation = &computation, .instrs = {}, .inputs = {}, .roots = {}};
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

RoundsFrame::RoundsFrame(RoundsContext& context, const Computation& computation,
                         std::shared_ptr<ElementGiver> given)
    : context_(context), emitter_(context.b, RegionOf(computation)) {
  context.frames.push_back(this);
  for (size_t i = 0; i < computation.parameters().size(); ++i)
    emitter_.Give(*computation.parameter(i),
                  GiverOf([given, i](const Coordinates& at, size_t) { return given->At(at, i); }));
  for (const Instr* instr : computation.PostOrder())
    if (context_.fault.empty()) Add(*instr);
}

RoundsFrame::~RoundsFrame() {
  std::erase(context_.frames, this);
}

void RoundsContext::Forget() {
  for (RoundsFrame* frame : frames) frame->Forget();
}

Element RoundsFrame::At(const Instr& instr, const Coordinates& at, size_t part) {
  Element value = emitter_.At(instr, at, part);
  if (!emitter_.fault().empty()) context_.Fail(emitter_.fault());
  return value;
}

Coordinates RoundsFrame::UpdatePlace(const Instr& update, const Coordinates& at) {
  return emitter_.UpdatePlace(update, at);
}

Element RoundsFrame::ZeroOf(const Instr& instr, size_t part) {
  ElementType type = PartsOf(instr.shape())[part].type();
  Element zero{context_.b.Constant(ComputeType(type), 0), {}};
  if (IsComplex(type)) zero[1] = zero[0];
  return zero;
}

void RoundsFrame::Add(const Instr& instr) {
  switch (instr.op()) {
    case Op::kConstant:
      if (!IsImmediate(instr))
        emitter_.Give(instr, GiverOf([&](const Coordinates& at, size_t) {
                        return context_.top.At(instr, at);
                      }));
      return;
    case Op::kWhile:
      return AddLoop(instr);
    case Op::kConditional:
    case Op::kCall:
      return AddBranches(instr);
    case Op::kReduce:
      emitter_.Give(instr, GiverOf([&](const Coordinates& at, size_t part) {
                      std::vector<Element> values = Reduced(instr, at);
                      return part < values.size() ? values[part] : ZeroOf(instr, part);
                    }));
      return;
    case Op::kDot:
      if (context_.spread.elements > 0)
        if (std::optional<RoundsProduct> product = LargeProductOf(context_.form, instr))
          return AddSpreadProduct(*product);
      if (std::optional<RoundsProduct> product = ProductOf(context_.form, instr))
        return AddProduct(*product);
      emitter_.Give(instr,
                    GiverOf([&](const Coordinates& at, size_t) { return Contracted(instr, at); }));
      return;
    default:
      return;
  }
}

void RoundsFrame::AddLoop(const Instr& instr) {
  std::optional<WhileLoop> loop = LoopOf(const_cast<Instr*>(&instr));  // looks only
  auto forms = context_.form.inner.find(&instr);
  if (!loop || forms == context_.form.inner.end())
    return context_.Fail("it holds a loop that carries tuples");
  std::optional<uint64_t> trips = TripCount(*loop);
  std::optional<int64_t> rounds;
  if (trips && *trips <= INT32_MAX) rounds = static_cast<int64_t>(*trips);
  loops_.push_back(
      std::make_unique<CarriedValues>(context_, *loop, forms->second, rounds,
                                      GiverOf([this, &instr](const Coordinates& at, size_t i) {
                                        return At(*instr.operand(i), at);
                                      })));
  CarriedValues* carried = loops_.back().get();
  if (!context_.fault.empty()) return;
  EmitRounds(context_, *loop, rounds, *carried, nullptr);
  context_.Forget();
  carried->Read(std::nullopt);
  emitter_.Give(instr, GiverOf([carried](const Coordinates& at, size_t part) {
                  return carried->At(part, at);
                }));
}

// Every branch is computed: an element is chosen. A loop that might never end is not run for
// nothing.
void RoundsFrame::AddBranches(const Instr& instr) {
  size_t operand = instr.op() == Op::kConditional ? 1 : 0;
  std::vector<RoundsFrame*> branches;
  for (const Computation* branch : instr.called()) {
    for (Instr* inner : branch->Callers()) {
      std::optional<WhileLoop> loop =
          inner->op() == Op::kWhile ? LoopOf(inner) : std::optional<WhileLoop>();
      if (instr.op() == Op::kConditional && inner->op() == Op::kWhile &&
          !(loop && TripCount(*loop)))
        return context_.Fail("a branch holds a loop of unknown rounds");
    }
    branches_.push_back(std::make_unique<RoundsFrame>(
        context_, *branch, GiverOf([this, &instr, operand](const Coordinates& at, size_t i) {
          return At(*instr.operand(operand + i), at);
        })));
    branches.push_back(branches_.back().get());
    operand += branch->parameters().size();
  }
  emitter_.Give(instr, GiverOf([this, &instr, branches](const Coordinates& at, size_t part) {
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

// In the order of the interpreter; narrow numbers are rounded at the end.
std::vector<Element> RoundsFrame::Reduced(const Instr& reduce, const Coordinates& at) {
  size_t count = (reduce.operand_count() - reduce.captures()) / 2;
  const Dims& reduced = reduce.attrs<DimensionsAttrs>().dimensions;
  const Dims& from = reduce.operand(0)->shape().dims();
  Dims taps;
  for (int64_t d : reduced) taps.push_back(from[static_cast<size_t>(d)]);
  if (reduce.captures() > 0 || ProductOf(taps, 0, taps.size()) > kRoundMostTaps) {
    context_.Fail("it holds a long reduction");
    return {};
  }
  std::vector<Element> sums;
  auto wide = [&](size_t i, Element value) {
    ElementType type = reduce.operand(i)->shape().type();
    return WideType(type) == type ? value : ConvertElement(context_.b, type, WideType(type), value);
  };
  for (size_t i = 0; i < count; ++i) sums.push_back(wide(i, At(*reduce.operand(count + i), {})));
  // Dimensions in ascending order: row-major.
  Dims ascending = reduced;
  std::ranges::sort(ascending);
  taps.clear();
  for (int64_t d : ascending) taps.push_back(from[static_cast<size_t>(d)]);
  ForAll(context_.b, taps, [&](const Coordinates& tap) {
    Coordinates place(from.size());
    size_t kept = 0, folded = 0;
    for (size_t d = 0; d < from.size(); ++d) {
      bool is_reduced = std::ranges::binary_search(ascending, static_cast<int64_t>(d));
      place[d] = is_reduced ? tap[folded++] : at[kept++];
    }
    std::vector<Element> arguments = sums;
    for (size_t i = 0; i < count; ++i) arguments.push_back(wide(i, At(*reduce.operand(i), place)));
    std::optional<std::vector<Element>> next =
        ApplyBody(context_.b, *reduce.called(0), arguments, /*wide=*/true);
    if (!next || next->size() != count) return context_.Fail("it holds a reduction of no formula");
    sums = std::move(*next);
  });
  for (size_t i = 0; i < count; ++i) {
    ElementType type = reduce.operand(i)->shape().type();
    if (WideType(type) != type) sums[i] = ConvertElement(context_.b, WideType(type), type, sums[i]);
  }
  return sums;
}

// Products are rounded before they are added, as those of all small dots.
Element RoundsFrame::Contracted(const Instr& dot, const Coordinates& at) {
  const DotAttrs& attrs = dot.attrs<DotAttrs>();
  const Instr &lhs = *dot.operand(0), &rhs = *dot.operand(1);
  Dims taps;
  for (int64_t d : attrs.lhs_contracting) taps.push_back(lhs.shape().dim(static_cast<size_t>(d)));
  ElementType type = dot.shape().type(), wide = WideType(type);
  if (ProductOf(taps, 0, taps.size()) > kRoundMostTaps || IsComplex(type)) {
    context_.Fail("it holds a long contraction");
    return ZeroOf(dot, 0);
  }
  Element sum{context_.b.Constant(ComputeType(wide), 0), {}};
  auto of = [&](const Instr& side, const Dims& batch, const Dims& folded, size_t first,
                const Coordinates& tap) {
    Coordinates place(side.shape().dims().size());
    for (size_t i = 0; i < batch.size(); ++i) place[static_cast<size_t>(batch[i])] = at[i];
    for (size_t i = 0; i < folded.size(); ++i) place[static_cast<size_t>(folded[i])] = tap[i];
    for (Scalar& c : place)
      if (!c.ok()) c = at[first++];
    return ConvertElement(context_.b, side.shape().type(), wide, At(side, place));
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

void EmitRounds(RoundsContext& context, const WhileLoop& loop, std::optional<int64_t> rounds,
                CarriedValues& carried, RoundsWatcher* watcher, const RoundsSpan* span) {
  KernelBuilder& b = context.b;
  auto now = GiverOf([&](const Coordinates& at, size_t i) { return carried.At(i, at); });
  auto round = [&] {
    RoundsFrame frame(context, *loop.body, now);
    std::vector<std::vector<Element>> next(loop.size());
    for (size_t i = 0; i < loop.size(); ++i)
      if (carried.IsHeld(i))
        for (int64_t e = 0; e < carried.Own(i).count() && context.fault.empty(); ++e)
          next[i].push_back(frame.At(*loop.next(i), carried.Own(i).At(context, e)));
    if (!context.fault.empty()) return;
    if (watcher != nullptr) watcher->Look(frame);
    for (size_t i = 0; i < loop.size(); ++i)
      if (carried.IsHeld(i)) carried.Store(i, next[i]);
  };
  if (rounds) {
    Scalar count = span == nullptr ? b.Index(*rounds) : span->count;
    b.For("k", LoopRole::kSerial, count, [&](Scalar k) {
      if (watcher != nullptr) context.spread.round = k;
      carried.Read(span == nullptr ? k : span->from + k);
      round();
    });
    return;
  }
  b.While(
      [&] {
        carried.Read(std::nullopt);
        RoundsFrame frame(context, *loop.condition, now);
        // A place that is done stays as it is: it need not wait for the others, unless they share
        // what goes on.
        const Instr* own = ConditionOfPlace(loop, context.form.sizes);
        if (own != nullptr && !carried.HoldsSharedArray()) {
          Scalar goes_on = frame.At(*own, context.place)[0];
          const Instr* common = CommonCondition(loop);
          return common == nullptr ? goes_on : goes_on & frame.At(*common, {})[0];
        }
        return frame.At(*loop.condition->root(), {})[0];
      },
      [&] {
        carried.Read(std::nullopt);
        round();
      });
}

}  // namespace tokamak
