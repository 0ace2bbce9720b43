#include "passes/target/packed_words.h"

#include <bit>

namespace tokamak {
namespace {

ElementType UnsignedOf(int bits) {
  switch (bits) {
    case 8:
      return ElementType::kU8;
    case 16:
      return ElementType::kU16;
    case 32:
      return ElementType::kU32;
    default:
      return ElementType::kU64;
  }
}

// Inverts the sign bit of all keys, and the other bits of negative floats. Which keys are negative
// is read from the sign bit, which is inverted on the way back.
Instr* Flipped(Editor& make, Instr* bits, int key_bits, KeyOrder order, bool back) {
  if (order == KeyOrder::kUnsigned) return bits;
  const Shape shape = bits->shape();
  auto word = [&](uint64_t value) {
    return make.Filled(shape, Literal::ScalarInt(shape.type(), static_cast<int64_t>(value)));
  };
  uint64_t sign = uint64_t{1} << (key_bits - 1), ones = sign | (sign - 1);
  if (order == KeyOrder::kSigned) return make.Make(Op::kXor, shape, {bits, word(sign)});
  Instr* is_high =
      make.Make(Op::kCompare, Shape::Array(ElementType::kPred, shape.dims()), {bits, word(sign)},
                CompareAttrs{CompareDirection::kGe, CompareType::kNone});
  Instr *high = word(back ? sign : ones), *low = word(back ? ones : sign);
  return make.Make(Op::kXor, shape, {bits, make.Make(Op::kSelect, shape, {is_high, high, low})});
}

}  // namespace

int PackedBits(ElementType type) {
  return type == ElementType::kPred ? 8 : InfoOf(type).bits;
}

bool CanPack(ElementType type) {
  return !IsComplex(type) && (type == ElementType::kPred || IsInteger(type) || IsReal(type)) &&
         PackedBits(type) >= 8 && std::has_single_bit(static_cast<unsigned>(PackedBits(type)));
}

Instr* BitsAsWord(Editor& make, Instr* x, ElementType word) {
  ElementType type = x->shape().type(), bits = UnsignedOf(PackedBits(type));
  if (type == ElementType::kPred) {
    x = make.Converted(x, bits);
  } else if (type != bits) {
    x = make.Make(Op::kBitcastConvert, Shape::Array(bits, x->shape().dims()), {x});
  }
  return make.Converted(x, word);
}

Instr* FromBits(Editor& make, Instr* bits, ElementType type) {
  ElementType narrow = UnsignedOf(PackedBits(type));
  bits = make.Converted(bits, narrow);
  if (type == ElementType::kPred) return make.Converted(bits, type);
  if (type == narrow) return bits;
  return make.Make(Op::kBitcastConvert, Shape::Array(type, bits->shape().dims()), {bits});
}

Instr* OrderedBits(Editor& make, Instr* bits, int key_bits, KeyOrder order) {
  return Flipped(make, bits, key_bits, order, false);
}

Instr* FromOrderedBits(Editor& make, Instr* ordered, int key_bits, KeyOrder order) {
  return Flipped(make, ordered, key_bits, order, true);
}

}  // namespace tokamak
