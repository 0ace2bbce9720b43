#include "fusion/sort_scatters.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "fusion/sort_words.h"
#include "fusion/window_places.h"
#include "gen/generator.h"
#include "gen/gpu/gpu.h"

namespace tokamak {
namespace {

// Windows that threads walk through sooner than they are sorted; on a GPU of one multiprocessor
// (the simulator's) none, so that small programs do as large ones.
int64_t FewWindows(const Machine& machine) {
  return std::min<int64_t>(64, machine.cores / 2);
}

int BitsOf(int64_t greatest) {
  return std::bit_width(static_cast<uint64_t>(greatest));
}

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
  }

  bool Fits() const { return place_bits_ + number_bits_ <= 64; }

  void Run(const Machine& machine) {
    Instr* lines = Reshaped(make_, Words(), {1, windows_.count()});
    WordOrder order{.from = number_bits_, .bits = place_bits_};
    Instr* sorted = Reshaped(make_, SortedWords(make_, lines, order, machine), {windows_.count()});
    Instr* place = make_.Make(Op::kShiftRightLogical, word_, {sorted, Word(number_bits_)});
    Instr* number = make_.Make(Op::kAnd, word_, {sorted, Word((int64_t{1} << number_bits_) - 1)});
    ScatterAttrs attrs;
    attrs.scatter_dims_to_operand_dims = windows_.moved();
    const ScatterAttrs& old = scatter_.attrs<ScatterAttrs>();
    attrs.inserted_window_dims = old.inserted_window_dims;
    attrs.inserted_window_dims.insert(attrs.inserted_window_dims.end(),
                                      old.input_batching_dims.begin(),
                                      old.input_batching_dims.end());
    std::sort(attrs.inserted_window_dims.begin(), attrs.inserted_window_dims.end());
    for (size_t d = 0; d < old.update_window_dims.size(); ++d)
      attrs.update_window_dims.push_back(static_cast<int64_t>(d) + 1);
    attrs.index_vector_dim = 1;
    attrs.indices_are_sorted = true;
    Instr* made =
        make_.Make(Op::kScatter, scatter_.shape(),
                   {scatter_.operand(0), Indices(place), Fetched(number)}, std::move(attrs));
    made->set_called({scatter_.called(0)});
    make_.Replace(made);
  }

 private:
  Instr* Word(int64_t value) {
    return make_.Spread(make_.Constant(Literal::ScalarInt(word_.type(), value)), word_);
  }

  // The place of each window, and below it its number.
  Instr* Words() {
    Dims strides(scatter_.shape().dims().size(), 0);
    int64_t stride = 1;
    for (size_t i = places_.size(); i-- > 0; stride *= places_[i])
      strides[static_cast<size_t>(windows_.moved()[i])] = stride;
    Instr* place = make_.Make(Op::kConvert, word_, {windows_.Sum(strides, place_count_)});
    place = make_.Make(Op::kShiftLeft, word_, {place, Word(number_bits_)});
    return make_.Make(Op::kOr, word_, {place, make_.Make(Op::kIota, word_, {}, IotaAttrs{0})});
  }

  Instr* AsIndex(Instr* word, ElementType type) {
    return make_.Make(Op::kConvert, Shape::Array(type, {windows_.count()}), {word});
  }

  // The index vectors of places; one behind the last place is outside along the first dimension.
  Instr* Indices(Instr* place) {
    ElementType type =
        place_count_ <= std::numeric_limits<int32_t>::max() ? ElementType::kS32 : ElementType::kS64;
    Shape line = Shape::Array(type, {windows_.count()});
    Instr* rest = AsIndex(place, type);
    auto number = [&](int64_t value) {
      return make_.Spread(make_.Constant(Literal::ScalarInt(type, value)), line);
    };
    std::vector<Instr*> along(places_.size());
    for (size_t i = places_.size(); i-- > 0;) {
      bool is_first = i == 0;
      Instr* own = is_first ? rest : make_.Make(Op::kRemainder, line, {rest, number(places_[i])});
      if (!is_first) rest = make_.Make(Op::kDivide, line, {rest, number(places_[i])});
      along[i] = Reshaped(make_, own, {windows_.count(), 1});
    }
    if (along.size() == 1) return along[0];
    Dims dims = {windows_.count(), static_cast<int64_t>(along.size())};
    return make_.Make(Op::kConcatenate, Shape::Array(type, dims), along, DimensionAttrs{1});
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
                      {updates, AsIndex(number, ElementType::kS32)}, std::move(fetch));
  }

  Instr& scatter_;
  Expansion make_;
  WindowPlaces windows_;
  Dims places_;
  int64_t place_count_ = 1;
  int place_bits_ = 0, number_bits_ = 0;
  Shape word_;
};

bool TrySort(Instr& scatter, DecisionLog& log, const Machine& machine) {
  if (WhyNoScatter(scatter) || IsTied(scatter) || gpu::IsCounts(scatter)) return false;
  const ScatterAttrs& attrs = scatter.attrs<ScatterAttrs>();
  bool in_order = attrs.indices_are_sorted && attrs.input_batching_dims.empty();
  if (attrs.scatter_dims_to_operand_dims.empty() || attrs.unique_indices || in_order ||
      WindowsShift(scatter))
    return false;
  int64_t windows = scatter.operand(2)->shape().ElementCount();
  for (int64_t extent : WindowExtent(scatter)) windows /= extent;
  if (windows <= std::max<int64_t>(1, FewWindows(machine)) ||
      windows > std::numeric_limits<int32_t>::max())
    return false;
  SortedScatter sorted(scatter);
  if (!sorted.Fits()) return false;
  log.Add({.pass = "fuse",
           .rule = "scatter.sorted",
           .subject = LabelOf(scatter),
           .origins = scatter.origins(),
           .because = std::to_string(windows) + " windows"});
  sorted.Run(machine);
  return true;
}

}  // namespace

void SortScatters(Module& module, DecisionLog& log, const Machine& machine) {
  if (!machine.is_gpu()) return;
  for (size_t i = 0, count = module.computations().size(); i < count; ++i) {
    Computation& computation = *module.computations()[i];
    bool changed = false;
    for (Instr* instr : computation.Instrs())
      if (instr->op() == Op::kScatter && TrySort(*instr, log, machine)) changed = true;
    if (changed) computation.PutInOrder();
  }
}

}  // namespace tokamak
