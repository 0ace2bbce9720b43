// Sorts by one key as radix sorts of packed words. A word has the key in its upper bits, mapped to
// an unsigned integer with the same order, and a payload in its lower bits:
//
//   | ordered key bits | payload |      payload: bits of the other operand, or the element's index
//    key_bits             payload_bits
//
// A key and one other operand of at most 64 bits together travel in the word. With more operands,
// or wider ones, the index travels, and the operands are gathered by the sorted indices. The radix
// sort looks at the key bits only and is stable, so equal keys keep their order. If all users slice
// the same prefix, only that prefix is unpacked.

#include "passes/target/packed_key_sorts.h"

#include "gen/region.h"
#include "passes/target/packed_words.h"
#include "passes/target/radix_sort.h"
#include "support/ceil_div.h"
#include "support/check.h"

namespace tokamak {
namespace {

class PackedKeySorter {
 public:
  PackedKeySorter(Instr& sort, const PackedKey& packed)
      : sort_(sort),
        packed_(packed),
        key_(packed.key),
        make_(sort),
        line_(LineSortOf(sort)),
        dims_{line_.lines, line_.length},
        word_(Shape::Array(packed.word, dims_)) {}

  void Run(const SortSchedule& schedule) {
    RadixOrder order{.from = packed_.payload_bits,
                     .bits = packed_.key_bits,
                     .is_descending = key_.is_descending,
                     .equal_zeros = key_.order == SortOrder::kFloatNanLast};
    Instr* sorted = RadixSort(make_, Words(), order, schedule);
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
  using Payload = PackedKey::Payload;

  // The common number of leading elements that all users take, if they agree and nothing is
  // gathered; otherwise the full length.
  int64_t Kept() const {
    if (!sort_.shape().IsTuple() || sort_.users().empty()) return line_.length;
    int64_t kept = 0;
    for (const Instr* part : sort_.users()) {
      if (part->op() != Op::kGetTupleElement || part == part->parent()->root()) return line_.length;
      auto i = static_cast<size_t>(part->attrs<TupleIndexAttrs>().index);
      if (i != key_.operand && packed_.payload == Payload::kIndex &&
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
    KeyWord key{packed_.key_bits};
    if (key_.order == SortOrder::kFloatNanLast)
      bits = WithEqualNans(code, bits, key, InfinityBits(KeyType()));
    Instr* ordered = ToOrderedKey(code, bits, key, key_.order);
    if (packed_.payload == Payload::kNone) return ordered;
    Instr* below = packed_.payload == Payload::kOperand
                       ? BitsAsWord(1 - key_.operand)
                       : make_.Make(Op::kIota, word_, {}, IotaAttrs{1});
    return code.Packed(ordered, below, packed_.payload_bits);
  }

  // Operand i in sorted order: unpacked from the words, or gathered by the index in them.
  Instr* ResultOf(size_t i, Instr* sorted) {
    WordCode code(make_, word_);
    if (i == key_.operand) {
      Instr* key = code.Above(sorted, packed_.payload_bits);
      return FromBits(make_, FromOrderedKey(code, key, {packed_.key_bits}, key_.order),
                      OperandType(i));
    }
    Instr* below = code.Below(sorted, packed_.payload_bits);
    if (packed_.payload == Payload::kOperand) return FromBits(make_, below, OperandType(i));
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
  PackedKey packed_;
  OperandKey key_;
  Editor make_;
  LineSort line_;
  Dims dims_;
  Shape word_;
};

}  // namespace

void PackedKeySort(Instr& sort, const SortSchedule& schedule, PassContext& context) {
  std::optional<PackedKey> packed = PackedKeyOf(sort);
  TOK_CHECK(packed, "a packed-key sort without such a key");
  int64_t passes = CeilDiv(packed->key_bits, schedule.digit_bits);
  context.Accepted("sort.radix", sort, nullptr, std::to_string(passes) + " passes");
  PackedKeySorter(sort, *packed).Run(schedule);
}

}  // namespace tokamak
