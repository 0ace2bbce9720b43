// Scatters whose windows with equal indices are adjacent ("runs").
//
//   one thread per vector of several adjacent windows
//     load the indices of these windows, and of the window before and after them
//     load old values and updates of the runs that start here: all loads are in flight
//     combine each run in registers, in order, and store it
//     the last run continues through the windows of other threads, which skip those
//
// There are no atomics. If windows may be combined in any order, no run is longer than a thread's
// windows (passes/target/sort_scatters.cc), and runs never continue.

#include <algorithm>
#include <numeric>

#include "gen/gpu/gpu.h"
#include "gen/scatter_elements.h"

namespace tokamak::gpu {
namespace {

// Maximum and minimum block size. Chosen: threads take unequal time, and a small block frees its
// registers sooner; a warp is the least that an SM runs.
constexpr int64_t kRunsMostThreads = 128, kRunsFewestThreads = kWarpSize;
// Windows per thread: maximum for vectors, maximum for windows of up to kNarrow elements, minimum
// for short runs. Chosen: with few windows, most of those that a thread loads belong to runs of
// others; with many, their indices take registers and fewer threads are left.
constexpr int64_t kOfVectors = 16, kOfElements = 32, kNarrow = 2, kMinWindows = 4;
// Windows per thread over kMinWindows that few threads may give up. Chosen: below that, too many
// runs cross threads.
constexpr int64_t kKeptWindows = 2 * kMinWindows;

class RunsBuilder {
 public:
  RunsBuilder(const FusedRegion& region, const Machine& machine, const std::string& name)
      : region_(region),
        scatter_(*region.roots[0]),
        machine_(machine),
        b_(name, Dialect::kGpu),
        emitter_(b_, region),
        elements_(b_, emitter_, scatter_) {}

  BuildOutcome Build() {
    const Dims& window = elements_.window_dims();
    windows_ = elements_.window_count();
    lanes_ = VectorWidthFor(region_, machine_, window.empty() ? 1 : window.back(),
                            windows_ * elements_.window_size());
    int64_t vectors = elements_.window_size() / lanes_;
    own_ = WindowsOfThread();
    while (own_ > kKeptWindows && windows_ * vectors < own_ * kThreadsWanted * machine_.cores)
      own_ /= 2;
    int64_t all = CeilDiv(windows_, own_) * vectors;
    int64_t threads = BlockSizeFor(all, kRunsMostThreads, kRunsFewestThreads, machine_);
    NewRegisters();
    int64_t grid = ForThreads(b_, all, threads, [&](Scalar number) {
      in_window_ = number % b_.Index(vectors) * b_.Index(lanes_);
      Windows(number / b_.Index(vectors) * b_.Index(own_));
    });
    BuildOutcome outcome = FinishBlockKernel(b_, emitter_, region_, grid);
    if (BuiltKernel* built = outcome.built ? &*outcome.built : nullptr)
      built->must_alias.emplace_back(built->arguments.size() - 1, scatter_.operand(0));
    return outcome;
  }

 private:
  using Parts = std::array<std::optional<ArrayId>, 2>;

  // Half of the mean run length, if indices recur: then few loads of other threads' runs are
  // wasted, and few registers are needed.
  int64_t WindowsOfThread() const {
    int64_t most = elements_.window_size() <= kNarrow ? kOfElements : kOfVectors;
    int64_t index_count = std::max<int64_t>(
        scatter_.shape().ElementCount() / std::max<int64_t>(elements_.window_size(), 1), 1);
    int64_t half = windows_ / index_count / 2;
    return half == 0 ? most : std::clamp(FloorPowerOfTwo(half), kMinWindows, most);
  }

  void NewRegisters() {
    FindUnit();
    ElementType type = scatter_.shape().type();
    bool is_narrow = scatter_.shape().ElementCount() <= INT32_MAX;
    index_type_ = is_narrow ? ScalarType::kS32 : ScalarType::kS64;
    indices_ = b_.Local("starts", index_type_, Space::kRegisters, own_ + 2);
    next_ = b_.Local("next", ScalarType::kS32, Space::kRegisters, 1);
    for (size_t component = 0; component < (IsComplex(type) ? 2u : 1u); ++component) {
      ScalarType scalar = ComputeType(type);
      updates_[component] = b_.Local("updates", scalar, Space::kRegisters, own_ * lanes_);
      if (!IsFilled()) old_[component] = b_.Local("old", scalar, Space::kRegisters, own_ * lanes_);
      sums_[component] = b_.Local("sum", scalar, Space::kRegisters, lanes_);
    }
  }

  // The greatest common divisor of all window offsets.
  void FindUnit() {
    const Dims& dims = scatter_.shape().dims();
    unit_ = 0;
    for (int64_t d : scatter_.attrs<ScatterAttrs>().scatter_dims_to_operand_dims)
      unit_ = std::gcd(unit_, ProductOf(dims, static_cast<size_t>(d) + 1, dims.size()));
    unit_ = std::max<int64_t>(unit_, 1);
  }

  // Whether the array is a splat constant, which need not be loaded.
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
    ReadIndices(first);
    if (!emitter_.failure().empty()) return;
    Scalar any = IsMine(b_.Index(0));
    for (int64_t i = 1; i < own_; ++i) any = any | IsMine(b_.Index(i));
    b_.If(any, [&] { Runs(first, last); });
  }

  void Runs(Scalar first, Scalar last) {
    // Windows of other threads load window 0 instead, so that no load depends on a branch.
    ForOwn(own_, [&](Scalar i) {
      LoadUpdate(i, Choose(IsMine(i), LesserOf(first + i, last), b_.Index(0)));
      if (old_[0]) b_.If(IsMine(i) & IsFirst(i), [&] { LoadOld(i); });
    });
    ForOwn(own_, [&](Scalar i) { b_.If(IsMine(i), [&] { Combine(i); }); });
    Scalar at = IndexAt(own_), behind = IndexAt(own_ + 1);
    b_.If((at >= 0.0) & (at == behind) & (at != IndexAt(0)), [&] {
      ContinueRun(first + b_.Index(own_), at);
      StoreSum(at);
    });
  }

  void ReadIndices(Scalar first) {
    Scalar one = b_.Index(1), last = b_.Index(windows_ - 1);
    ForOwn(own_ + 2, [&](Scalar i) {
      Scalar window = first + i - one, inside = LesserOf(GreaterOf(window, b_.Index(0)), last);
      Scalar index = IndexOfWindow(inside);
      if (index.ok()) b_.Store(indices_, i, Choose(window == inside, index, index.Like(-1)));
    });
  }

  // A window's offset in units; -1 if it is out of bounds.
  Scalar IndexOfWindow(Scalar window) {
    std::vector<Scalar> starts = elements_.Starts(elements_.WindowCoordinates(window));
    if (!emitter_.failure().empty()) return {};
    Scalar fits = elements_.IsInBounds(starts), index = b_.Index(0);
    starts = elements_.ClampedStarts(starts);
    const Dims& dims = scatter_.shape().dims();
    for (size_t d = 0; d < starts.size(); ++d)
      if (starts[d].ok())
        index = index + starts[d] * b_.Index(ProductOf(dims, d + 1, dims.size()) / unit_);
    index = index.As(index_type_);
    return Choose(fits, index, index.Like(-1));
  }
  Scalar IndexAt(int64_t i) { return b_.Read(indices_, b_.Index(i)); }
  Scalar IndexOf(Scalar i) { return b_.Read(indices_, i + b_.Index(1)); }
  // Windows that continue the run before these belong to another thread.
  Scalar IsMine(Scalar i) {
    Scalar at = IndexOf(i);
    return (at >= 0.0) & (at != IndexAt(0));
  }
  Scalar IsFirst(Scalar i) { return IndexOf(i) != b_.Read(indices_, i); }

  Coordinates InWindow(Scalar lane) {
    return Delinearized(b_, in_window_ + lane, elements_.window_dims());
  }
  // The array index of an element of the window at an index.
  Scalar ElementAt(Scalar index, Scalar lane) {
    int64_t most = (scatter_.shape().ElementCount() - 1) / unit_;
    Scalar inside = LesserOf(GreaterOf(index.As(ScalarType::kIndex), b_.Index(0)), b_.Index(most));
    Scalar in_window = elements_.IndexOf({}, std::vector<Scalar>(elements_.window_extents().size()),
                                         InWindow(lane));
    return inside * b_.Index(unit_) + in_window;
  }

  void LoadUpdate(Scalar i, Scalar window) {
    Coordinates window_at = elements_.WindowCoordinates(window);
    ForLanes(b_, lanes_, [&](Scalar l) {
      Set(updates_, i * b_.Index(lanes_) + l, elements_.UpdateAt(window_at, InWindow(l)));
    });
  }
  void LoadOld(Scalar i) {
    ForLanes(b_, lanes_, [&](Scalar l) {
      Set(old_, i * b_.Index(lanes_) + l, elements_.Old(ElementAt(IndexOf(i), l)));
    });
  }

  void Combine(Scalar i) {
    Scalar index = IndexOf(i), behind = b_.Read(indices_, i + b_.Index(2));
    b_.If(IsFirst(i), [&] {
      ForLanes(b_, lanes_, [&](Scalar l) {
        Set(sums_, l, old_[0] ? Get(old_, i * b_.Index(lanes_) + l) : Filling());
      });
    });
    Join(i);
    b_.If(index != behind, [&] { StoreSum(index); });
  }

  void Join(Scalar i) {
    ForLanes(b_, lanes_, [&](Scalar l) {
      Set(sums_, l,
          elements_.CombineElements(Get(sums_, l), Get(updates_, i * b_.Index(lanes_) + l)));
    });
  }

  void StoreSum(Scalar index) {
    ForLanes(b_, lanes_, [&](Scalar l) { elements_.Store(ElementAt(index, l), Get(sums_, l)); });
  }

  // Combines the windows from `window` on that have the same index.
  void ContinueRun(Scalar window, Scalar index) {
    Scalar zero = b_.Index(0), last = b_.Index(windows_ - 1);
    b_.Store(next_, zero, window.As(ScalarType::kS32));
    auto next = [&] {
      return LesserOf(GreaterOf(b_.Read(next_, zero).As(ScalarType::kIndex), zero), last);
    };
    b_.While([&] { return IndexAt(own_ + 1) == index; },
             [&] {
               Scalar first = next();
               ReadIndices(first);
               ForOwn(own_, [&](Scalar i) {
                 LoadUpdate(i, Choose(IndexOf(i) == index, LesserOf(first + i, last), zero));
               });
               ForOwn(own_, [&](Scalar i) { b_.If(IndexOf(i) == index, [&] { Join(i); }); });
               b_.Store(next_, zero, (first + b_.Index(own_)).As(ScalarType::kS32));
             });
  }

  Element Get(const Parts& parts, Scalar at) {
    Element value;
    for (size_t component = 0; component < 2; ++component)
      if (parts[component]) value[component] = b_.Read(*parts[component], at);
    return value;
  }
  void Set(const Parts& parts, Scalar at, const Element& value) {
    for (size_t component = 0; component < 2; ++component)
      if (parts[component] && value[component].ok())
        b_.Store(*parts[component], at, value[component]);
  }

  const FusedRegion& region_;
  const Instr& scatter_;
  const Machine& machine_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  ScatterElements elements_;
  int64_t windows_ = 1, own_ = 1, lanes_ = 1, unit_ = 1;
  ScalarType index_type_{};
  Scalar in_window_;  // first element of the thread's vector
  // Indices of the thread's windows, from the one before them to the one after them.
  ArrayId indices_{}, next_{};
  Parts updates_, old_, sums_;
};

}  // namespace

BuildOutcome BuildScatterRuns(const FusedRegion& region, const Machine& machine,
                              const std::string& name) {
  return RunsBuilder(region, machine, name).Build();
}

}  // namespace tokamak::gpu
