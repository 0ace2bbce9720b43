// The scatter of a GPU: updates are combined in place, in the order of their indices, whatever they
// are. Every element of the array has one thread that alone touches it and walks through all
// windows in order:
//
//   windows that never meet but as a whole: a thread for each element of a window and each group of
//     places (the number of a place modulo the number of groups),
//   windows that begin anywhere: a thread for each element of the array.

#include <algorithm>

#include "gen/gpu/gpu.h"
#include "gen/scatter_elements.h"

namespace tokamak::gpu {
namespace {

constexpr int64_t kThreads = 128, kMostThreads = 1 << 15;

class ScatterBuilder {
 public:
  ScatterBuilder(const Region& region, const std::string& name)
      : region_(region),
        dims_(region.roots[0]->shape().dims()),
        b_(name, Dialect::kGpu),
        emitter_(b_, region),
        elements_(b_, emitter_, *region.roots[0]) {}

  BuildOutcome Build() {
    shifts_ = elements_.WindowsShift();
    int64_t window = elements_.window(), count = ProductOf(dims_, 0, dims_.size());
    if (!shifts_) {
      int64_t wanted = std::max<int64_t>(1, kMostThreads / window);
      groups_ = PowerBelow(std::max<int64_t>(
          1, std::min({wanted, elements_.windows(), count / std::max<int64_t>(window, 1)})));
    }
    int64_t all = shifts_ ? count : window * groups_;
    int64_t threads = std::min(kThreads, all);
    BuiltKernel built;
    built.grid = CeilDiv(all, threads);
    b_.For("block", LoopRole::kGrid, b_.Index(built.grid), [&](Scalar g) {
      b_.For("t", LoopRole::kThread, b_.Index(threads), [&](Scalar t) {
        Scalar number = g * b_.Index(threads) + t;
        b_.If(number < b_.Index(all), [&] {
          b_.For("i", LoopRole::kSerial, b_.Index(elements_.windows()),
                 [&](Scalar i) { Visit(number, i); });
        });
      });
    });
    if (!emitter_.fault().empty()) return {std::nullopt, emitter_.fault()};
    built.kernel = b_.Finish();
    FinishKernel(built.kernel);
    built.arguments = ArgumentsOf(region_);
    built.updates.emplace_back(built.arguments.size() - 1, region_.roots[0]->operand(0));
    FinishFacts(built, false);
    return {std::move(built), ""};
  }

 private:
  // What the thread does with window i.
  void Visit(Scalar number, Scalar i) {
    Coordinates batch = elements_.BatchAt(i);
    std::vector<Scalar> starts = elements_.Starts(batch);
    if (!emitter_.fault().empty()) return;
    Scalar mine = elements_.Fits(starts);
    starts = elements_.Bounded(starts);
    if (shifts_) {
      Coordinates window = elements_.WindowAt(batch, starts, Delinearized(b_, number, dims_), mine);
      b_.If(mine, [&] { elements_.Combine(batch, starts, window); });
      return;
    }
    int64_t size = elements_.window();
    Scalar element = number % b_.Index(size), group = number / b_.Index(size);
    b_.If(mine, [&] {
      Scalar place = elements_.FirstPlace(batch, starts) % b_.Index(groups_);
      b_.If(place == group, [&] {
        elements_.Combine(batch, starts, Delinearized(b_, element, elements_.window_dims()));
      });
    });
  }

  const Region& region_;
  const Dims& dims_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  ScatterElements elements_;
  bool shifts_ = false;
  int64_t groups_ = 1;
};

}  // namespace

BuildOutcome BuildScatter(const Region& region, const Machine&, const std::string& name) {
  if (std::string why = WhyNoScatterRegion(region); !why.empty()) return {std::nullopt, why};
  return ScatterBuilder(region, name).Build();
}

}  // namespace tokamak::gpu
