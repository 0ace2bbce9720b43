// top-k of x as a selection of words:
//
//   word = ordered bits of x (inverted if the largest come first), then the index
//
// Words in ascending order are elements in the order of the result, and equal elements by index.
// They are distinct. Methods (gen/top_k_schedule.h), for k = 2:
//
//   reductions   first = min(word);  next = min(word > first ? word : all ones)
//   sort         a radix sort of the words, of which the first two are kept
//   groups       least[g] = min(words of group g);  (g0, g1) = groups of the top 2 of least;
//                top 2 of the words of the elements of g0 and g1
//
// Reductions are row reductions, which fuse with what computes the row.

#include "passes/target/top_k.h"

#include <bit>
#include <functional>
#include <limits>

#include "gen/region.h"
#include "ir/builder.h"
#include "passes/target/packed_words.h"
#include "passes/target/radix_sort.h"
#include "rewrite/bodies.h"
#include "rewrite/editor.h"
#include "support/ceil_div.h"

namespace tokamak {
namespace {

class TopKSelector {
 public:
  TopKSelector(Instr& top, SortOrder order, const Machine& machine)
      : top_(top),
        make_(top),
        machine_(machine),
        order_(order),
        key_bits_(PackedBits(KeyType())),
        lines_(top.operand(0)->shape().ElementCount() / Length()),
        index_bits_(static_cast<int>(std::bit_width(static_cast<uint64_t>(Length() - 1)))),
        type_(key_bits_ + index_bits_ <= 32 ? ElementType::kU32 : ElementType::kU64) {}

  bool Fits() const { return key_bits_ + index_bits_ <= 64 && lines_ * Length() <= kMaxCount; }

  // Of the whole line.
  TopKSchedule Schedule() const {
    return ChooseTopK(SizeOf(Length(), BytesOf(KeyType()), true), machine_);
  }

  void Run(const TopKSchedule& schedule) {
    x_ = make_.Reshaped(top_.operand(0), {lines_, Length()});
    Instr* index = make_.Make(Op::kIota, WordShape(Length()), {}, IotaAttrs{1});
    Words all{.words = WordsOf(x_, index)};
    all.at = [&](Instr* at) { return WordsOf(Gathered(x_, at), make_.Converted(at, type_)); };
    Finish(FirstOf(all, schedule));
  }

 private:
  // Chosen: positions in arrays are s32.
  static constexpr int64_t kMaxCount = std::numeric_limits<int32_t>::max() / 2;

  // Distinct words, [lines, length].
  struct Words {
    Instr* words = nullptr;
    int position_shift = 0;  // the position of a word is its index shifted right by this
    // The words at positions, [lines, any number]. Empty if positions do not follow from indices.
    std::function<Instr*(Instr*)> at = {};
    int64_t length() const { return words->shape().dim(1); }
  };

  ElementType KeyType() const { return top_.operand(0)->shape().type(); }
  int64_t Length() const { return top_.operand(0)->shape().dims().back(); }
  int64_t K() const { return ResultShapesOf(top_.shape())[0].dims().back(); }
  Shape WordShape(int64_t length) const { return Shape::Array(type_, {lines_, length}); }

  // `bytes`: of an element from which a word is computed.
  TopKSize SizeOf(int64_t length, int64_t bytes, bool in_order) const {
    SortSize words{.lines = lines_,
                   .length = length,
                   .bytes = bytes,
                   .compared_bytes = BytesOf(type_),
                   .word_bits = InfoOf(type_).bits,
                   .key_bits = key_bits_};
    return {.words = words, .k = K(), .index_bits = index_bits_, .in_order = in_order};
  }
  TopKSchedule ScheduleOf(const Words& words) const {
    bool in_order = words.at != nullptr;
    int64_t bytes = in_order ? BytesOf(type_) : BytesOf(KeyType());
    return ChooseTopK(SizeOf(words.length(), bytes, in_order), machine_);
  }

  // The first k words of each line, in order.
  Instr* FirstOf(const Words& words, const TopKSchedule& schedule) {
    switch (schedule.method) {
      case TopKMethod::kReductions:
        return ByReductions(words.words);
      case TopKMethod::kSort:
        return BySort(words);
      case TopKMethod::kGroups:
        break;
    }
    return ByGroups(words, schedule.group);
  }

  // ---- reductions

  Instr* ByReductions(Instr* words) {
    WordCode code(make_, words->shape());
    Instr* ones = make_.Constant(Literal::ScalarInt(type_, -1));
    std::vector<Instr*> firsts = {LeastOf(words, ones)};
    while (static_cast<int64_t>(firsts.size()) < K()) {
      Instr* previous =
          make_.Make(Op::kBroadcast, words->shape(), {firsts.back()}, DimensionsAttrs{{0}});
      Instr* is_after = code.Compare(CompareDirection::kGt, words, previous);
      Instr* rest = code.Select(is_after, words, make_.Broadcast(ones, words->shape()));
      firsts.push_back(LeastOf(rest, ones));
    }
    for (Instr*& first : firsts) first = make_.Reshaped(first, {lines_, 1});
    if (firsts.size() == 1) return firsts[0];
    return make_.Make(Op::kConcatenate, WordShape(K()), firsts, DimensionAttrs{1});
  }

  // The least word along the last dimension.
  Instr* LeastOf(Instr* words, Instr* ones) {
    if (least_ == nullptr) {
      Builder b(top_, top_.name() + "_first");
      Instr* x = b.Parameter(Shape::Scalar(type_));
      least_ = b.FinishValid(b.Append(Op::kMinimum, {x, b.Parameter(Shape::Scalar(type_))}));
    }
    Dims dims = words->shape().dims();
    auto along = static_cast<int64_t>(dims.size()) - 1;
    dims.pop_back();
    return make_.Make(Op::kReduce, Shape::Array(type_, dims), {words, ones},
                      DimensionsAttrs{{along}}, least_);
  }

  // ---- sort

  Instr* BySort(const Words& words) {
    SortSize size = WordsToSort(SizeOf(words.length(), BytesOf(type_), words.at != nullptr));
    SortSchedule schedule = CheapestOf(WordSortSchedules(size, machine_), size, machine_);
    // Whole words are compared if that is simpler, or if the order is not that of the indices.
    bool by_key = schedule.method == SortMethod::kRadix && words.at != nullptr;
    RadixOrder order{.from = by_key ? index_bits_ : 0,
                     .bits = by_key ? key_bits_ : key_bits_ + index_bits_};
    Instr* sorted = RadixSort(make_, words.words, order, schedule);
    return make_.Make(Op::kSlice, WordShape(K()), {sorted},
                      SliceAttrs{{0, 0}, {lines_, K()}, {1, 1}});
  }

  // ---- groups

  Instr* ByGroups(const Words& words, int64_t group) {
    int64_t groups = CeilDiv(words.length(), group), count = groups * group;
    int shift = std::countr_zero(static_cast<uint64_t>(group));
    Instr* ones = make_.Constant(Literal::ScalarInt(type_, -1));
    Instr* padded = words.words;
    if (count > words.length())
      padded = make_.Make(Op::kPad, WordShape(count), {padded, ones},
                          PadAttrs{{0, 0}, {0, count - words.length()}, {0, 0}});
    Words least{.words = LeastOf(make_.Reshaped(padded, {lines_, groups, group}), ones),
                .position_shift = words.position_shift + shift};
    least.at = [&](Instr* at) { return Gathered(least.words, at); };
    Instr* first = FirstOf(least, ScheduleOf(least));
    Instr* positions = PositionsIn(first, least.position_shift, group);
    Words elements{.words = words.at(positions)};
    if (count > words.length()) {
      WordCode code(make_, elements.words->shape());
      Instr* length =
          make_.Filled(positions->shape(), Literal::ScalarInt(ElementType::kS32, words.length()));
      Instr* is_inside = code.Compare(CompareDirection::kLt, positions, length);
      elements.words =
          code.Select(is_inside, elements.words, make_.Broadcast(ones, elements.words->shape()));
    }
    return FirstOf(elements, ScheduleOf(elements));
  }

  // The positions of all elements of the groups of these words: s32[lines, k * group].
  Instr* PositionsIn(Instr* first, int position_shift, int64_t group) {
    WordCode code(make_, first->shape());
    Instr* number = code.Above(code.Below(first, index_bits_), position_shift);
    Shape shape = Shape::Array(ElementType::kS32, {lines_, K(), group});
    number = make_.Make(Op::kBroadcast, shape, {make_.Converted(number, ElementType::kS32)},
                        DimensionsAttrs{{0, 1}});
    Instr* size = make_.Filled(shape, Literal::ScalarInt(ElementType::kS32, group));
    Instr* start = make_.Make(Op::kMultiply, shape, {number, size});
    Instr* offset = make_.Make(Op::kIota, shape, {}, IotaAttrs{2});
    return make_.Reshaped(make_.Make(Op::kAdd, shape, {start, offset}), {lines_, K() * group});
  }

  // The elements of each line at these positions; clamped to the line.
  Instr* Gathered(Instr* x, Instr* positions) {
    GatherAttrs gather;
    gather.collapsed_slice_dims = gather.start_index_map = {1};
    gather.operand_batching_dims = gather.start_indices_batching_dims = {0};
    gather.index_vector_dim = 2;
    gather.slice_sizes = {1, 1};
    return make_.Make(Op::kGather, Shape::Array(x->shape().type(), positions->shape().dims()),
                      {x, positions}, std::move(gather));
  }

  // ---- words

  // The key bits of words with the order of the result: ascending.
  Instr* Ascending(WordCode& code, Instr* key) {
    if (!top_.attrs<TopKAttrs>().largest) return key;
    return code.Make(Op::kXor, key, KeyWord{key_bits_}.ones());
  }

  Instr* WordsOf(Instr* x, Instr* index) {
    WordCode code(make_, index->shape());
    Instr* bits = BitsAsWord(make_, x, type_);
    Instr* key = Ascending(code, ToOrderedKey(code, bits, {key_bits_}, order_));
    return code.Packed(key, index, index_bits_);
  }

  // Unpacks elements and indices.
  void Finish(Instr* words) {
    Dims dims = top_.operand(0)->shape().dims();
    dims.back() = K();
    words = make_.Reshaped(words, dims);
    WordCode code(make_, words->shape());
    Instr* key = code.Above(words, index_bits_);
    Instr* index = index_bits_ == 0 ? code.Constant(0) : code.Below(words, index_bits_);
    key = FromOrderedKey(code, Ascending(code, key), {key_bits_}, order_);
    make_.ReplaceParts({FromBits(make_, key, KeyType()),
                        make_.Converted(index, ResultShapesOf(top_.shape())[1].type())});
  }

  Instr& top_;
  Editor make_;
  const Machine& machine_;
  const SortOrder order_;
  const int key_bits_;
  const int64_t lines_;
  const int index_bits_;
  const ElementType type_;  // of words
  Instr* x_ = nullptr;
  Computation* least_ = nullptr;  // the lesser of two words
};

// A comparator of the total order: greater or lesser elements first.
Computation* TotalOrder(Instr& top, ElementType type) {
  Builder b(top, "top_first");
  Instr* x = b.Parameter(Shape::Scalar(type));
  Instr* y = b.Parameter(Shape::Scalar(type));
  for (int side = 0; side < 2; ++side) b.Parameter(Shape::Scalar(ElementType::kS32));
  CompareType how = IsReal(type) ? CompareType::kTotalOrder : CompareType::kNone;
  CompareDirection direction =
      top.attrs<TopKAttrs>().largest ? CompareDirection::kGt : CompareDirection::kLt;
  return b.FinishValid(b.Append(Op::kCompare, {x, y}, CompareAttrs{direction, how}));
}

// Elements that do not fit into words with their indices: a stable sort of both.
void SortWithIndices(Instr& top) {
  Editor make(top);
  Instr* x = top.operand(0);
  const Dims dims = x->shape().dims();
  int64_t along = x->shape().rank() - 1;
  Shape index = Shape::Array(ElementType::kS32, dims);
  std::vector<Instr*> operands = {x, make.Make(Op::kIota, index, {}, IotaAttrs{along})};
  Instr* sort = make.Make(Op::kSort, Shape::Tuple({x->shape().WithoutLayout(), index}), operands,
                          SortAttrs{.dimension = along, .is_stable = true});
  sort->set_called({TotalOrder(top, x->shape().type())});
  std::vector<Instr*> parts;
  for (const Shape& result : ResultShapesOf(top.shape())) {
    Instr* part = make.Element(sort, parts.size());
    part = make.Make(Op::kSlice, Shape::Array(part->shape().type(), result.dims()), {part},
                     SliceAttrs{Dims(dims.size()), result.dims(), Dims(dims.size(), 1)});
    parts.push_back(make.Converted(part, result.type()));
  }
  make.ReplaceParts(parts);
}

}  // namespace

bool TryLowerTopK(Instr& top, PassContext& context) {
  const Shape& shape = top.operand(0)->shape();
  bool plain = IsPlainArray(shape) && shape.rank() > 0 && shape.ElementCount() > 0 &&
               !IsComplex(shape.type()) && !HasControlDependencies(top) &&
               shape.dims().back() <= std::numeric_limits<int32_t>::max();
  for (const Shape& result : ResultShapesOf(top.shape()))
    plain = plain && IsPlainArray(result) && result.ElementCount() > 0;
  if (!plain) return false;
  std::optional<SortOrder> order = TotalOrderOf(shape.type());
  if (order && CanPack(shape.type()))
    if (TopKSelector selector(top, *order, context.machine()); selector.Fits()) {
      LowerTopK(top, selector.Schedule(), context);
      return true;
    }
  context.Accepted("sort.top-k", top, nullptr, "sort with indices");
  SortWithIndices(top);
  return true;
}

void LowerTopK(Instr& top, const TopKSchedule& schedule, PassContext& context) {
  context.Accepted("sort.top-k", top, nullptr, ToString(schedule));
  TopKSelector(top, *TotalOrderOf(top.operand(0)->shape().type()), context.machine()).Run(schedule);
}

}  // namespace tokamak
