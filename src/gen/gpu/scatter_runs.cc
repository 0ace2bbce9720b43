// Scatters whose windows of one place stand side by side: runs.
//
//   a thread for each vector of some neighbouring windows
//     all places of these windows, and of one before and one behind them
//     what is at the places, and the updates, of runs that begin here: all loads are in flight
//     each run is combined in registers, in order, and stored
//     the last run: on through the windows of other threads, which leave those alone
//
// Nothing is atomic. Where windows may be combined in any order, no run is longer than a thread's
// windows (passes/target/sort_scatters.cc), and nobody goes on.

#include <algorithm>
#include <numeric>

#include "gen/gpu/gpu.h"
#include "gen/scatter_elements.h"

namespace tokamak::gpu {
namespace {

constexpr int64_t kRunsMostThreads = 128, kRunsFewestThreads = 32;
// Windows of a thread, at most those of vectors and of elements that are one or two; at least,
// where runs are short; and threads of a multiprocessor that are worth more than more windows.
constexpr int64_t kOfVectors = 16, kOfElements = 32, kNarrow = 2, kFewest = 4, kThreadsOfCore = 512;

class RunsBuilder {
 public:
  RunsBuilder(const Region& region, const Machine& machine, const std::string& name)
      : region_(region),
        scatter_(*region.roots[0]),
        machine_(machine),
        b_(name, Dialect::kGpu),
        emitter_(b_, region),
        elements_(b_, emitter_, scatter_) {}

  BuildOutcome Build() {
    const Dims& window = elements_.window_dims();
    windows_ = elements_.windows();
    lanes_ = LanesFor(region_, machine_, window.empty() ? 1 : window.back(),
                      windows_ * elements_.window());
    int64_t vectors = elements_.window() / lanes_;
    own_ = WindowsOfThread();
    while (own_ > 2 * kFewest && windows_ * vectors < own_ * kThreadsOfCore * machine_.cores)
      own_ /= 2;
    int64_t all = CeilDiv(windows_, own_) * vectors;
    int64_t threads = ThreadsFor(all, kRunsMostThreads, kRunsFewestThreads, machine_);
    NewRegisters();
    int64_t grid = ForThreads(b_, all, threads, [&](Scalar number) {
      in_window_ = number % b_.Index(vectors) * b_.Index(lanes_);
      Windows(number / b_.Index(vectors) * b_.Index(own_));
    });
    BuildOutcome outcome = FinishTeams(b_, emitter_, region_, grid);
    if (BuiltKernel* built = outcome.built ? &*outcome.built : nullptr)
      built->updates.emplace_back(built->arguments.size() - 1, scatter_.operand(0));
    return outcome;
  }

 private:
  using Parts = std::array<std::optional<ArrayId>, 2>;

  // Half of a run in the mean, if places have several windows: what is loaded of other threads'
  // runs is little then, and so are registers.
  int64_t WindowsOfThread() const {
    int64_t most = elements_.window() <= kNarrow ? kOfElements : kOfVectors;
    int64_t places = std::max<int64_t>(
        scatter_.shape().ElementCount() / std::max<int64_t>(elements_.window(), 1), 1);
    int64_t half = windows_ / places / 2;
    return half == 0 ? most : std::clamp(PowerBelow(half), kFewest, most);
  }

  void NewRegisters() {
    FindUnit();
    ElementType type = scatter_.shape().type();
    bool is_narrow = scatter_.shape().ElementCount() <= INT32_MAX;
    place_type_ = is_narrow ? ScalarType::kS32 : ScalarType::kS64;
    places_ = b_.Local("places", place_type_, Space::kRegisters, own_ + 2);
    next_ = b_.Local("next", ScalarType::kS32, Space::kRegisters, 1);
    for (size_t part = 0; part < (IsComplex(type) ? 2u : 1u); ++part) {
      ScalarType scalar = ComputeType(type);
      updates_[part] = b_.Local("updates", scalar, Space::kRegisters, own_ * lanes_);
      if (!IsFilled()) old_[part] = b_.Local("old", scalar, Space::kRegisters, own_ * lanes_);
      sums_[part] = b_.Local("sum", scalar, Space::kRegisters, lanes_);
    }
  }

  // Places are multiples of what a step along any of the dimensions moves by.
  void FindUnit() {
    const Dims& dims = scatter_.shape().dims();
    unit_ = 0;
    for (int64_t d : scatter_.attrs<ScatterAttrs>().scatter_dims_to_operand_dims)
      unit_ = std::gcd(unit_, ProductOf(dims, static_cast<size_t>(d) + 1, dims.size()));
    unit_ = std::max<int64_t>(unit_, 1);
  }

  // Whether the array has one known number everywhere, which need not be loaded.
  bool IsFilled() const {
    const Instr* value = scatter_.operand(0);
    while (value->op() == Op::kBroadcast || value->op() == Op::kReshape) value = value->operand(0);
    return value->op() == Op::kConstant && value->shape().ElementCount() == 1 &&
           IsReal(scatter_.shape().type());
  }
  Element Filling() {
    const Instr* value = scatter_.operand(0);
    while (value->op() != Op::kConstant) value = value->operand(0);
    return ConstantElement(b_, scatter_.shape().type(),
                           value->attrs<ConstantAttrs>().literal.DoubleAt(0));
  }

  template <typename Body>
  void ForOwn(int64_t count, Body&& body) {
    b_.For("i", LoopRole::kUnrolled, b_.Index(count), body);
  }

  void Windows(Scalar first) {
    Scalar last = b_.Index(windows_ - 1);
    ReadPlaces(first);
    if (!emitter_.fault().empty()) return;
    Scalar any = IsMine(b_.Index(0));
    for (int64_t i = 1; i < own_; ++i) any = any | IsMine(b_.Index(i));
    b_.If(any, [&] { Runs(first, last); });
  }

  void Runs(Scalar first, Scalar last) {
    // Those of other threads: one and the same, so that no load waits for a branch.
    ForOwn(own_, [&](Scalar i) {
      LoadUpdate(i, Choose(IsMine(i), LesserOf(first + i, last), b_.Index(0)));
      if (old_[0]) b_.If(IsMine(i) & IsFirst(i), [&] { LoadOld(i); });
    });
    ForOwn(own_, [&](Scalar i) { b_.If(IsMine(i), [&] { Combine(i); }); });
    Scalar at = Place(own_), behind = Place(own_ + 1);
    b_.If((at >= 0.0) & (at == behind) & (at != Place(0)), [&] {
      GoOn(first + b_.Index(own_), at);
      StoreSum(at);
    });
  }

  void ReadPlaces(Scalar first) {
    Scalar one = b_.Index(1), last = b_.Index(windows_ - 1);
    ForOwn(own_ + 2, [&](Scalar i) {
      Scalar window = first + i - one, inside = LesserOf(GreaterOf(window, b_.Index(0)), last);
      Scalar place = PlaceOfWindow(inside);
      if (place.ok()) b_.Store(places_, i, Choose(window == inside, place, place.Like(-1)));
    });
  }

  // The number of a window's place, in units; -1: outside of the array.
  Scalar PlaceOfWindow(Scalar window) {
    std::vector<Scalar> starts = elements_.Starts(elements_.BatchAt(window));
    if (!emitter_.fault().empty()) return {};
    Scalar fits = elements_.Fits(starts), place = b_.Index(0);
    starts = elements_.Bounded(starts);
    const Dims& dims = scatter_.shape().dims();
    for (size_t d = 0; d < starts.size(); ++d)
      if (starts[d].ok())
        place = place + starts[d] * b_.Index(ProductOf(dims, d + 1, dims.size()) / unit_);
    place = place.As(place_type_);
    return Choose(fits, place, place.Like(-1));
  }
  Scalar Place(int64_t i) { return b_.Read(places_, b_.Index(i)); }
  Scalar PlaceOf(Scalar i) { return b_.Read(places_, i + b_.Index(1)); }
  // Windows of the last run before these are another thread's.
  Scalar IsMine(Scalar i) {
    Scalar at = PlaceOf(i);
    return (at >= 0.0) & (at != Place(0));
  }
  Scalar IsFirst(Scalar i) { return PlaceOf(i) != b_.Read(places_, i); }

  Coordinates InWindow(Scalar lane) {
    return Delinearized(b_, in_window_ + lane, elements_.window_dims());
  }
  // Where an element of the window at a place lies in the array.
  Scalar ElementAt(Scalar place, Scalar lane) {
    int64_t most = (scatter_.shape().ElementCount() - 1) / unit_;
    Scalar inside = LesserOf(GreaterOf(place.As(ScalarType::kIndex), b_.Index(0)), b_.Index(most));
    Scalar in_window =
        elements_.PlaceOf({}, std::vector<Scalar>(elements_.extent().size()), InWindow(lane));
    return inside * b_.Index(unit_) + in_window;
  }

  void LoadUpdate(Scalar i, Scalar window) {
    Coordinates batch = elements_.BatchAt(window);
    ForLanes(b_, lanes_, [&](Scalar l) {
      Set(updates_, i * b_.Index(lanes_) + l, elements_.UpdateAt(batch, InWindow(l)));
    });
  }
  void LoadOld(Scalar i) {
    ForLanes(b_, lanes_, [&](Scalar l) {
      Set(old_, i * b_.Index(lanes_) + l, elements_.Old(ElementAt(PlaceOf(i), l)));
    });
  }

  void Combine(Scalar i) {
    Scalar place = PlaceOf(i), behind = b_.Read(places_, i + b_.Index(2));
    b_.If(IsFirst(i), [&] {
      ForLanes(b_, lanes_, [&](Scalar l) {
        Set(sums_, l, old_[0] ? Get(old_, i * b_.Index(lanes_) + l) : Filling());
      });
    });
    Join(i);
    b_.If(place != behind, [&] { StoreSum(place); });
  }

  void Join(Scalar i) {
    ForLanes(b_, lanes_, [&](Scalar l) {
      Set(sums_, l, elements_.Joined(Get(sums_, l), Get(updates_, i * b_.Index(lanes_) + l)));
    });
  }

  void StoreSum(Scalar place) {
    ForLanes(b_, lanes_, [&](Scalar l) { elements_.Store(ElementAt(place, l), Get(sums_, l)); });
  }

  // Windows from `window` on that are at this place, too.
  void GoOn(Scalar window, Scalar place) {
    Scalar zero = b_.Index(0), last = b_.Index(windows_ - 1);
    b_.Store(next_, zero, window.As(ScalarType::kS32));
    auto next = [&] {
      return LesserOf(GreaterOf(b_.Read(next_, zero).As(ScalarType::kIndex), zero), last);
    };
    b_.While([&] { return Place(own_ + 1) == place; },
             [&] {
               Scalar first = next();
               ReadPlaces(first);
               ForOwn(own_, [&](Scalar i) {
                 LoadUpdate(i, Choose(PlaceOf(i) == place, LesserOf(first + i, last), zero));
               });
               ForOwn(own_, [&](Scalar i) { b_.If(PlaceOf(i) == place, [&] { Join(i); }); });
               b_.Store(next_, zero, (first + b_.Index(own_)).As(ScalarType::kS32));
             });
  }

  Element Get(const Parts& parts, Scalar at) {
    Element value;
    for (size_t part = 0; part < 2; ++part)
      if (parts[part]) value[part] = b_.Read(*parts[part], at);
    return value;
  }
  void Set(const Parts& parts, Scalar at, const Element& value) {
    for (size_t part = 0; part < 2; ++part)
      if (parts[part] && value[part].ok()) b_.Store(*parts[part], at, value[part]);
  }

  const Region& region_;
  const Instr& scatter_;
  const Machine& machine_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  ScatterElements elements_;
  int64_t windows_ = 1, own_ = 1, lanes_ = 1, unit_ = 1;
  ScalarType place_type_{};
  Scalar in_window_;  // the first element of the thread's vector
  // Places of the thread's windows, from the one before them to the one behind them.
  ArrayId places_{}, next_{};
  Parts updates_, old_, sums_;
};

}  // namespace

BuildOutcome BuildScatterRuns(const Region& region, const Machine& machine,
                              const std::string& name) {
  return RunsBuilder(region, machine, name).Build();
}

}  // namespace tokamak::gpu
