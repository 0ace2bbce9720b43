#include "gen/select_scatter.h"

#include <algorithm>

namespace tokamak {
namespace {

// Taps that are unrolled per element. Chosen: bounds the code.
constexpr int64_t kSelectMostTaps = 128;
// Arrays among the operands: the operand, the source and the initial value. By definition of the
// op.
constexpr size_t kSelectArrays = 3;

const Window& SelectWindowOf(const Instr& instr) {
  return instr.attrs<WindowAttrs>().window;
}

// Windows along one dimension that may contain an element.
int64_t WindowsAround(const WindowDim& dim) {
  return (dim.size + dim.stride - 1) / dim.stride;
}

class Asker {
 public:
  Asker(KernelBuilder& b, ElementEmitter& emitter, const Instr& instr, const Coordinates& at)
      : b_(b),
        emitter_(emitter),
        instr_(instr),
        at_(at),
        window_index_(at.size()),
        yes_(b.ConstantBits(ScalarType::kPred, 1)) {}

  Element Run() {
    sum_ = emitter_.At(*instr_.operand(2), {});
    Windows(0, yes_, b_.Index(0));
    return sum_;
  }

 private:
  // Visits the windows around the element, row-major. `tap`: the tap at which it is in the window.
  void Windows(size_t d, Scalar inside, Scalar tap) {
    if (!emitter_.failure().empty()) return;
    if (d == at_.size()) return Ask(inside, tap);
    const WindowDim& dim = SelectWindowOf(instr_)[d];
    int64_t windows = instr_.operand(1)->shape().dim(d);
    Scalar shifted = at_[d] + b_.Index(dim.pad_low);
    for (int64_t back = WindowsAround(dim); back-- > 0;) {
      // Before the first window the quotient is unused, but it is still in range.
      Scalar first = GreaterOf(shifted, b_.Index(0)) / b_.Index(dim.stride) - b_.Index(back);
      Scalar own = shifted - first * b_.Index(dim.stride);
      Scalar holds = (b_.Index(0) <= first) & (first < b_.Index(windows)) & (b_.Index(0) <= own) &
                     (own < b_.Index(dim.size));
      if (b_.kernel().IsConstant(holds.id()) && b_.kernel().node(holds.id()).bits == 0) continue;
      window_index_[d] = LesserOf(GreaterOf(first, b_.Index(0)), b_.Index(windows - 1));
      Windows(d + 1, inside & holds, tap * b_.Index(dim.size) + own);
    }
  }

  void Ask(Scalar inside, Scalar tap) {
    Scalar selected = Selected();
    if (!emitter_.failure().empty()) return;
    Scalar hit = inside & (selected == tap.As(ScalarType::kS32));
    Element source = emitter_.At(*instr_.operand(1), window_index_);
    std::optional<Element> next = Applied(1, sum_, source);
    if (!next) return;
    sum_ = Choose(hit, *next, sum_);
  }

  // The tap that the window at window_index_ selects.
  Scalar Selected() {
    const Window& window = SelectWindowOf(instr_);
    const Dims& sizes = instr_.operand(0)->shape().dims();
    int64_t taps = 1;
    for (const WindowDim& dim : window) taps *= dim.size;
    Element best;
    Scalar chosen = b_.Constant(ScalarType::kS32, -1), any = b_.ConstantBits(ScalarType::kPred, 0);
    for (int64_t t = 0; t < taps && emitter_.failure().empty(); ++t) {
      Coordinates from(at_.size());
      Scalar inside = yes_;
      int64_t rest = t;
      for (size_t d = at_.size(); d-- > 0;) {
        Scalar shifted = window_index_[d] * b_.Index(window[d].stride) +
                         b_.Index(rest % window[d].size - window[d].pad_low);
        rest /= window[d].size;
        inside = inside & (b_.Index(0) <= shifted) & (shifted < b_.Index(sizes[d]));
        from[d] = LesserOf(GreaterOf(shifted, b_.Index(0)), b_.Index(sizes[d] - 1));
      }
      Element seen = emitter_.At(*instr_.operand(0), from);
      if (!best[0].ok()) best = seen;
      std::optional<Element> keeps = Applied(0, best, seen);
      if (!keeps) break;
      Scalar takes = inside & !(any & (*keeps)[0]);
      best = Choose(takes, seen, best);
      chosen = Choose(takes, b_.Constant(ScalarType::kS32, static_cast<double>(t)), chosen);
      any = any | inside;
    }
    return chosen;
  }

  std::optional<Element> Applied(size_t body, Element x, Element y) {
    std::vector<Element> arguments = {x, y};
    for (size_t i = kSelectArrays; i < instr_.operand_count(); ++i)
      arguments.push_back(emitter_.At(*instr_.operand(i), {}));
    if (!emitter_.failure().empty()) return std::nullopt;
    std::optional<std::vector<Element>> results =
        ApplyBody(b_, *instr_.called(body), arguments, /*wide=*/false);
    if (results) return (*results)[0];
    emitter_.Fail("select-and-scatter: its computation has no scalar formula");
    return std::nullopt;
  }

  KernelBuilder& b_;
  ElementEmitter& emitter_;
  const Instr& instr_;
  const Coordinates& at_;
  Coordinates window_index_;
  Scalar yes_;
  Element sum_;
};

}  // namespace

int64_t WindowsPerResult(const Instr& instr) {
  int64_t windows = 1;
  for (const WindowDim& dim : SelectWindowOf(instr)) windows *= WindowsAround(dim);
  return windows;
}

int64_t TapsPerResult(const Instr& instr) {
  int64_t taps = WindowsPerResult(instr);
  for (const WindowDim& dim : SelectWindowOf(instr)) taps *= dim.size;
  return taps;
}

std::optional<std::string> WhyNoSelectAndScatterCode(const Instr& instr) {
  for (const Instr* operand : instr.operands())
    if (!IsPlainArray(operand->shape()) || operand->shape().ElementCount() == 0)
      return "select-and-scatter: of an empty array";
  ElementType type = instr.shape().type();
  for (size_t i = 0; i < kSelectArrays; ++i)
    if (instr.operand(i)->shape().type() != type) return "select-and-scatter: of mixed types";
  for (const WindowDim& dim : SelectWindowOf(instr))
    if (dim.window_dilation != 1 || dim.base_dilation != 1 || dim.reversed || dim.size < 1)
      return "select-and-scatter: of a dilated window";
  if (TapsPerResult(instr) > kSelectMostTaps)
    return "select-and-scatter: an element is in too many windows";
  KernelBuilder b("probe");
  for (const Computation* body : instr.called()) {
    std::vector<Element> arguments;
    for (const Instr* parameter : body->parameters()) {
      if (!IsPlainArray(parameter->shape()))
        return "select-and-scatter: the parameters of its computations are not scalars";
      ElementType own = parameter->shape().type();
      if (arguments.size() < 2 && own != type) return "select-and-scatter: of mixed types";
      arguments.push_back(ConstantElement(b, own, 1));
    }
    if (!ApplyBody(b, *body, arguments, /*wide=*/false))
      return "select-and-scatter: its computation has no scalar formula";
  }
  return std::nullopt;
}

Element SelectAndScatterAt(KernelBuilder& b, ElementEmitter& emitter, const Instr& instr,
                           const Coordinates& at) {
  return Asker(b, emitter, instr, at).Run();
}

}  // namespace tokamak
