// top-k of x (largest first), k = 2, as two reductions:
//
//   word  = inverted ordered bits of x, then the index    (packed_words.h; unique per element)
//   first = min(word)
//   next  = min(word > first ? word : all ones)
//
// Words in ascending order are elements in descending order, and equal elements by index.

#include "passes/target/reduce_top_k.h"

#include <bit>
#include <limits>

#include "gen/region.h"
#include "gen/sort_keys.h"
#include "ir/builder.h"
#include "passes/target/packed_words.h"
#include "rewrite/bodies.h"
#include "rewrite/editor.h"

namespace tokamak {
namespace {

// Greatest k. On an H200, k = 8 is faster than a sort for 1 to 8192 rows of 16 to 2^20 elements;
// from k = 16 on, a sort of few long rows is faster (measured).
constexpr int64_t kMaxReducedK = 8;

class TopKReducer {
 public:
  TopKReducer(Instr& top, SortOrder order)
      : top_(top),
        make_(top),
        order_(order),
        dims_(top.operand(0)->shape().dims()),
        key_bits_(PackedBits(KeyType())),
        index_bits_(std::bit_width(static_cast<uint64_t>(dims_.back() - 1))) {}

  bool Fits() const { return key_bits_ + index_bits_ <= 64; }

  void Run() {
    type_ = key_bits_ + index_bits_ <= 32 ? ElementType::kU32 : ElementType::kU64;
    Instr* words = Words();
    Instr* ones = make_.Constant(Literal::ScalarInt(type_, -1));
    Computation* min = Min();
    std::vector<Instr*> firsts = {First(words, ones, min)};
    while (static_cast<int64_t>(firsts.size()) < K()) {
      Instr* after = make_.Make(Op::kCompare, Shape::Array(ElementType::kPred, dims_),
                                {words, AlongRow(firsts.back())},
                                CompareAttrs{CompareDirection::kGt, CompareType::kNone});
      Instr* rest = make_.Make(Op::kSelect, words->shape(),
                               {after, words, make_.Broadcast(ones, words->shape())});
      firsts.push_back(First(rest, ones, min));
    }
    Finish(firsts);
  }

 private:
  ElementType KeyType() const { return top_.operand(0)->shape().type(); }
  int64_t K() const { return ResultShapesOf(top_.shape())[0].dims().back(); }
  // The key bits of words with the order of the result: ascending.
  Instr* Ascending(WordCode& code, Instr* key) {
    if (!top_.attrs<TopKAttrs>().largest) return key;
    return code.Make(Op::kXor, key, KeyWord{key_bits_}.ones());
  }

  Instr* Words() {
    WordCode code(make_, Shape::Array(type_, dims_));
    Instr* bits = BitsAsWord(make_, top_.operand(0), type_);
    Instr* key = Ascending(code, ToOrderedKey(code, bits, {key_bits_}, order_));
    if (index_bits_ == 0) return key;
    auto along = static_cast<int64_t>(dims_.size()) - 1;
    Instr* index = make_.Make(Op::kIota, key->shape(), {}, IotaAttrs{along});
    return code.Packed(key, index, index_bits_);
  }

  Computation* Min() {
    Builder b(top_, top_.name() + "_first");
    Instr* x = b.Parameter(Shape::Scalar(type_));
    Instr* y = b.Parameter(Shape::Scalar(type_));
    return b.FinishValid(b.Append(Op::kMinimum, {x, y}));
  }
  Instr* First(Instr* words, Instr* ones, Computation* min) {
    Dims rows(dims_.begin(), dims_.end() - 1);
    return make_.Make(Op::kReduce, Shape::Array(type_, rows), {words, ones},
                      DimensionsAttrs{{static_cast<int64_t>(dims_.size()) - 1}}, min);
  }
  Instr* AlongRow(Instr* first) {
    Dims rows;
    for (size_t d = 0; d + 1 < dims_.size(); ++d) rows.push_back(static_cast<int64_t>(d));
    return make_.Make(Op::kBroadcast, Shape::Array(type_, dims_), {first}, DimensionsAttrs{rows});
  }

  // Joins the words, and unpacks elements and indices.
  void Finish(std::vector<Instr*> firsts) {
    Dims dims = dims_;
    dims.back() = 1;
    for (Instr*& first : firsts) first = make_.Reshaped(first, dims);
    dims.back() = K();
    Instr* words = firsts[0];
    if (firsts.size() > 1)
      words = make_.Make(Op::kConcatenate, Shape::Array(type_, dims), firsts,
                         DimensionAttrs{static_cast<int64_t>(dims.size()) - 1});
    WordCode code(make_, words->shape());
    Instr* key = code.Above(words, index_bits_);
    Instr* index = index_bits_ == 0 ? code.Constant(0) : code.Below(words, index_bits_);
    key = FromOrderedKey(code, Ascending(code, key), {key_bits_}, order_);
    make_.ReplaceParts({FromBits(make_, key, KeyType()),
                        make_.Converted(index, ResultShapesOf(top_.shape())[1].type())});
  }

  Instr& top_;
  Editor make_;
  const SortOrder order_;
  const Dims dims_;
  const int key_bits_, index_bits_;
  ElementType type_{};
};

}  // namespace

bool TryReduceTopK(Instr& top, PassContext& context) {
  const Shape& shape = top.operand(0)->shape();
  std::optional<SortOrder> order = TotalOrderOf(shape.type());
  bool plain = IsPlainArray(shape) && shape.rank() > 0 && shape.ElementCount() > 0 &&
               CanPack(shape.type()) && order && !HasControlDependencies(top);
  for (const Shape& result : ResultShapesOf(top.shape()))
    plain = plain && IsPlainArray(result) && result.ElementCount() > 0;
  if (!plain || ResultShapesOf(top.shape())[0].dims().back() > kMaxReducedK) return false;
  TopKReducer reducer(top, *order);
  if (!reducer.Fits()) return false;
  context.Accepted("sort.reduced", top, nullptr,
                   "top " + std::to_string(ResultShapesOf(top.shape())[0].dims().back()));
  reducer.Run();
  return true;
}

}  // namespace tokamak
