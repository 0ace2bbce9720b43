#include "gen/library/functions.h"

#include "gen/region.h"

namespace tokamak {
namespace {

bool IsWide(const Shape& shape) {
  if (!IsPlainArray(shape) || shape.ElementCount() == 0) return false;
  ElementType type = shape.type();
  return type == ElementType::kF32 || type == ElementType::kF64 || type == ElementType::kC64 ||
         type == ElementType::kC128;
}

// Whether all but the last dimension match the operand, and every length is the operand's.
bool IsPlainFft(const Instr& fft) {
  const FftAttrs& attrs = fft.attrs<FftAttrs>();
  const Dims &in = fft.operand(0)->shape().dims(), &out = fft.shape().dims();
  if (attrs.length.empty() || attrs.length.size() > in.size() || in.size() != out.size())
    return false;
  const Dims& lengths = attrs.type == FftType::kIrfft ? out : in;
  size_t first = in.size() - attrs.length.size();
  for (size_t d = 0; d < in.size(); ++d) {
    if (d + 1 < in.size() && in[d] != out[d]) return false;
    if (d >= first && lengths[d] != attrs.length[d - first]) return false;
  }
  ElementType from = fft.operand(0)->shape().type(), to = fft.shape().type();
  switch (attrs.type) {
    case FftType::kFft:
    case FftType::kIfft:
      return IsComplex(from) && from == to && in.back() == out.back();
    case FftType::kRfft:
      return IsReal(from) && IsComplex(to) && out.back() == in.back() / 2 + 1 &&
             2 * InfoOf(from).bits == InfoOf(to).bits;
    case FftType::kIrfft:
      return IsComplex(from) && IsReal(to) && in.back() == out.back() / 2 + 1 &&
             InfoOf(from).bits == 2 * InfoOf(to).bits;
  }
  return false;
}

}  // namespace

bool HasRuntimeFunction(const Instr& instr) {
  if (instr.op() != Op::kFft && instr.op() != Op::kCholesky && instr.op() != Op::kTriangularSolve)
    return false;
  if (!IsWide(instr.shape())) return false;
  for (const Instr* operand : instr.operands())
    if (!IsWide(operand->shape())) return false;
  if (instr.op() == Op::kFft) return IsPlainFft(instr);
  if (instr.op() == Op::kTriangularSolve)
    return instr.operand(0)->shape().type() == instr.shape().type() &&
           instr.operand(1)->shape().type() == instr.shape().type();
  return true;
}

}  // namespace tokamak
