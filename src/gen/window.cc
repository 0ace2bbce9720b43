#include "gen/window.h"

#include <algorithm>

#include "gen/reducer.h"
#include "support/ceil_div.h"

namespace tokamak {
namespace {

// Taps that are unrolled. Chosen: bounds the code.
constexpr int64_t kFewTaps = 32;

struct WindowBody {
  const Instr& instr;
  size_t count = 0;
  std::optional<Op> op;  // if it has a neutral element
  // Narrow floats are rounded at the end, except in sums, as in the interpreter.
  bool wide = false;
};

WindowBody BodyOf(const Instr& instr) {
  WindowBody body{instr, (instr.operand_count() - instr.captures()) / 2, std::nullopt};
  bool complex = IsComplex(instr.operand(0)->shape().type());
  if (body.count == 1 && !complex) body.op = CommutativeOpOf(*instr.called(0));
  body.wide = body.op && *body.op != Op::kAdd;
  return body;
}

std::vector<Element> FirstValues(ElementEmitter& emitter, const WindowBody& body) {
  std::vector<Element> values;
  for (size_t i = 0; i < body.count; ++i)
    values.push_back(emitter.At(*body.instr.operand(body.count + i), {}));
  return values;
}

std::vector<Element> Applied(KernelBuilder& b, ElementEmitter& emitter, const WindowBody& body,
                             const std::vector<Element>& x, const std::vector<Element>& y) {
  std::vector<Element> arguments = x;
  arguments.insert(arguments.end(), y.begin(), y.end());
  const Instr& instr = body.instr;
  for (size_t i = instr.operand_count() - instr.captures(); i < instr.operand_count(); ++i)
    arguments.push_back(emitter.At(*instr.operand(i), {}));
  if (!emitter.failure().empty()) return x;
  std::optional<std::vector<Element>> results =
      ApplyBody(b, *instr.called(0), arguments, body.wide);
  if (results && results->size() == body.count) return *results;
  emitter.Fail("reduce-window: its computation has no scalar formula");
  return x;
}

std::vector<Element> Finished(KernelBuilder& b, const WindowBody& body, std::vector<Element> sums) {
  ElementType type = body.instr.operand(0)->shape().type();
  if (body.wide) sums[0] = ConvertElement(b, AccumulatorElementType(type), type, sums[0]);
  return sums;
}

// One coordinate of a tap in the base-dilated array, and whether it hits an element.
struct TapPosition {
  Scalar at;
  Scalar inside;
};

// `variables`: the coordinates of the result, then the taps. `known`: it is in bounds in any case.
TapPosition TapIndexOf(KernelBuilder& b, const IndexMap& map, size_t d,
                       const Coordinates& variables, bool known) {
  const IndexExpr& expr = map.dims[d];
  Scalar shifted = PositionOf(b, map, expr, variables), last = b.Index(*expr.last);
  TapPosition index{shifted, b.ConstantBits(ScalarType::kPred, 1)};
  if (!known) index.inside = (b.Index(0) <= shifted) & (shifted <= last);
  if (expr.divisor == 1) return index;
  Scalar clamped = LesserOf(GreaterOf(shifted, b.Index(0)), last), step = b.Index(expr.divisor);
  index.inside = index.inside & (clamped % step == b.Index(0));
  index.at = clamped / step;
  return index;
}

bool IsTrue(KernelBuilder& b, Scalar pred) {
  return b.kernel().IsConstant(pred.id()) && b.kernel().node(pred.id()).bits != 0;
}
bool IsFalse(KernelBuilder& b, Scalar pred) {
  return b.kernel().IsConstant(pred.id()) && b.kernel().node(pred.id()).bits == 0;
}

}  // namespace

bool IsLongWindow(const Instr& instr) {
  return instr.op() == Op::kReduceWindow && ReadsPerElement(instr) > kFewTaps;
}

std::optional<std::string> WhyNoReduceWindowCode(const Instr& window) {
  WindowBody body = BodyOf(window);
  std::vector<Shape> parts = ResultShapesOf(window.shape());
  const Computation& computation = *window.called(0);
  if (parts.size() != body.count || ReadsPerElement(window) == 0)
    return "reduce-window: it has no elements";
  for (const WindowDim& dim : window.attrs<WindowAttrs>().window)
    if (dim.reversed) return "reduce-window: of a reversed window";
  KernelBuilder b("probe");
  std::vector<Element> arguments;
  for (size_t i = 0; i < 2 * body.count; ++i) {
    const Shape& shape = window.operand(i)->shape();
    if (!IsPlainArray(shape) || shape.ElementCount() == 0)
      return "reduce-window: of an empty array";
    const Shape& part = parts[i % body.count];
    const Shape& parameter = computation.parameter(i)->shape();
    if (!IsPlainArray(part) || part.ElementCount() == 0)
      return "reduce-window: its result is empty";
    if (part.type() != shape.type() || !parameter.IsArray() || parameter.type() != shape.type())
      return "reduce-window: of mixed types";
  }
  for (const Instr* parameter : computation.parameters()) {
    if (!IsPlainArray(parameter->shape()))
      return "reduce-window: the parameters of its computation are not scalars";
    ElementType type = parameter->shape().type();
    ArrayId array =
        b.Argument({.name = "x", .type = StorageType(type), .access = Access::kRead, .size = 2});
    Element loaded{b.Load(array, b.Index(0)), {}};
    if (IsComplex(type)) loaded[1] = b.Load(array, b.Index(1));
    arguments.push_back(FromStorage(b, type, loaded));
  }
  if (!ApplyBody(b, computation, arguments, /*wide=*/false))
    return "reduce-window: its computation has no scalar formula";
  return std::nullopt;
}

namespace {

// Reduces one tap into the sums.
std::vector<Element> WithTap(KernelBuilder& b, ElementEmitter& emitter, const WindowBody& body,
                             const Coordinates& from, Scalar inside, std::vector<Element> sums) {
  std::vector<Element> seen;
  for (size_t i = 0; i < body.count; ++i) seen.push_back(emitter.At(*body.instr.operand(i), from));
  if (!emitter.failure().empty()) return sums;
  auto choose = [&](Element yes, Element no) {
    Element chosen{Choose(inside, yes[0], no[0]), {}};
    if (yes[1].ok()) chosen[1] = Choose(inside, yes[1], no[1]);
    return chosen;
  };
  bool always = IsTrue(b, inside);
  // Select the neutral element, which is off the dependence chain of the sums, if there is one.
  if (!always && body.op)
    seen[0] = choose(seen[0], NeutralOf(b, *body.op, body.instr.operand(0)->shape().type()));
  std::vector<Element> next = Applied(b, emitter, body, sums, seen);
  if (!always && !body.op)
    for (size_t i = 0; i < next.size(); ++i) next[i] = choose(next[i], sums[i]);
  return next;
}

}  // namespace

std::vector<Element> WindowAt(KernelBuilder& b, ElementEmitter& emitter, const Instr& window,
                              const Coordinates& at) {
  WindowBody body = BodyOf(window);
  const Dims& sizes = window.operand(0)->shape().dims();
  std::vector<Element> sums = FirstValues(emitter, body);
  const IndexMap map = *IndexMapOf(window, 0);
  const Dims taps = map.IteratedSizes();
  for (int64_t t = 0; t < map.ReadsPerElement() && emitter.failure().empty(); ++t) {
    Coordinates from(at.size()), variables = at;
    variables.resize(2 * at.size());
    Scalar inside = b.ConstantBits(ScalarType::kPred, 1);
    int64_t rest = t;
    for (size_t d = at.size(); d-- > 0;) {
      variables[at.size() + d] = b.Index(rest % taps[d]);
      rest /= taps[d];
      bool known = emitter.AssumesTapInBounds(window, d, at[d]);
      TapPosition index = TapIndexOf(b, map, d, variables, known);
      inside = inside & index.inside;
      from[d] = known ? index.at : LesserOf(GreaterOf(index.at, b.Index(0)), b.Index(sizes[d] - 1));
    }
    if (IsFalse(b, inside)) continue;
    sums = WithTap(b, emitter, body, from, inside, std::move(sums));
  }
  return Finished(b, body, std::move(sums));
}

namespace {

// Loops over the taps of one window, outermost dimension first; taps that miss are skipped as early
// as possible.
class LongWindow {
 public:
  LongWindow(KernelBuilder& b, ElementEmitter& emitter, const Instr& window, const Coordinates& at)
      : b_(b),
        emitter_(emitter),
        body_(BodyOf(window)),
        map_(*IndexMapOf(window, 0)),
        taps_(map_.IteratedSizes()),
        variables_(at),
        from_(at.size()) {
    variables_.resize(2 * at.size());
  }

  std::vector<Element> Run() {
    std::vector<Element> first = FirstValues(emitter_, body_);
    for (size_t i = 0; i < body_.count; ++i) {
      ElementType type = body_.instr.operand(i)->shape().type();
      sums_.push_back(LocalElements(b_, "sum", type, Space::kRegisters, 1));
    }
    Write(first);
    Taps(0);
    return Finished(b_, body_, Read());
  }

 private:
  void Taps(size_t d) {
    if (!emitter_.failure().empty()) return;
    if (d == from_.size()) {
      Scalar always = b_.ConstantBits(ScalarType::kPred, 1);
      return Write(WithTap(b_, emitter_, body_, from_, always, Read()));
    }
    auto tap = [&](Scalar t) {
      variables_[from_.size() + d] = t;
      TapPosition index = TapIndexOf(b_, map_, d, variables_, false);
      from_[d] = index.at;
      b_.If(index.inside, [&] { Taps(d + 1); });
    };
    if (taps_[d] == 1) return tap(b_.Index(0));
    b_.For("w", LoopRole::kSerial, b_.Index(taps_[d]), tap);
  }

  std::vector<Element> Read() {
    std::vector<Element> values;
    for (size_t i = 0; i < body_.count; ++i) {
      ElementType type = body_.instr.operand(i)->shape().type();
      values.push_back(ReadElement(b_, sums_[i], type, b_.Index(0)));
    }
    return values;
  }

  void Write(const std::vector<Element>& values) {
    if (!emitter_.failure().empty()) return;
    for (size_t i = 0; i < body_.count; ++i) StoreElement(b_, sums_[i], b_.Index(0), values[i]);
  }

  KernelBuilder& b_;
  ElementEmitter& emitter_;
  WindowBody body_;
  const IndexMap map_;
  const Dims taps_;  // per dimension
  Coordinates variables_, from_;
  std::vector<ElementArrays> sums_;
};

}  // namespace

void ReduceLongWindows(KernelBuilder& b, ElementEmitter& emitter, const FusedRegion& region,
                       const Dims& dims, const Coordinates& at) {
  for (const Instr* instr : region.instrs) {
    if (!IsLongWindow(*instr)) continue;
    if (ResultShapesOf(instr->shape())[0].dims() != dims)
      return emitter.Fail("a long window's result is needed at another element");
    std::vector<Element> results = LongWindow(b, emitter, *instr, at).Run();
    for (size_t i = 0; i < results.size(); ++i) emitter.Bind(*instr, i, at, results[i]);
  }
}

std::optional<std::pair<int64_t, int64_t>> InteriorOfWindows(const FusedRegion& region,
                                                             const Dims& dims) {
  std::optional<std::pair<int64_t, int64_t>> inside;
  for (const Instr* instr : region.instrs) {
    if (instr->op() != Op::kReduceWindow || IsLongWindow(*instr)) continue;
    const Shape out = ResultShapesOf(instr->shape())[0];
    if (dims.empty() || out.dims() != dims) continue;
    const IndexMap map = *IndexMapOf(*instr, 0);
    const IndexExpr& expr = map.dims[dims.size() - 1];
    if (map.AlwaysHolds(expr)) continue;
    // Terms of the result's index, which ascends, and of the tap, if there are several.
    std::span<const IndexTerm> terms = map.TermsOf(expr);
    int64_t stride = terms[0].coefficient, span = 0;
    for (const IndexTerm& term : terms.subspan(1))
      span += term.coefficient * (map.variables[term.variable].size - 1);
    int64_t low = CeilDiv(std::max<int64_t>(-expr.offset, 0), stride);
    int64_t room = *expr.last - expr.offset - span;
    int64_t high = room < 0 ? -1 : room / stride;
    if (!inside) inside = std::pair<int64_t, int64_t>(0, dims.back() - 1);
    inside->first = std::max(inside->first, low);
    inside->second = std::min(inside->second, high);
  }
  return inside;
}

}  // namespace tokamak
