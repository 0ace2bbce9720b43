#include "gen/gpu/dot_panel.h"

#include <algorithm>

#include "gen/contract.h"

namespace tokamak::gpu {
namespace {

// Bits of f32: half of the last one that TF32 keeps (MatrixMultiply::kTf32Mask, PTX ISA), the
// smallest f32 that would round to infinity, and a NaN (IEEE 754).
constexpr Bits kTf32Half = 0x1000, kTf32Overflow = 0x7f7ff000, kQuietNan = 0x7fc00000;

}  // namespace

Scalar SwizzledIndex(KernelBuilder& b, Scalar line, Scalar in_line, ScalarType type) {
  constexpr int64_t kChunksOfLine = MatrixMultiply::kPanelBytes / kSwizzledChunkBytes;
  Scalar elements = b.Index(kSwizzledChunkBytes / BytesOf(type));
  Scalar swizzled = in_line / elements ^ (line % b.Index(kChunksOfLine));
  return line * b.Index(MatrixMultiply::kPanelBytes / BytesOf(type)) + swizzled * elements +
         in_line % elements;
}

Scalar DotPanels::ElementOf(const DotOperand& side, Scalar along, Scalar depth) {
  Coordinates at = side.At(b_, batch_at_, along, depth);
  // Narrow inputs stored in the type of the factors are copied without conversion.
  ElementType type = side.instr->shape().type();
  bool narrow = BytesOf(type_) < 4 && StorageType(type) == type_ && InfoOf(type).bits >= 8;
  if (narrow &&
      std::find(region_.inputs.begin(), region_.inputs.end(), side.instr) != region_.inputs.end())
    return emitter_.LoadStored(*side.instr, Linearized(b_, at, *side.dims));
  Element value = emitter_.At(*side.instr, at);
  if (!emitter_.failure().empty()) return b_.Constant(type_, 0);
  Scalar scalar = ConvertToFactorType(b_, type, type_, value);
  return tf32_ ? RoundedToTf32(b_, scalar) : scalar;
}

Scalar RoundedToTf32(KernelBuilder& b, Scalar x) {
  auto word = [&](Bits bits) { return b.ConstantBits(ScalarType::kU32, bits); };
  auto kept = [&](Scalar bits) {
    return (bits & word(MatrixMultiply::kTf32Mask)).BitsAs(ScalarType::kF32);
  };
  Scalar bits = x.BitsAs(ScalarType::kU32), least = b.ConstantBits(ScalarType::kF32, kTf32Overflow);
  Scalar large = Choose(x == x, kept(bits), b.ConstantBits(ScalarType::kF32, kQuietNan));
  return Choose(AbsOf(x) < least, kept(bits + word(kTf32Half)), large);
}

}  // namespace tokamak::gpu
