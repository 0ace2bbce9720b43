#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <map>

#include "gen/generator.h"
#include "gen/gpu/gpu.h"
#include "gen/reducer.h"
#include "passes/passes.h"
#include "passes/target/reduction_parts.h"
#include "passes/target/sort_words.h"
#include "passes/target/window_places.h"
#include "rewrite/edit_computations.h"

namespace tokamak {
namespace {

// Windows that threads walk through sooner than they are sorted; on a GPU of one multiprocessor
// (the simulator's) none, so that small programs do as large ones.
int64_t FewWindows(const Machine& machine) {
  return std::min<int64_t>(64, machine.cores / 2);
}

// Windows that are combined in stretches, and of those that are left of stretches: of these few are
// of one place, as a rule. Windows of a stretch, and of each place in the mean where updates are
// much more than the array.
constexpr int64_t kManyOfRest = 4096, kStretch = 256, kManyOfPlace = 4;
int64_t ManyWindows(const Machine& machine) {
  return std::min<int64_t>(8192, 2 * kStretch * machine.cores);
}

int BitsOf(int64_t greatest) {
  return std::bit_width(static_cast<uint64_t>(greatest));
}

// Scatters whose windows begin at the same places: their order is found once.
struct PlacesKey {
  const Instr* indices;
  Dims moved, places, inserted, batching, indices_batching;
  int64_t vector_dim;
  auto operator<=>(const PlacesKey&) const = default;
};
using SortedPlaces = std::map<PlacesKey, Instr*>;

class SortedScatter {
 public:
  explicit SortedScatter(Instr& scatter)
      : scatter_(scatter), make_(scatter), windows_(scatter, make_) {
    places_ = windows_.PlacesAlong();
    for (int64_t along : places_) place_count_ *= along;
    place_bits_ = BitsOf(place_count_);  // one more: outside
    number_bits_ = BitsOf(windows_.count() - 1);
    bool narrow = place_bits_ + number_bits_ <= 32;
    word_ = Shape::Array(narrow ? ElementType::kU32 : ElementType::kU64, {windows_.count()});
    index_ =
        place_count_ <= std::numeric_limits<int32_t>::max() ? ElementType::kS32 : ElementType::kS64;
  }

  bool Fits() const { return place_bits_ + number_bits_ <= 64; }

  void Run(const Machine& machine, SortedPlaces& known) {
    Instr*& line = known[Key()];
    if (line == nullptr) {
      Instr* lines = Reshaped(make_, Words(), {1, windows_.count()});
      line = SortedWords(make_, lines, {.from = number_bits_, .bits = place_bits_}, machine);
    }
    // What made the line longer stands behind it, and is not looked at.
    Instr* whole = line->op() == Op::kSlice ? line->operand(0) : line;
    whole_ = Reshaped(make_, whole, {whole->shape().dim(1)});
    Instr* sorted = Reshaped(make_, line, {windows_.count()});
    Instr* number = make_.Make(Op::kAnd, word_, {sorted, Word(LowerBits(), word_)});
    Windows windows{
        .count = windows_.count(), .place = PlaceOf(sorted), .updates = Fetched(number)};
    windows.place_at = [this](Instr* numbers) { return PlaceOf(WordsAt(numbers)); };
    make_.Replace(Combined(OwnArray(), windows, ManyWindows(machine)));
  }

 private:
  // What holds one number everywhere is filled for this scatter alone: else it is copied.
  Instr* OwnArray() {
    Instr* array = scatter_.operand(0);
    if (array->op() != Op::kBroadcast || array->operand(0)->op() != Op::kConstant ||
        array->operand(0)->shape().rank() != 0 || array->users().size() == 1)
      return array;
    return make_.Broadcast(array->operand(0), array->shape());
  }

  // Windows of which those of one place stand side by side.
  struct Windows {
    int64_t count = 0;
    Instr *place = nullptr, *updates = nullptr;
    std::function<Instr*(Instr*)> place_at = {};  // the places of windows of these numbers
  };

  PlacesKey Key() const {
    const ScatterAttrs& attrs = scatter_.attrs<ScatterAttrs>();
    return {scatter_.operand(1),
            windows_.moved(),
            places_,
            attrs.scatter_dims_to_operand_dims,
            attrs.input_batching_dims,
            attrs.scatter_indices_batching_dims,
            attrs.index_vector_dim};
  }

  int64_t LowerBits() const { return (int64_t{1} << number_bits_) - 1; }
  Instr* Word(int64_t value, const Shape& shape) {
    return make_.Broadcast(make_.Constant(Literal::ScalarInt(shape.type(), value)), shape);
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

  // The place of each window, and below it its number.
  Instr* Words() {
    Dims strides(scatter_.shape().dims().size(), 0);
    int64_t stride = 1;
    for (size_t i = places_.size(); i-- > 0; stride *= places_[i])
      strides[static_cast<size_t>(windows_.moved()[i])] = stride;
    Instr* place = make_.Make(Op::kConvert, word_, {windows_.Sum(strides, place_count_)});
    place = With(Op::kShiftLeft, place, number_bits_);
    return Both(Op::kOr, place, make_.Make(Op::kIota, word_, {}, IotaAttrs{0}));
  }
  Instr* WordsAt(Instr* numbers) {
    GatherAttrs fetch;
    fetch.collapsed_slice_dims = fetch.start_index_map = {0};
    fetch.index_vector_dim = 1;
    fetch.slice_sizes = {1};
    return make_.Make(Op::kGather, Shape::Array(word_.type(), numbers->shape().dims()),
                      {whole_, numbers}, std::move(fetch));
  }
  Instr* PlaceOf(Instr* words) {
    return Converted(With(Op::kShiftRightLogical, words, number_bits_), index_);
  }
  Instr* Converted(Instr* x, ElementType type) {
    return make_.Make(Op::kConvert, Shape::Array(type, x->shape().dims()), {x});
  }

  // ---- combining

  // Where order does not matter, no thread goes far: of each stretch of windows, runs that begin in
  // it are combined at their places; the first ones, if they belong to a run from before, become
  // one window, and these windows are combined likewise.
  Instr* Combined(Instr* array, const Windows& windows, int64_t many) {
    std::optional<Op> op = AnyOrderOp(*scatter_.called(0));
    std::optional<Literal> neutral;
    if (op) neutral = NeutralLiteral(*op, scatter_.shape().type());
    if (!neutral || windows.count <= many)
      return Scattered(array, Indices(windows.place), windows.updates, Attrs());
    Windows next{.count = gpu::CeilDiv(windows.count, kStretch)};
    Instr* number = With(Op::kDivide, Counted(windows.count), kStretch);
    Instr* before = With(Op::kSubtract, With(Op::kMultiply, number, kStretch), 1);
    Instr* goes_on = GoesOn(windows, windows.place, before);
    if (CanBeLonger(*array, *neutral, windows.count)) {
      array = CombinedAsOne(array, windows, goes_on, number, next);
    } else {
      Instr* none = Word(next.count, number->shape());
      Instr* rest = make_.Broadcast(make_.Constant(*neutral), ShapeOfRest(windows, next.count));
      next.updates =
          Scattered(rest, InVectors(Chosen(goes_on, number, none)), windows.updates, AttrsOfRest());
      none = Word(place_count_, windows.place->shape());
      array =
          Scattered(array, Indices(Chosen(goes_on, none, windows.place)), windows.updates, Attrs());
    }
    next.place_at = [this, &windows](Instr* numbers) {
      Instr* first = With(Op::kMultiply, numbers, kStretch);
      Instr* place = windows.place_at(first);
      Instr* on = GoesOn(windows, place, With(Op::kSubtract, first, 1));
      return Chosen(on, place, Word(place_count_, place->shape()));
    };
    next.place = next.place_at(Counted(next.count));
    return Combined(array, next, kManyOfRest);
  }

  Shape ShapeOfRest(const Windows& windows, int64_t count) const {
    Dims dims = windows.updates->shape().dims();
    dims[0] = count;
    return Shape::Array(scatter_.shape().type(), dims);
  }
  Instr* InVectors(Instr* line) { return Reshaped(make_, line, {line->shape().dim(0), 1}); }

  // Whether what is left of stretches may stand behind the array, in one scatter: the array is
  // filled with what changes nothing, it is small beside the updates, as it is copied, and windows
  // are its last dimensions.
  bool CanBeLonger(const Instr& array, const Literal& neutral, int64_t count) const {
    if (array.op() != Op::kBroadcast || array.operand(0)->op() != Op::kConstant ||
        array.operand(0)->shape().rank() != 0 || !IsReal(array.shape().type()) ||
        array.operand(0)->attrs<ConstantAttrs>().literal.DoubleAt(0) != neutral.DoubleAt(0))
      return false;
    const ScatterAttrs attrs = Attrs();
    for (size_t d = 0; d < attrs.inserted_window_dims.size(); ++d)
      if (attrs.inserted_window_dims[d] != static_cast<int64_t>(d)) return false;
    return attrs.inserted_window_dims.size() == windows_.moved().size() &&
           count >= kManyOfPlace * place_count_ &&
           place_count_ + count <= std::numeric_limits<int32_t>::max();
  }

  Instr* CombinedAsOne(Instr* array, const Windows& windows, Instr* goes_on, Instr* number,
                       Windows& next) {
    Shape all = ShapeOfRest(windows, place_count_ + next.count);
    Instr* place = windows.place;
    Instr* outside = Compared(CompareDirection::kEq, place, Word(place_count_, place->shape()));
    place = Chosen(outside, Word(all.dim(0), place->shape()), place);
    place = Chosen(goes_on, With(Op::kAdd, number, place_count_), place);
    Instr* both = Scattered(make_.Broadcast(array->operand(0), all), InVectors(place),
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
    next.updates = part(place_count_, all.dim(0));
    return Reshaped(make_, part(0, place_count_), array->shape().dims());
  }

  // Whether windows at these places are of the run of those of these numbers, if there are such.
  Instr* GoesOn(const Windows& windows, Instr* place, Instr* before) {
    Instr* zero = Word(0, before->shape());
    Instr* at = windows.place_at(Both(Op::kMaximum, before, zero));
    Instr* same = Compared(CompareDirection::kEq, place, at);
    Instr* inside = Compared(CompareDirection::kLt, place, Word(place_count_, place->shape()));
    Instr* some = Compared(CompareDirection::kGe, before, zero);
    return Both(Op::kAnd, same, Both(Op::kAnd, inside, some));
  }

  Instr* Scattered(Instr* array, Instr* indices, Instr* updates, ScatterAttrs attrs) {
    attrs.index_vector_dim = 1;
    attrs.indices_are_sorted = true;  // or at least windows of one place side by side
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

  // The index vectors of places; one behind the last place is outside along the first dimension.
  Instr* Indices(Instr* rest) {
    const Dims line = rest->shape().dims();
    std::vector<Instr*> along(places_.size());
    for (size_t i = places_.size(); i-- > 0;) {
      bool is_first = i == 0;
      Instr* own = is_first ? rest : With(Op::kRemainder, rest, places_[i]);
      if (!is_first) rest = With(Op::kDivide, rest, places_[i]);
      along[i] = Reshaped(make_, own, {line[0], 1});
    }
    if (along.size() == 1) return along[0];
    Dims dims = {line[0], static_cast<int64_t>(along.size())};
    return make_.Make(Op::kConcatenate, Shape::Array(index_, dims), along, DimensionAttrs{1});
  }

  // The updates of windows of these numbers.
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
    updates = Reshaped(make_, updates, flat);
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
  WindowPlaces windows_;
  Dims places_;
  int64_t place_count_ = 1;
  int place_bits_ = 0, number_bits_ = 0;
  Shape word_;
  ElementType index_{};     // of places
  Instr* whole_ = nullptr;  // all words, in order
};

bool TrySort(Instr& scatter, PassContext& context, SortedPlaces& known) {
  if (WhyNoScatter(scatter) || IsTied(scatter) || gpu::IsCounts(scatter)) return false;
  const ScatterAttrs& attrs = scatter.attrs<ScatterAttrs>();
  bool in_order = attrs.indices_are_sorted && attrs.input_batching_dims.empty();
  if (attrs.scatter_dims_to_operand_dims.empty() || attrs.unique_indices || in_order ||
      WindowsShift(scatter))
    return false;
  int64_t windows = scatter.operand(2)->shape().ElementCount();
  for (int64_t extent : WindowExtent(scatter)) windows /= extent;
  if (windows <= std::max<int64_t>(1, FewWindows(context.machine())) ||
      windows > std::numeric_limits<int32_t>::max())
    return false;
  SortedScatter sorted(scatter);
  if (!sorted.Fits()) return false;
  context.Taken("scatter.sorted", scatter, nullptr, std::to_string(windows) + " windows");
  sorted.Run(context.machine(), known);
  return true;
}

}  // namespace

// On GPUs, a scatter of more than a few windows that meet as a whole or not at all becomes one
// whose windows stand in the order of their places, those of one place in the order that they had:
// what is combined, and in which order, stays the same. The number of each window's place, with its
// own number below, is sorted; updates are fetched in that order where they are combined. Of very
// many windows that may be combined in any order, one place may have all: these are several
// scatters, of stretches of windows and of what is left of each.
Result<Changed> SortScatters(Module& module, PassContext& context) {
  return EditComputations(module, [&](Computation& computation) {
    bool changed = false;
    SortedPlaces known;
    for (Instr* instr : computation.Instrs())
      if (instr->op() == Op::kScatter && TrySort(*instr, context, known)) changed = true;
    return changed;
  });
}

}  // namespace tokamak
