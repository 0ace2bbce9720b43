// Sorts by one key as radix sorts of packed words. A word has the key in its upper bits, mapped to
// an unsigned integer with the same order, and a payload in its lower bits:
//
//   | ordered key bits | payload |      payload: bits of the other operand, or the element's index
//    key_bits_           below_bits_
//
// A key and one other operand of at most 64 bits together travel in the word. With more operands,
// or wider ones, the index travels, and the operands are gathered by the sorted indices. The radix
// sort looks at the key bits only and is stable, so equal keys keep their order. If all users slice
// the same prefix, only that prefix is unpacked.

#include "passes/target/packed_key_sorts.h"

#include <bit>
#include <limits>

#include "gen/gpu/gpu.h"
#include "gen/region.h"
#include "gen/sort_keys.h"
#include "gen/sorting_network.h"
#include "passes/target/packed_words.h"
#include "passes/target/radix_sort.h"

namespace tokamak {
namespace {

class PackedKeySorter {
 public:
  PackedKeySorter(Instr& sort, const OperandKey& key)
      : sort_(sort), key_(key), make_(sort), line_(LineSortOf(sort)) {
    dims_ = {line_.lines, line_.length};
  }

  // Whether the key and its payload fit in one word.
  bool Fits() {
    if (!CanPack(KeyType())) return false;
    key_bits_ = PackedBits(KeyType());
    if (line_.lines * line_.length > std::numeric_limits<int32_t>::max() / 2) return false;
    std::vector<size_t> others;
    for (size_t i = 0; i < sort_.operand_count(); ++i)
      if (i != key_.operand) others.push_back(i);
    int number_bits = std::bit_width(static_cast<uint64_t>(line_.length - 1));
    below_ = Below::kNothing;
    if (others.size() == 1 && CanPack(OperandType(others[0])) &&
        !IsIotaAlong(*sort_.operand(others[0]), static_cast<int64_t>(line_.along)) &&
        key_bits_ + PackedBits(OperandType(others[0])) <= 64) {
      below_ = Below::kOther;
      below_bits_ = PackedBits(OperandType(others[0]));
    } else if (!others.empty()) {
      below_ = Below::kNumber;
      below_bits_ = number_bits;
    }
    if (key_bits_ + below_bits_ > 64) return false;
    word_ =
        Shape::Array(key_bits_ + below_bits_ <= 32 ? ElementType::kU32 : ElementType::kU64, dims_);
    return true;
  }

  RadixOrder Order() const {
    return {.from = below_bits_,
            .bits = key_bits_,
            .is_descending = key_.is_descending,
            .equal_zeros = key_.order == SortOrder::kFloatNanLast};
  }

  ElementType WordType() const { return word_.type(); }

  void Run(const Machine& machine) {
    Instr* sorted = RadixSort(make_, Words(), Order(), machine);
    int64_t kept = Kept();
    if (kept < line_.length) return Keep(sorted, kept);
    std::vector<Instr*> results;
    for (size_t i = 0; i < sort_.operand_count(); ++i)
      results.push_back(FromLines(ResultOf(i, sorted)));
    Instr* all = results[0];
    if (sort_.shape().IsTuple()) all = make_.Make(Op::kTuple, sort_.shape(), results);
    make_.Replace(all);
  }

 private:
  enum class Below { kNothing, kOther, kNumber };

  // The common number of leading elements that all users take, if they agree and nothing is
  // gathered; otherwise the full length.
  int64_t Kept() const {
    if (!sort_.shape().IsTuple() || sort_.users().empty()) return line_.length;
    int64_t kept = 0;
    for (const Instr* part : sort_.users()) {
      if (part->op() != Op::kGetTupleElement || part == part->parent()->root()) return line_.length;
      auto i = static_cast<size_t>(part->attrs<TupleIndexAttrs>().index);
      if (i != key_.operand && below_ == Below::kNumber &&
          !IsIotaAlong(*sort_.operand(i), static_cast<int64_t>(line_.along)))
        return line_.length;
      for (const Instr* user : part->users()) {
        int64_t first = PrefixUsed(*user);
        if (kept != 0 && first != kept) return line_.length;
        kept = first;
      }
    }
    return kept == 0 ? line_.length : kept;
  }
  int64_t PrefixUsed(const Instr& user) const {
    if (user.op() != Op::kSlice || &user == user.parent()->root()) return line_.length;
    const SliceAttrs& slice = user.attrs<SliceAttrs>();
    for (size_t d = 0; d < line_.dims.size(); ++d)
      if (slice.starts[d] != 0 || slice.strides[d] != 1 ||
          (d != line_.along && slice.limits[d] != line_.dims[d]))
        return line_.length;
    return slice.limits[line_.along];
  }

  // Reduces the sorted words to the first ones of each line.
  void Keep(Instr* sorted, int64_t kept) {
    Computation& computation = *sort_.parent();
    dims_[1] = line_.dims[line_.along] = kept;
    word_ = Shape::Array(word_.type(), dims_);
    sorted = make_.Make(Op::kSlice, word_, {sorted}, SliceAttrs{{0, 0}, dims_, {1, 1}});
    std::vector<Instr*> parts(sort_.users().begin(), sort_.users().end());
    for (Instr* part : parts) {
      auto i = static_cast<size_t>(part->attrs<TupleIndexAttrs>().index);
      Instr* result = FromLines(ResultOf(i, sorted));
      std::vector<Instr*> slices(part->users().begin(), part->users().end());
      for (Instr* slice : slices) {
        computation.ReplaceUses(slice, result);
        computation.Remove(slice);
      }
      computation.Remove(part);
    }
    computation.Remove(&sort_);
  }

  ElementType OperandType(size_t i) const { return sort_.operand(i)->shape().type(); }
  ElementType KeyType() const { return OperandType(key_.operand); }
  // The dimensions with the sorted one last.
  Dims LinesLast() const {
    Dims order;
    for (size_t d = 0; d < line_.dims.size(); ++d)
      if (d != line_.along) order.push_back(static_cast<int64_t>(d));
    order.push_back(static_cast<int64_t>(line_.along));
    return order;
  }
  Instr* Transposed(Instr* x, const Dims& order) {
    Dims dims;
    for (int64_t d : order) dims.push_back(x->shape().dim(static_cast<size_t>(d)));
    return make_.Make(Op::kTranspose, Shape::Array(x->shape().type(), dims), {x},
                      DimensionsAttrs{order});
  }
  // Flattens an operand to [lines, length], and back.
  Instr* Lines(Instr* x) {
    if (line_.along + 1 != line_.dims.size()) x = Transposed(x, LinesLast());
    return make_.Reshaped(x, dims_);
  }
  Instr* FromLines(Instr* x) {
    Dims order = LinesLast(), moved, back(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
      auto d = static_cast<size_t>(order[i]);
      moved.push_back(line_.dims[d]);
      back[d] = static_cast<int64_t>(i);
    }
    x = make_.Reshaped(x, moved);
    return line_.along + 1 == line_.dims.size() ? x : Transposed(x, back);
  }

  Instr* BitsAsWord(size_t i) {
    return tokamak::BitsAsWord(make_, Lines(sort_.operand(i)), word_.type());
  }

  // The word of each element, [lines, length].
  Instr* Words() {
    WordCode code(make_, word_);
    Instr* bits = BitsAsWord(key_.operand);
    KeyWord key{key_bits_};
    if (key_.order == SortOrder::kFloatNanLast)
      bits = WithEqualNans(code, bits, key, InfinityBits(KeyType()));
    Instr* ordered = ToOrderedKey(code, bits, key, key_.order);
    if (below_ == Below::kNothing) return ordered;
    Instr* below = below_ == Below::kOther ? BitsAsWord(1 - key_.operand)
                                           : make_.Make(Op::kIota, word_, {}, IotaAttrs{1});
    return code.Packed(ordered, below, below_bits_);
  }

  // Operand i in sorted order: unpacked from the words, or gathered by the index in them.
  Instr* ResultOf(size_t i, Instr* sorted) {
    WordCode code(make_, word_);
    if (i == key_.operand) {
      Instr* key = code.Above(sorted, below_bits_);
      return FromBits(make_, FromOrderedKey(code, key, {key_bits_}, key_.order), OperandType(i));
    }
    Instr* below = code.Below(sorted, below_bits_);
    if (below_ == Below::kOther) return FromBits(make_, below, OperandType(i));
    if (IsIotaAlong(*sort_.operand(i), static_cast<int64_t>(line_.along)))
      return make_.Converted(below, OperandType(i));
    return Fetched(sort_.operand(i), make_.Converted(below, ElementType::kS32));
  }

  // Gathers the elements with these indices, within each line.
  Instr* Fetched(Instr* x, Instr* numbers) {
    x = Lines(x);
    GatherAttrs fetch;
    fetch.collapsed_slice_dims = fetch.start_index_map = {1};
    fetch.operand_batching_dims = fetch.start_indices_batching_dims = {0};
    fetch.index_vector_dim = 2;
    fetch.slice_sizes = {1, 1};
    return make_.Make(Op::kGather, Shape::Array(x->shape().type(), dims_), {x, numbers},
                      std::move(fetch));
  }

  Instr& sort_;
  OperandKey key_;
  Editor make_;
  LineSort line_;
  Dims dims_;
  Shape word_;
  int key_bits_ = 0, below_bits_ = 0;
  Below below_ = Below::kNothing;
};

}  // namespace

bool TryPackedKeySort(Instr& sort, PassContext& context) {
  const Machine& machine = context.machine();
  if (!HasPlainOperands(sort) || HasControlDependencies(sort) || gpu::IsBlockRadixSort(sort) ||
      IsNetworkSort(sort))
    return false;
  int64_t longest = gpu::MaxBlockMergeSortLength(sort), length = LineSortOf(sort).length;
  std::optional<std::vector<OperandKey>> keys = KeysOf(sort);
  // If elements are unordered relative to NaN, the result depends on the order of comparisons.
  if (!keys || keys->size() != 1 || (*keys)[0].order == SortOrder::kFloatIeee) return false;
  PackedKeySorter sorter(sort, (*keys)[0]);
  if (!sorter.Fits()) return false;
  int digits = DigitsOf(sorter.Order());
  if (length <= longest && !IsSortedSooner(sorter.Order(), length)) return false;
  if (!IsSortedAsOne(sorter.WordType(), length) && !IsRadixSorted(length, machine)) return false;
  context.Accepted("sort.radix", sort, nullptr, std::to_string(digits) + " digits");
  sorter.Run(machine);
  return true;
}

}  // namespace tokamak
