#include "gen/gpu/chain_masks.h"

#include <algorithm>

namespace tokamak::gpu {
namespace {

// Bits of the words that hold preds: of a u64, or a u32 (definition).
constexpr int64_t kWideWordBits = 64, kShortWordBits = 32;

}  // namespace

ChainMasks::ChainMasks(KernelBuilder& b, ElementEmitter& emitter, const FusedRegion& region,
                       const ChainRegion& found, int64_t scores)
    : b_(b), emitter_(emitter), region_(region), found_(found), scores_(scores) {
  word_bits_ = scores % kWideWordBits == 0 ? kWideWordBits : kShortWordBits;
  if (scores % word_bits_ != 0) return;
  for (const Instr* instr : region.instrs) {
    const Dims* dims = found.along->Of(*instr);
    if (dims == nullptr || found.chain.IsOfRows(*dims) || !instr->info().Is(kElementwise)) continue;
    for (const Instr* operand : instr->operands())
      if (operand->shape().dims() == instr->shape().dims()) Find(*operand, *dims);
  }
}

// The preds that an instruction is computed from, element by element.
void ChainMasks::Find(const Instr& instr, const Dims& along) {
  bool is_packed = std::ranges::any_of(
      found_.words, [&](const ChainWords& words) { return words.pred == &instr; });
  if (is_packed || found_.along->Of(instr) != nullptr || !DrawsRandomBits(instr)) return;
  if (instr.shape().type() == ElementType::kPred) {
    if (std::ranges::none_of(masks_, [&](const Mask& mask) { return mask.pred == &instr; }))
      masks_.push_back({&instr, along});
    return;
  }
  if (!instr.info().Is(kElementwise)) return;
  for (const Instr* operand : instr.operands())
    if (operand->shape().dims() == instr.shape().dims()) Find(*operand, along);
}

bool ChainMasks::DrawsRandomBits(const Instr& instr) {
  if (std::ranges::find(region_.instrs, &instr) == region_.instrs.end()) return false;
  if (auto known = draws_.find(&instr); known != draws_.end()) return known->second;
  bool draws = instr.op() == Op::kThreefry2x32 || instr.op() == Op::kRngBitGenerator ||
               std::ranges::any_of(instr.operands(),
                                   [&](const Instr* operand) { return DrawsRandomBits(*operand); });
  draws_[&instr] = draws;
  return draws;
}

void ChainMasks::Declare() {
  ScalarType type = word_bits_ == kWideWordBits ? ScalarType::kU64 : ScalarType::kU32;
  for (Mask& mask : masks_) {
    mask.words = b_.Local("mask", type, Space::kRegisters, scores_ / word_bits_);
    mask.bits = b_.Local("mask_bits", ScalarType::kU32, Space::kRegisters, 1);
  }
}

Coordinates ChainMasks::AtOf(const Mask& mask, const Coordinates& at, Scalar zero) {
  Coordinates own;
  for (int64_t dim : mask.along) own.push_back(dim < 0 ? zero : at[static_cast<size_t>(dim)]);
  return own;
}

void ChainMasks::Clear(Scalar word) {
  for (const Mask& mask : masks_)
    b_.Store(mask.words, word,
             b_.ConstantBits(word_bits_ == kWideWordBits ? ScalarType::kU64 : ScalarType::kU32, 0));
}

void ChainMasks::Begin() {
  for (const Mask& mask : masks_)
    b_.Store(mask.bits, b_.Index(0), b_.ConstantBits(ScalarType::kU32, 0));
}

void ChainMasks::Set(Scalar number, const Coordinates& at) {
  for (const Mask& mask : masks_) {
    Scalar pred = emitter_.At(*mask.pred, AtOf(mask, at, b_.Index(0)))[0];
    if (!emitter_.failure().empty()) return;
    Scalar bit = b_.ConstantBits(ScalarType::kU32, 1) << number.As(ScalarType::kU32);
    Scalar bits = b_.Read(mask.bits, b_.Index(0));
    b_.Store(mask.bits, b_.Index(0), bits | Choose(pred, bit, bit.Like(0)));
  }
}

void ChainMasks::Keep(Scalar word) {
  for (const Mask& mask : masks_) {
    Scalar before = b_.Read(mask.words, word), bits = b_.Read(mask.bits, b_.Index(0));
    Scalar added = bits.As(before.type()) << before.Like(static_cast<double>(word_bits_ - kAtOnce));
    b_.Store(mask.words, word, before >> before.Like(kAtOnce) | added);
  }
}

void ChainMasks::Memoize(Scalar number, const Coordinates& at) {
  Scalar per_word = b_.Index(word_bits_);
  for (const Mask& mask : masks_) {
    Scalar word = b_.Read(mask.words, number / per_word);
    Scalar bit = word >> (number % per_word).As(word.type()) & word.Like(1);
    emitter_.Memoize(*mask.pred, AtOf(mask, at, b_.Index(0)), {bit != bit.Like(0), {}});
  }
}

}  // namespace tokamak::gpu
