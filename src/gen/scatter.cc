// The scatter generator: updates are combined into the array in place, in the order of their
// indices. Elements of one window never meet, nor do those of two batches, so that windows are cut
// into stretches of vectors and these, of each batch, are the grid; each walks through all windows:
//
//   for each batch and stretch of a window (the grid)
//     for each index vector of the batch (serial)
//       if its window lies inside: combine, vector by vector
//
// Windows that begin anywhere, and single elements, are one thread's work.

#include <algorithm>

#include "gen/scatter_elements.h"

namespace tokamak {
namespace {

// Batches that are work for all threads, and bytes of one of which two are near enough.
constexpr int64_t kManyBatches = 16, kSmallBatch = 1 << 16;

class ScatterBuilder {
 public:
  ScatterBuilder(const Region& region, const Machine& machine, const std::string& name)
      : region_(region),
        machine_(machine),
        b_(name),
        emitter_(b_, region),
        elements_(b_, emitter_, *region.roots[0]) {}

  BuildOutcome Build() {
    window_ = elements_.window();
    if (const Dims& dims = elements_.window_dims(); !dims.empty())
      while (lanes_ < machine_.Lanes(32) && dims.back() % (2 * lanes_) == 0) lanes_ *= 2;
    int64_t vectors = window_ / lanes_, batches = elements_.batches();
    windows_ = elements_.windows() / batches;
    bool apart = !elements_.WindowsShift() && batches < kManyBatches;
    stretch_ = apart ? StretchOf(vectors) : vectors;
    int64_t stretches = vectors / stretch_, together = TogetherOf(batches);
    BuiltKernel built;
    built.grid = batches / together * stretches;
    b_.For("g", LoopRole::kGrid, b_.Index(built.grid), [&](Scalar g) {
      Scalar batch = g / b_.Index(stretches), stretch = g % b_.Index(stretches);
      b_.For("i", LoopRole::kSerial, b_.Index(windows_), [&](Scalar i) {
        for (int64_t k = 0; k < together; ++k)
          CombineWindow(batch * b_.Index(together) + b_.Index(k), i, stretch);
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
  // Part of window i of a batch.
  void CombineWindow(Scalar batch, Scalar i, Scalar stretch) {
    Coordinates at = elements_.BatchAt(batch, i);
    std::vector<Scalar> starts = elements_.Starts(at);
    if (!emitter_.fault().empty()) return;
    auto combine = [&](Scalar w) {
      auto one = [&](Scalar element) {
        elements_.Combine(at, starts, Delinearized(b_, element, elements_.window_dims()));
      };
      if (lanes_ == 1) return one(w);
      b_.For("l", LoopRole::kVector, b_.Index(lanes_),
             [&](Scalar l) { one(w * b_.Index(lanes_) + l); });
    };
    b_.If(elements_.Fits(starts), [&] {
      Scalar first = stretch * b_.Index(stretch_);
      if (stretch_ == 1) return combine(first);
      b_.For("w", LoopRole::kSerial, b_.Index(stretch_), [&](Scalar w) { combine(first + w); });
    });
  }

  // Batches that one thread goes through side by side: an element that comes again soon is waited
  // for, one of another batch is not.
  int64_t TogetherOf(int64_t batches) const {
    const Shape& shape = region_.roots[0]->shape();
    bool small = window_ == 1 && shape.ByteSize() / batches <= kSmallBatch;
    return small && batches % 2 == 0 && batches >= kManyBatches ? 2 : 1;
  }

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
  int64_t window_ = 1, windows_ = 1, lanes_ = 1, stretch_ = 1;
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
