// The scatter of a GPU: updates are combined in place, in the order of their indices, whatever they
// are. Nothing is atomic: of all threads one alone touches an element of the array.
//
//   windows at places that are known to differ: a thread for each vector of each window,
//   windows of which those of one place stand side by side: scatter_runs.cc. Others are put in that
//     order first (passes/target/sort_scatters.cc),
//   few windows that never meet but as a whole: a thread for each element of a window and each
//     group of places (the number of a place modulo the number of groups), which walks through all
//     windows,
//   windows that begin anywhere: a thread for each element of the array, likewise,
//   ones that are added up, of batches: counts.cc.

#include <algorithm>

#include "gen/gpu/gpu.h"
#include "gen/scatter_elements.h"

namespace tokamak::gpu {
namespace {

constexpr int64_t kScatterThreads = 128, kScatterMostThreads = 1 << 15;
// Of a team whose threads have a vector of a window each.
constexpr int64_t kVectorThreads = 256, kScatterFewestThreads = 64;

class ScatterBuilder {
 public:
  ScatterBuilder(const Region& region, const Machine& machine, const std::string& name)
      : region_(region),
        machine_(machine),
        attrs_(region.roots[0]->attrs<ScatterAttrs>()),
        dims_(region.roots[0]->shape().dims()),
        b_(name, Dialect::kGpu),
        emitter_(b_, region),
        elements_(b_, emitter_, *region.roots[0]) {}

  // Windows of one place stand side by side.
  bool HasRuns() const {
    return attrs_.indices_are_sorted && attrs_.input_batching_dims.empty() &&
           !attrs_.unique_indices && elements_.windows() > 1 && !elements_.WindowsShift();
  }

  BuildOutcome Build() {
    shifts_ = elements_.WindowsShift();
    bool differ = attrs_.unique_indices || elements_.windows() == 1;
    int64_t grid = !shifts_ && differ ? Vectors() : Walks();
    BuildOutcome outcome = FinishTeams(b_, emitter_, region_, grid);
    if (BuiltKernel* built = outcome.built ? &*outcome.built : nullptr)
      built->updates.emplace_back(built->arguments.size() - 1, region_.roots[0]->operand(0));
    return outcome;
  }

 private:
  // ---- a thread for a vector of a window

  int64_t Vectors() {
    const Dims& window = elements_.window_dims();
    int64_t windows = elements_.windows(), row = window.empty() ? 1 : window.back();
    lanes_ = LanesFor(region_, machine_, row, windows * elements_.window());
    int64_t vectors = elements_.window() / lanes_, all = windows * vectors;
    int64_t threads = ThreadsFor(all, kVectorThreads, kScatterFewestThreads, machine_);
    return ForThreads(b_, all, threads, [&](Scalar number) {
      first_ = number % b_.Index(vectors) * b_.Index(lanes_);
      Vector(number / b_.Index(vectors));
    });
  }

  void Vector(Scalar window) {
    Coordinates batch = elements_.BatchAt(window);
    std::vector<Scalar> starts = elements_.Starts(batch);
    if (!emitter_.fault().empty()) return;
    Scalar fits = elements_.Fits(starts);
    std::vector<Scalar> bounded = elements_.Bounded(starts);
    b_.If(fits, [&] {
      ForLanes(b_, lanes_, [&](Scalar l) { elements_.Combine(batch, bounded, InWindow(l)); });
    });
  }

  Coordinates InWindow(Scalar lane) {
    return Delinearized(b_, first_ + lane, elements_.window_dims());
  }

  // ---- threads that walk through all windows

  int64_t Walks() {
    int64_t window = elements_.window(), count = ProductOf(dims_, 0, dims_.size());
    if (!shifts_) {
      int64_t wanted = std::max<int64_t>(1, kScatterMostThreads / window);
      groups_ = PowerBelow(std::max<int64_t>(
          1, std::min({wanted, elements_.windows(), count / std::max<int64_t>(window, 1)})));
    }
    int64_t all = shifts_ ? count : window * groups_;
    int64_t threads = std::min(kScatterThreads, all), blocks = CeilDiv(all, threads);
    b_.For("block", LoopRole::kGrid, b_.Index(blocks), [&](Scalar g) {
      b_.For("t", LoopRole::kThread, b_.Index(threads), [&](Scalar t) {
        Scalar number = g * b_.Index(threads) + t;
        b_.If(number < b_.Index(all), [&] {
          b_.For("i", LoopRole::kSerial, b_.Index(elements_.windows()),
                 [&](Scalar i) { Visit(number, i); });
        });
      });
    });
    return blocks;
  }

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
  const Machine& machine_;
  const ScatterAttrs& attrs_;
  const Dims& dims_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  ScatterElements elements_;
  // Of vectors: the first element of the thread's own, in the window.
  int64_t lanes_ = 1;
  Scalar first_;
  // Of walks.
  bool shifts_ = false;
  int64_t groups_ = 1;
};

}  // namespace

BuildOutcome BuildScatter(const Region& region, const Machine& machine, const std::string& name) {
  if (std::string why = WhyNoScatterRegion(region); !why.empty()) return {std::nullopt, why};
  if (IsCounts(*region.roots[0])) return BuildCounts(region, machine, name);
  ScatterBuilder builder(region, machine, name);
  return builder.HasRuns() ? BuildScatterRuns(region, machine, name) : builder.Build();
}

}  // namespace tokamak::gpu
