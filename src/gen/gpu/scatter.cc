// GPU scatters: updates are combined in place, in index order, deterministically. There are no
// atomics: exactly one thread accesses an element of the array.
//
//   unique indices: one thread per vector of each window
//   windows with equal indices adjacent: scatter_runs.cc; other scatters are sorted into this form
//     first (passes/target/sort_scatters.cc)
//   few windows that overlap completely or not at all: one thread per element of a window and group
//     of indices (index modulo the number of groups), which visits all windows
//   windows that may overlap partially: one thread per array element, likewise
//   histograms of batches: counts.cc

#include <algorithm>

#include "gen/gpu/gpu.h"
#include "gen/scatter_elements.h"

namespace tokamak::gpu {
namespace {

// Block size. Chosen: no barriers, so small blocks spread few threads over more SMs. Maximum
// threads that visit all windows. Chosen: each reads all indices, so more threads only repeat
// reads.
constexpr int64_t kScatterThreads = 128, kScatterMostThreads = 1 << 15;

class ScatterBuilder {
 public:
  ScatterBuilder(const FusedRegion& region, const Machine& machine, const std::string& name)
      : region_(region),
        machine_(machine),
        attrs_(region.roots[0]->attrs<ScatterAttrs>()),
        dims_(region.roots[0]->shape().dims()),
        b_(name, Dialect::kGpu),
        emitter_(b_, region),
        elements_(b_, emitter_, *region.roots[0]) {}

  // Whether windows with equal indices are adjacent.
  bool HasRuns() const {
    return attrs_.indices_are_sorted && attrs_.input_batching_dims.empty() &&
           !attrs_.unique_indices && elements_.window_count() > 1 &&
           !elements_.WindowsMayPartlyOverlap();
  }

  BuildOutcome Build() {
    shifts_ = elements_.WindowsMayPartlyOverlap();
    bool differ = attrs_.unique_indices || elements_.window_count() == 1;
    int64_t grid = !shifts_ && differ ? Vectors() : Walks();
    BuildOutcome outcome = FinishBlockKernel(b_, emitter_, region_, grid);
    if (BuiltKernel* built = outcome.built ? &*outcome.built : nullptr)
      built->must_alias.emplace_back(built->arguments.size() - 1, region_.roots[0]->operand(0));
    return outcome;
  }

 private:
  // ---- one thread per vector of a window

  int64_t Vectors() {
    const Dims& window = elements_.window_dims();
    int64_t windows = elements_.window_count(), row = window.empty() ? 1 : window.back();
    lanes_ = VectorWidthFor(region_, machine_, row, windows * elements_.window_size());
    int64_t vectors = elements_.window_size() / lanes_, all = windows * vectors;
    int64_t threads = BlockSizeFor(all, kBlockThreads, kFewBlockThreads, machine_);
    return ForThreads(b_, all, threads, [&](Scalar number) {
      first_ = number % b_.Index(vectors) * b_.Index(lanes_);
      Vector(number / b_.Index(vectors));
    });
  }

  void Vector(Scalar window) {
    Coordinates window_at = elements_.WindowCoordinates(window);
    std::vector<Scalar> starts = elements_.Starts(window_at);
    if (!emitter_.failure().empty()) return;
    Scalar fits = elements_.IsInBounds(starts);
    std::vector<Scalar> bounded = elements_.ClampedStarts(starts);
    b_.If(fits, [&] {
      ForLanes(b_, lanes_, [&](Scalar l) { elements_.Combine(window_at, bounded, InWindow(l)); });
    });
  }

  Coordinates InWindow(Scalar lane) {
    return Delinearized(b_, first_ + lane, elements_.window_dims());
  }

  // ---- threads that visit all windows

  int64_t Walks() {
    int64_t window = elements_.window_size(), count = ProductOf(dims_, 0, dims_.size());
    if (!shifts_) {
      int64_t wanted = std::max<int64_t>(1, kScatterMostThreads / window);
      groups_ = FloorPowerOfTwo(std::max<int64_t>(
          1, std::min({wanted, elements_.window_count(), count / std::max<int64_t>(window, 1)})));
    }
    int64_t all = shifts_ ? count : window * groups_;
    int64_t threads = std::min(kScatterThreads, all), blocks = CeilDiv(all, threads);
    b_.For("block", LoopRole::kGrid, b_.Index(blocks), [&](Scalar g) {
      b_.For("t", LoopRole::kThread, b_.Index(threads), [&](Scalar t) {
        Scalar number = g * b_.Index(threads) + t;
        b_.If(number < b_.Index(all), [&] {
          b_.For("i", LoopRole::kSerial, b_.Index(elements_.window_count()),
                 [&](Scalar i) { Visit(number, i); });
        });
      });
    });
    return blocks;
  }

  // Processes window i.
  void Visit(Scalar number, Scalar i) {
    Coordinates window_at = elements_.WindowCoordinates(i);
    std::vector<Scalar> starts = elements_.Starts(window_at);
    if (!emitter_.failure().empty()) return;
    Scalar mine = elements_.IsInBounds(starts);
    starts = elements_.ClampedStarts(starts);
    if (shifts_) {
      Coordinates in_window =
          elements_.CoordinatesInWindow(window_at, starts, Delinearized(b_, number, dims_), mine);
      b_.If(mine, [&] { elements_.Combine(window_at, starts, in_window); });
      return;
    }
    int64_t size = elements_.window_size();
    Scalar element = number % b_.Index(size), group = number / b_.Index(size);
    b_.If(mine, [&] {
      Scalar index = elements_.FirstIndex(window_at, starts) % b_.Index(groups_);
      b_.If(index == group, [&] {
        elements_.Combine(window_at, starts, Delinearized(b_, element, elements_.window_dims()));
      });
    });
  }

  const FusedRegion& region_;
  const Machine& machine_;
  const ScatterAttrs& attrs_;
  const Dims& dims_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  ScatterElements elements_;
  // Vectors: the first element of the thread's vector in the window.
  int64_t lanes_ = 1;
  Scalar first_;
  // Threads that visit all windows.
  bool shifts_ = false;
  int64_t groups_ = 1;
};

}  // namespace

BuildOutcome BuildScatter(const FusedRegion& region, const Machine& machine,
                          const std::string& name) {
  if (std::string why = WhyNotScatterRegion(region); !why.empty()) return {std::nullopt, why};
  if (IsHistogram(*region.roots[0])) return BuildHistogram(region, machine, name);
  ScatterBuilder builder(region, machine, name);
  return builder.HasRuns() ? BuildScatterRuns(region, machine, name) : builder.Build();
}

}  // namespace tokamak::gpu
