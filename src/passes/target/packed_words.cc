#include "passes/target/packed_words.h"

namespace tokamak {
namespace {

ElementType UnsignedOf(int bits) {
  for (ElementType type : {ElementType::kU8, ElementType::kU16, ElementType::kU32})
    if (InfoOf(type).bits == bits) return type;
  return ElementType::kU64;
}

}  // namespace

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

Instr* WordCode::Constant(uint64_t value) {
  return make_.Filled(shape_, Literal::ScalarInt(shape_.type(), static_cast<int64_t>(value)));
}

Instr* WordCode::Compare(CompareDirection direction, Instr* x, Instr* y) {
  return make_.Make(Op::kCompare, Shape::Array(ElementType::kPred, shape_.dims()), {x, y},
                    CompareAttrs{direction, CompareType::kNone});
}

Instr* WordCode::Packed(Instr* key, Instr* payload, int bits) {
  if (bits == 0) return key;
  return Make(Op::kOr, Make(Op::kShiftLeft, key, static_cast<uint64_t>(bits)), payload);
}

Instr* WordCode::Above(Instr* word, int bits) {
  if (bits == 0) return word;
  return Make(Op::kShiftRightLogical, word, static_cast<uint64_t>(bits));
}

Instr* WordCode::Below(Instr* word, int bits) {
  return Make(Op::kAnd, word, bits == 0 ? 0 : KeyWord{bits}.ones());
}

}  // namespace tokamak
