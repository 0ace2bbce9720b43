// The scatter of a GPU: updates are combined in place, in the order of their indices, whatever they
// are. Nothing is atomic: of all threads one alone touches an element of the array.
//
//   windows at places that are known to differ: a thread for each vector of each window,
//   windows in the order of their places: the same, but only those of the first window of a place
//     do something, and go on with the windows behind it that have the same place; what they
//     combine stays in registers. Others are put in that order first (fusion/sort_scatters.h),
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

constexpr int64_t kThreads = 128, kMostThreads = 1 << 15;
// Of a team whose threads have a vector of a window each.
constexpr int64_t kVectorThreads = 256, kFewestThreads = 64;

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

  BuildOutcome Build() {
    shifts_ = elements_.WindowsShift();
    bool differ = attrs_.unique_indices || elements_.windows() == 1;
    bool in_order = attrs_.indices_are_sorted && attrs_.input_batching_dims.empty();
    int64_t grid = !shifts_ && (differ || in_order) ? Vectors(differ) : Walks();
    BuildOutcome outcome = FinishTeams(b_, emitter_, region_, grid);
    if (BuiltKernel* built = outcome.built ? &*outcome.built : nullptr)
      built->updates.emplace_back(built->arguments.size() - 1, region_.roots[0]->operand(0));
    return outcome;
  }

 private:
  // ---- a thread for a vector of a window

  int64_t Vectors(bool differ) {
    const Dims& window = elements_.window_dims();
    int64_t windows = elements_.windows(), row = window.empty() ? 1 : window.back();
    lanes_ = LanesFor(region_, machine_, row, windows * elements_.window());
    int64_t vectors = elements_.window() / lanes_, all = windows * vectors;
    int64_t threads = ThreadsFor(all, kVectorThreads, kFewestThreads, machine_);
    int64_t blocks = CeilDiv(all, threads);
    if (!differ) {
      next_ = b_.Local("next", ScalarType::kS32, Space::kRegisters, 1);
      ElementType type = region_.roots[0]->shape().type();
      for (size_t part = 0; part < (IsComplex(type) ? 2u : 1u); ++part)
        sums_[part] = b_.Local("sum", ComputeType(type), Space::kRegisters, lanes_);
    }
    b_.For("block", LoopRole::kGrid, b_.Index(blocks), [&](Scalar g) {
      b_.For("t", LoopRole::kThread, b_.Index(threads), [&](Scalar t) {
        Scalar number = g * b_.Index(threads) + t;
        b_.If(number < b_.Index(all), [&] {
          first_ = number % b_.Index(vectors) * b_.Index(lanes_);
          Vector(number / b_.Index(vectors), differ);
        });
      });
    });
    return blocks;
  }

  void Vector(Scalar window, bool differ) {
    Coordinates batch = elements_.BatchAt(window);
    std::vector<Scalar> starts = elements_.Starts(batch);
    if (!emitter_.fault().empty()) return;
    Scalar fits = elements_.Fits(starts), one = b_.Index(1);
    std::vector<Scalar> bounded = elements_.Bounded(starts);
    if (differ) {
      b_.If(fits, [&] {
        ForLanes(b_, lanes_, [&](Scalar l) { elements_.Combine(batch, bounded, InWindow(l)); });
      });
      return;
    }
    std::vector<Scalar> before = StartsAt(GreaterOf(window - one, b_.Index(0)));
    Scalar is_first = (window == b_.Index(0)) | !elements_.AreEqual(before, starts);
    b_.If(fits & is_first, [&] { CombineAll(window, starts, bounded); });
  }

  // All windows at one place, of which this one is the first.
  void CombineAll(Scalar window, const std::vector<Scalar>& starts,
                  const std::vector<Scalar>& bounded) {
    Scalar zero = b_.Index(0), one = b_.Index(1), count = b_.Index(elements_.windows());
    Coordinates batch = elements_.BatchAt(window);
    auto place = [&](Scalar l) { return elements_.PlaceOf(batch, bounded, InWindow(l)); };
    ForLanes(b_, lanes_, [&](Scalar l) {
      Element update = elements_.UpdateAt(batch, InWindow(l));
      SetSum(l, elements_.Joined(elements_.Old(place(l)), update));
    });
    b_.Store(next_, zero, (window + one).As(ScalarType::kS32));
    auto next = [&] {
      return LesserOf(GreaterOf(b_.Read(next_, zero).As(ScalarType::kIndex), zero), count);
    };
    b_.While(
        [&] {
          Scalar at = next();
          std::vector<Scalar> of = StartsAt(LesserOf(at, count - one));
          return (at < count) & elements_.AreEqual(of, starts);
        },
        [&] {
          Scalar at = LesserOf(next(), count - one);
          Coordinates own = elements_.BatchAt(at);
          ForLanes(b_, lanes_, [&](Scalar l) {
            SetSum(l, elements_.Joined(Sum(l), elements_.UpdateAt(own, InWindow(l))));
          });
          b_.Store(next_, zero, (at + one).As(ScalarType::kS32));
        });
    ForLanes(b_, lanes_, [&](Scalar l) { elements_.Store(place(l), Sum(l)); });
  }

  std::vector<Scalar> StartsAt(Scalar window) {
    return elements_.Starts(elements_.BatchAt(window));
  }
  Coordinates InWindow(Scalar lane) {
    return Delinearized(b_, first_ + lane, elements_.window_dims());
  }
  Element Sum(Scalar lane) {
    Element sum;
    for (size_t part = 0; part < 2; ++part)
      if (sums_[part]) sum[part] = b_.Read(*sums_[part], lane);
    return sum;
  }
  void SetSum(Scalar lane, const Element& value) {
    for (size_t part = 0; part < 2; ++part)
      if (sums_[part] && value[part].ok()) b_.Store(*sums_[part], lane, value[part]);
  }

  // ---- threads that walk through all windows

  int64_t Walks() {
    int64_t window = elements_.window(), count = ProductOf(dims_, 0, dims_.size());
    if (!shifts_) {
      int64_t wanted = std::max<int64_t>(1, kMostThreads / window);
      groups_ = PowerBelow(std::max<int64_t>(
          1, std::min({wanted, elements_.windows(), count / std::max<int64_t>(window, 1)})));
    }
    int64_t all = shifts_ ? count : window * groups_;
    int64_t threads = std::min(kThreads, all), blocks = CeilDiv(all, threads);
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
  ArrayId next_{};
  std::array<std::optional<ArrayId>, 2> sums_;
  // Of walks.
  bool shifts_ = false;
  int64_t groups_ = 1;
};

}  // namespace

BuildOutcome BuildScatter(const Region& region, const Machine& machine, const std::string& name) {
  if (std::string why = WhyNoScatterRegion(region); !why.empty()) return {std::nullopt, why};
  if (IsCounts(*region.roots[0])) return BuildCounts(region, machine, name);
  return ScatterBuilder(region, machine, name).Build();
}

}  // namespace tokamak::gpu
