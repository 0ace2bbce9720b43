#include "gen/dot_operand.h"

namespace tokamak {

DotOperand::DotOperand(const Instr& dot, const DotDimensions& dot_dims, size_t operand)
    : instr(dot.operand(operand)),
      dims(operand == 0 ? &dot_dims.lhs_dims : &dot_dims.rhs_dims),
      batch(operand == 0 ? &dot_dims.attrs.lhs_batch : &dot_dims.attrs.rhs_batch),
      contracting(operand == 0 ? &dot_dims.attrs.lhs_contracting : &dot_dims.attrs.rhs_contracting),
      free(operand == 0 ? &dot_dims.lhs_free : &dot_dims.rhs_free),
      k_is_minor(!dims->empty() && !contracting->empty() &&
                 contracting->back() + 1 == static_cast<int64_t>(dims->size())) {}

Coordinates DotOperand::At(KernelBuilder& b, const Coordinates& batch_at, Scalar free_index,
                           Scalar depth) const {
  Coordinates at(dims->size());
  auto put = [&](const Dims& which, const Coordinates& values) {
    for (size_t i = 0; i < which.size(); ++i) at[static_cast<size_t>(which[i])] = values[i];
  };
  put(*batch, batch_at);
  put(*free, Delinearized(b, free_index, SizesAlong(*dims, *free)));
  put(*contracting, Delinearized(b, depth, SizesAlong(*dims, *contracting)));
  return at;
}

ElementType DotElementType(ScalarType type) {
  switch (type) {
    case ScalarType::kBF16:
      return ElementType::kBF16;
    case ScalarType::kF16:
      return ElementType::kF16;
    case ScalarType::kS8:
      return ElementType::kS8;
    case ScalarType::kU8:
      return ElementType::kU8;
    case ScalarType::kS16:
      return ElementType::kS16;
    case ScalarType::kS32:
      return ElementType::kS32;
    case ScalarType::kF64:
      return ElementType::kF64;
    default:
      return ElementType::kF32;
  }
}

Scalar ConvertToFactorType(KernelBuilder& b, ElementType from, ScalarType type, Element value) {
  bool are_bits = type == ScalarType::kU8 && IsReal(from);
  if (type == ScalarType::kBF16 || type == ScalarType::kF16 || are_bits)
    return ToStorage(b, from, value)[0];
  return ConvertElement(b, from, DotElementType(type), value)[0];
}

}  // namespace tokamak
