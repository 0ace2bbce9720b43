// Scatters as sorted runs, for GPUs. The windows of a scatter are sorted by start index, so that
// windows with the same start are adjacent (a run) and one thread can combine a run. The sort is
// stable: the combinations and their order are those of the unsorted scatter, whatever the
// combiner.
//
//   word of window w = | start index | w |     sorted by the start; updates are gathered by w
//
// A run can be as long as the input. If the combiner is associative and commutative, runs are cut
// at segment boundaries. The leading windows of a segment that continue a run are combined into one
// partial window. The partial windows, one per segment of 256, are scattered by the same scheme.
//
// Requires windows that coincide or are disjoint. A start index of start_count_ means out of
// bounds. Scatters with the same indices share one sort.

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <map>

#include "gen/generator.h"
#include "gen/gpu/gpu.h"
#include "gen/reducer.h"
#include "passes/passes.h"
#include "passes/target/radix_sort.h"
#include "passes/target/split_sizes.h"
#include "passes/target/window_starts.h"
#include "rewrite/edit_computations.h"

namespace tokamak {
namespace {

// At most this many windows are scattered sequentially, which is faster than sorting them. 0 on a
// GPU with one SM (the simulated one), so that small programs take the same path as large ones.
int64_t FewWindows(const Machine& machine) {
  // Count of windows. Chosen: one after another they take some 10 us, as the kernels of a sort do.
  constexpr int64_t kFewWindows = 64;
  return std::min(kFewWindows, machine.cores / 2);
}

// kManyOfRest: minimum partial windows that are combined by segments again. Chosen: few of them
// have the same start, so below it a scatter in order costs less than kernels. kScatterSegment:
// windows per segment. Chosen: a block of threads scans one. kManyPerStart: windows per start index
// on average. Chosen: from there on, the array is small beside the updates.
constexpr int64_t kManyOfRest = 4096, kScatterSegment = 256, kManyPerStart = 4;
int64_t ManyWindows(const Machine& machine) {
  // Count of windows. Chosen: a sort has several kernels, which fewer windows do not repay.
  constexpr int64_t kManyWindows = 8192;
  return std::min(kManyWindows, 2 * kScatterSegment * machine.cores);
}

int BitsOf(int64_t greatest) {
  return std::bit_width(static_cast<uint64_t>(greatest));
}

// Identifies scatters whose windows have the same start indices: they are sorted once.
struct StartsKey {
  const Instr* indices;
  Dims moved, start_counts, inserted, batching, indices_batching;
  int64_t vector_dim;
  auto operator<=>(const StartsKey&) const = default;
};
using SortedStarts = std::map<StartsKey, Instr*>;

class SortedScatter {
 public:
  explicit SortedScatter(Instr& scatter)
      : scatter_(scatter), make_(scatter), windows_(scatter, make_) {
    starts_ = windows_.StartsAlong();
    for (int64_t along : starts_) start_count_ *= along;
    start_bits_ = BitsOf(start_count_);  // one more value: out of bounds
    number_bits_ = BitsOf(windows_.count() - 1);
    bool narrow = start_bits_ + number_bits_ <= 32;
    word_ = Shape::Array(narrow ? ElementType::kU32 : ElementType::kU64, {windows_.count()});
    index_ =
        start_count_ <= std::numeric_limits<int32_t>::max() ? ElementType::kS32 : ElementType::kS64;
  }

  bool Fits() const { return start_bits_ + number_bits_ <= 64; }

  void Run(const Machine& machine, SortedStarts& known) {
    Instr*& line = known[Key()];
    if (line == nullptr) {
      Instr* lines = make_.Reshaped(Words(), {1, windows_.count()});
      line = RadixSort(make_, lines, {.from = number_bits_, .bits = start_bits_}, machine);
    }
    // Padding is at the end of the line and is never read.
    Instr* whole = line->op() == Op::kSlice ? line->operand(0) : line;
    whole_ = make_.Reshaped(whole, {whole->shape().dim(1)});
    Instr* sorted = make_.Reshaped(line, {windows_.count()});
    Instr* number = make_.Make(Op::kAnd, word_, {sorted, Word(LowerBits(), word_)});
    Windows windows{
        .count = windows_.count(), .start = StartOf(sorted), .updates = Fetched(number)};
    windows.start_at = [this](Instr* numbers) { return StartOf(WordsAt(numbers)); };
    make_.Replace(Combined(OwnArray(), windows, ManyWindows(machine)));
  }

 private:
  // If the array is a broadcast constant with other users, creates a separate broadcast, which
  // avoids a copy.
  Instr* OwnArray() {
    Instr* array = scatter_.operand(0);
    if (array->op() != Op::kBroadcast || array->operand(0)->op() != Op::kConstant ||
        array->operand(0)->shape().rank() != 0 || array->users().size() == 1)
      return array;
    return make_.Broadcast(array->operand(0), array->shape());
  }

  // Windows in which those with the same start are adjacent.
  struct Windows {
    int64_t count = 0;
    Instr *start = nullptr, *updates = nullptr;
    std::function<Instr*(Instr*)> start_at = {};  // the starts of the windows with these numbers
  };

  StartsKey Key() const {
    const ScatterAttrs& attrs = scatter_.attrs<ScatterAttrs>();
    return {scatter_.operand(1),
            windows_.moved(),
            starts_,
            attrs.scatter_dims_to_operand_dims,
            attrs.input_batching_dims,
            attrs.scatter_indices_batching_dims,
            attrs.index_vector_dim};
  }

  int64_t LowerBits() const { return (int64_t{1} << number_bits_) - 1; }
  Instr* Word(int64_t value, const Shape& shape) {
    return make_.Filled(shape, Literal::ScalarInt(shape.type(), value));
  }
  Instr* Both(Op op, Instr* x, Instr* y) { return make_.Make(op, x->shape(), {x, y}); }
  Instr* With(Op op, Instr* x, int64_t y) { return Both(op, x, Word(y, x->shape())); }
  Instr* Compared(CompareDirection direction, Instr* x, Instr* y) {
    return make_.Make(Op::kCompare, Shape::Array(ElementType::kPred, x->shape().dims()), {x, y},
                      CompareAttrs{direction, CompareType::kNone});
  }
  Instr* Chosen(Instr* when, Instr* x, Instr* y) {
    return make_.Make(Op::kSelect, x->shape(), {when, x, y});
  }
  Instr* Counted(int64_t count) {
    return make_.Make(Op::kIota, Shape::Array(ElementType::kS32, {count}), {}, IotaAttrs{0});
  }

  // The start of each window in the upper bits, its number in the lower bits.
  Instr* Words() {
    Dims strides(scatter_.shape().dims().size(), 0);
    int64_t stride = 1;
    for (size_t i = starts_.size(); i-- > 0; stride *= starts_[i])
      strides[static_cast<size_t>(windows_.moved()[i])] = stride;
    Instr* start = make_.Make(Op::kConvert, word_, {windows_.Sum(strides, start_count_)});
    start = With(Op::kShiftLeft, start, number_bits_);
    return Both(Op::kOr, start, make_.Make(Op::kIota, word_, {}, IotaAttrs{0}));
  }
  Instr* WordsAt(Instr* numbers) {
    GatherAttrs fetch;
    fetch.collapsed_slice_dims = fetch.start_index_map = {0};
    fetch.index_vector_dim = 1;
    fetch.slice_sizes = {1};
    return make_.Make(Op::kGather, Shape::Array(word_.type(), numbers->shape().dims()),
                      {whole_, numbers}, std::move(fetch));
  }
  Instr* StartOf(Instr* words) {
    return Converted(With(Op::kShiftRightLogical, words, number_bits_), index_);
  }
  Instr* Converted(Instr* x, ElementType type) {
    return make_.Make(Op::kConvert, Shape::Array(type, x->shape().dims()), {x});
  }

  // ---- combining

  // Segmented combination, for combiners in which order does not matter; it bounds the work per
  // thread. In each segment of windows, runs that begin in it are combined at their start index.
  // Leading windows that continue a run from the previous segment are combined into one partial
  // window. The partial windows are then combined in the same way.
  Instr* Combined(Instr* array, const Windows& windows, int64_t many) {
    std::optional<Op> op = CommutativeOpOf(*scatter_.called(0));
    std::optional<Literal> neutral;
    if (op) neutral = NeutralLiteral(*op, scatter_.shape().type());
    if (!neutral || windows.count <= many)
      return Scattered(array, Indices(windows.start), windows.updates, Attrs());
    Windows next{.count = CeilDiv(windows.count, kScatterSegment)};
    Instr* number = With(Op::kDivide, Counted(windows.count), kScatterSegment);
    Instr* before = With(Op::kSubtract, With(Op::kMultiply, number, kScatterSegment), 1);
    Instr* goes_on = GoesOn(windows, windows.start, before);
    if (CanBeLonger(*array, *neutral, windows.count)) {
      array = CombinedAsOne(array, windows, goes_on, number, next);
    } else {
      Instr* none = Word(next.count, number->shape());
      Instr* rest = make_.Filled(ShapeOfRest(windows, next.count), *neutral);
      next.updates =
          Scattered(rest, InVectors(Chosen(goes_on, number, none)), windows.updates, AttrsOfRest());
      none = Word(start_count_, windows.start->shape());
      array =
          Scattered(array, Indices(Chosen(goes_on, none, windows.start)), windows.updates, Attrs());
    }
    next.start_at = [this, &windows](Instr* numbers) {
      Instr* first = With(Op::kMultiply, numbers, kScatterSegment);
      Instr* start = windows.start_at(first);
      Instr* on = GoesOn(windows, start, With(Op::kSubtract, first, 1));
      return Chosen(on, start, Word(start_count_, start->shape()));
    };
    next.start = next.start_at(Counted(next.count));
    return Combined(array, next, kManyOfRest);
  }

  Shape ShapeOfRest(const Windows& windows, int64_t count) const {
    Dims dims = windows.updates->shape().dims();
    dims[0] = count;
    return Shape::Array(scatter_.shape().type(), dims);
  }
  Instr* InVectors(Instr* line) { return make_.Reshaped(line, {line->shape().dim(0), 1}); }

  // Whether one scatter can write both the array and the partial windows, appended to the array.
  // Requires an array filled with the neutral element, small compared with the updates (it is
  // copied), and windows over its last dimensions.
  bool CanBeLonger(const Instr& array, const Literal& neutral, int64_t count) const {
    if (array.op() != Op::kBroadcast || array.operand(0)->op() != Op::kConstant ||
        array.operand(0)->shape().rank() != 0 || !IsReal(array.shape().type()) ||
        array.operand(0)->attrs<ConstantAttrs>().literal.DoubleAt(0) != neutral.DoubleAt(0))
      return false;
    const ScatterAttrs attrs = Attrs();
    for (size_t d = 0; d < attrs.inserted_window_dims.size(); ++d)
      if (attrs.inserted_window_dims[d] != static_cast<int64_t>(d)) return false;
    return attrs.inserted_window_dims.size() == windows_.moved().size() &&
           count >= kManyPerStart * start_count_ &&
           start_count_ + count <= std::numeric_limits<int32_t>::max();
  }

  // One scatter into [starts, partial windows]: the updates are read once instead of twice.
  Instr* CombinedAsOne(Instr* array, const Windows& windows, Instr* goes_on, Instr* number,
                       Windows& next) {
    Shape all = ShapeOfRest(windows, start_count_ + next.count);
    Instr* start = windows.start;
    Instr* outside = Compared(CompareDirection::kEq, start, Word(start_count_, start->shape()));
    start = Chosen(outside, Word(all.dim(0), start->shape()), start);
    start = Chosen(goes_on, With(Op::kAdd, number, start_count_), start);
    Instr* both = Scattered(make_.Broadcast(array->operand(0), all), InVectors(start),
                            windows.updates, AttrsOfRest());
    auto part = [&](int64_t begin, int64_t end) {
      Dims starts(all.dims().size()), limits = all.dims(), ones(all.dims().size(), 1);
      starts[0] = begin;
      limits[0] = end;
      Dims dims = limits;
      dims[0] = end - begin;
      return make_.Make(Op::kSlice, Shape::Array(all.type(), dims), {both},
                        SliceAttrs{starts, limits, ones});
    };
    next.updates = part(start_count_, all.dim(0));
    return make_.Reshaped(part(0, start_count_), array->shape().dims());
  }

  // Whether windows with these starts continue the run of the windows numbered `before`, if those
  // exist.
  Instr* GoesOn(const Windows& windows, Instr* start, Instr* before) {
    Instr* zero = Word(0, before->shape());
    Instr* at = windows.start_at(Both(Op::kMaximum, before, zero));
    Instr* same = Compared(CompareDirection::kEq, start, at);
    Instr* inside = Compared(CompareDirection::kLt, start, Word(start_count_, start->shape()));
    Instr* some = Compared(CompareDirection::kGe, before, zero);
    return Both(Op::kAnd, same, Both(Op::kAnd, inside, some));
  }

  Instr* Scattered(Instr* array, Instr* indices, Instr* updates, ScatterAttrs attrs) {
    attrs.index_vector_dim = 1;
    attrs.indices_are_sorted = true;  // or at least windows with the same start are adjacent
    for (size_t d = 1; d < updates->shape().dims().size(); ++d)
      attrs.update_window_dims.push_back(static_cast<int64_t>(d));
    Shape shape = Shape::Array(array->shape().type(), array->shape().dims());
    Instr* made = make_.Make(Op::kScatter, shape, {array, indices, updates}, std::move(attrs));
    made->set_called({scatter_.called(0)});
    return made;
  }
  ScatterAttrs Attrs() const {
    ScatterAttrs attrs;
    attrs.scatter_dims_to_operand_dims = windows_.moved();
    const ScatterAttrs& old = scatter_.attrs<ScatterAttrs>();
    attrs.inserted_window_dims = old.inserted_window_dims;
    attrs.inserted_window_dims.insert(attrs.inserted_window_dims.end(),
                                      old.input_batching_dims.begin(),
                                      old.input_batching_dims.end());
    std::sort(attrs.inserted_window_dims.begin(), attrs.inserted_window_dims.end());
    return attrs;
  }
  static ScatterAttrs AttrsOfRest() {
    ScatterAttrs attrs;
    attrs.scatter_dims_to_operand_dims = attrs.inserted_window_dims = {0};
    return attrs;
  }

  // The index vectors of the starts; the start after the last one is out of bounds along the first
  // dimension.
  Instr* Indices(Instr* rest) {
    const Dims line = rest->shape().dims();
    std::vector<Instr*> along(starts_.size());
    for (size_t i = starts_.size(); i-- > 0;) {
      bool is_first = i == 0;
      Instr* own = is_first ? rest : With(Op::kRemainder, rest, starts_[i]);
      if (!is_first) rest = With(Op::kDivide, rest, starts_[i]);
      along[i] = make_.Reshaped(own, {line[0], 1});
    }
    if (along.size() == 1) return along[0];
    Dims dims = {line[0], static_cast<int64_t>(along.size())};
    return make_.Make(Op::kConcatenate, Shape::Array(index_, dims), along, DimensionAttrs{1});
  }

  // The updates of the windows with these numbers.
  Instr* Fetched(Instr* number) {
    const Dims window_dims = scatter_.attrs<ScatterAttrs>().update_window_dims;
    Instr* updates = scatter_.operand(2);
    const Dims dims = updates->shape().dims();
    Dims order, moved, flat = {windows_.count()};
    for (int64_t d = 0; d < static_cast<int64_t>(dims.size()); ++d)
      if (std::find(window_dims.begin(), window_dims.end(), d) == window_dims.end())
        order.push_back(d);
    bool in_order = true;
    for (int64_t d : window_dims) {
      in_order = in_order && d == static_cast<int64_t>(order.size());
      order.push_back(d);
      flat.push_back(dims[static_cast<size_t>(d)]);
    }
    ElementType type = updates->shape().type();
    for (int64_t d : order) moved.push_back(dims[static_cast<size_t>(d)]);
    if (!in_order)
      updates =
          make_.Make(Op::kTranspose, Shape::Array(type, moved), {updates}, DimensionsAttrs{order});
    updates = make_.Reshaped(updates, flat);
    GatherAttrs fetch;
    fetch.collapsed_slice_dims = fetch.start_index_map = {0};
    for (size_t d = 1; d < flat.size(); ++d) fetch.offset_dims.push_back(static_cast<int64_t>(d));
    fetch.index_vector_dim = 1;
    fetch.slice_sizes = flat;
    fetch.slice_sizes[0] = 1;
    return make_.Make(Op::kGather, Shape::Array(type, flat),
                      {updates, Converted(number, ElementType::kS32)}, std::move(fetch));
  }

  Instr& scatter_;
  Editor make_;
  WindowStarts windows_;
  Dims starts_;
  int64_t start_count_ = 1;
  int start_bits_ = 0, number_bits_ = 0;
  Shape word_;
  ElementType index_{};     // type of start indices
  Instr* whole_ = nullptr;  // all sorted words
};

bool TrySort(Instr& scatter, PassContext& context, SortedStarts& known) {
  if (WhyNoScatterKernel(scatter) || HasControlDependencies(scatter) || gpu::IsHistogram(scatter))
    return false;
  const ScatterAttrs& attrs = scatter.attrs<ScatterAttrs>();
  bool in_order = attrs.indices_are_sorted && attrs.input_batching_dims.empty();
  if (attrs.scatter_dims_to_operand_dims.empty() || attrs.unique_indices || in_order ||
      WindowsMayPartlyOverlap(scatter))
    return false;
  int64_t windows = scatter.operand(2)->shape().ElementCount();
  for (int64_t extent : WindowExtent(scatter)) windows /= extent;
  if (windows <= std::max<int64_t>(1, FewWindows(context.machine())) ||
      windows > std::numeric_limits<int32_t>::max())
    return false;
  SortedScatter sorted(scatter);
  if (!sorted.Fits()) return false;
  context.Accepted("scatter.sorted", scatter, nullptr, std::to_string(windows) + " windows");
  sorted.Run(context.machine(), known);
  return true;
}

}  // namespace

// GPU only. Record scatter.sorted.
Result<Changed> SortScatters(Module& module, PassContext& context) {
  return EditComputations(module, [&](Computation& computation) {
    bool changed = false;
    SortedStarts known;
    for (Instr* instr : computation.Instrs())
      if (instr->op() == Op::kScatter && TrySort(*instr, context, known)) changed = true;
    return changed;
  });
}

}  // namespace tokamak
