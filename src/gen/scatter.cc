// The scatter generator: updates are combined into the array in place, in the order of their
// indices. Elements of one window never meet, so that windows are cut into stretches of vectors and
// these are the grid; each walks through all windows:
//
//   for each stretch of a window (the grid)
//     for each index vector (serial)
//       if its window lies inside: combine, vector by vector
//
// Windows that begin anywhere, and single elements, are one thread's work.

#include <algorithm>

#include "gen/scatter_elements.h"

namespace tokamak {
namespace {

class ScatterBuilder {
 public:
  ScatterBuilder(const Region& region, const Machine& machine, const std::string& name)
      : region_(region),
        machine_(machine),
        b_(name),
        emitter_(b_, region),
        elements_(b_, emitter_, *region.roots[0]) {}

  BuildOutcome Build() {
    const Dims& dims = elements_.window_dims();
    int64_t window = elements_.window(), lanes = 1;
    if (!dims.empty())
      while (lanes < machine_.Lanes(32) && dims.back() % (2 * lanes) == 0) lanes *= 2;
    BuiltKernel built;
    bool apart = !elements_.WindowsShift();
    int64_t vectors = window / lanes, stretch = apart ? StretchOf(vectors) : vectors;
    built.grid = vectors / stretch;
    auto combine = [&](const Coordinates& batch, const std::vector<Scalar>& starts, Scalar w) {
      auto one = [&](Scalar element) {
        elements_.Combine(batch, starts, Delinearized(b_, element, dims));
      };
      if (lanes == 1) return one(w);
      b_.For("l", LoopRole::kVector, b_.Index(lanes),
             [&](Scalar l) { one(w * b_.Index(lanes) + l); });
    };
    b_.For("g", LoopRole::kGrid, b_.Index(built.grid), [&](Scalar g) {
      b_.For("i", LoopRole::kSerial, b_.Index(elements_.windows()), [&](Scalar i) {
        Coordinates batch = elements_.BatchAt(i);
        std::vector<Scalar> starts = elements_.Starts(batch);
        if (!emitter_.fault().empty()) return;
        b_.If(elements_.Fits(starts), [&] {
          Scalar first = g * b_.Index(stretch);
          if (stretch == 1) return combine(batch, starts, first);
          b_.For("w", LoopRole::kSerial, b_.Index(stretch),
                 [&](Scalar w) { combine(batch, starts, first + w); });
        });
      });
    });
    if (!emitter_.fault().empty()) return {std::nullopt, emitter_.fault()};
    built.kernel = b_.Finish();
    built.arguments = ArgumentsOf(region_);
    built.updates.emplace_back(built.arguments.size() - 1, region_.roots[0]->operand(0));
    FinishFacts(built, false);
    return {std::move(built), ""};
  }

 private:
  // The most vectors that leave every thread a few stretches.
  int64_t StretchOf(int64_t vectors) const {
    int64_t stretch = std::max<int64_t>(1, vectors / (2 * machine_.cores));
    while (vectors % stretch != 0) --stretch;
    return stretch;
  }

  const Region& region_;
  const Machine& machine_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  ScatterElements elements_;
};

}  // namespace

std::optional<std::string> WhyNoScatter(const Instr& scatter) {
  if (scatter.operand_count() != 3 || scatter.captures() > 0 || !scatter.shape().IsArray())
    return "scatter: of several arrays";
  ElementType type = scatter.shape().type();
  bool unmoved = scatter.attrs<ScatterAttrs>().scatter_dims_to_operand_dims.empty();
  for (const Instr* operand : scatter.operands())
    if (!IsPlainArray(operand->shape()) ||
        (operand->shape().ElementCount() == 0 && !(unmoved && operand == scatter.operand(1))))
      return "scatter: of an empty array";
  const Computation& body = *scatter.called(0);
  if (scatter.operand(0)->shape().type() != type || scatter.operand(2)->shape().type() != type ||
      body.parameters().size() != 2)
    return "scatter: of mixed types";
  KernelBuilder b("probe");
  std::vector<Element> arguments;
  for (const Instr* parameter : body.parameters()) {
    if (!parameter->shape().IsArray() || parameter->shape().type() != type)
      return "scatter: its computation takes other types";
    arguments.push_back(ConstantElement(b, type, 1));
  }
  if (!ApplyBody(b, body, arguments, false)) return "scatter: its computation has no formula";
  return std::nullopt;
}

BuildOutcome BuildScatter(const Region& region, const Machine& machine, const std::string& name) {
  if (std::string why = WhyNoScatterRegion(region); !why.empty()) return {std::nullopt, why};
  return ScatterBuilder(region, machine, name).Build();
}

}  // namespace tokamak
