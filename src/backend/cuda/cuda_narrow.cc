// Arithmetic of f16 and bf16 in their own registers (kernel/narrow_arithmetic.h), with which a GPU
// saves the conversions. ptxas pairs the operations of neighbouring lanes.

#include <bit>
#include <cmath>

#include "backend/cuda/cuda_writer.h"
#include "kernel/narrow_arithmetic.h"

namespace tokamak::cuda {
namespace {

// Largest exponent magnitude of divisors whose f32 reciprocal is normal, and its products as exact
// as others. Chosen: far from the limits of f32.
constexpr int kMostInverseExponent = 40;

std::string_view PrefixOf(ScalarType type) {
  return type == ScalarType::kF16 ? "F16" : "Bf16";
}

std::string_view NameOf(Prim prim) {
  switch (prim) {
    case Prim::kAdd:
      return "Add";
    case Prim::kSub:
      return "Sub";
    case Prim::kMul:
      return "Mul";
    default:
      return "Div";
  }
}

}  // namespace

std::string NarrowArithmeticText(ScalarType type) {
  bool is_f16 = type == ScalarType::kF16;
  std::string text;
  for (auto [name, op, sign] :
       {std::array{"Add", "add", "+"}, {"Sub", "sub", "-"}, {"Mul", "mul", "*"}})
    text += fmt::format(
        "__device__ inline unsigned short {0}{1}(unsigned short x, unsigned short y) {{\n"
        "#if __CUDA_ARCH__ >= {2}\n"
        "  unsigned short bits;\n"
        "  asm(\"{3}.rn.{4} %0, %1, %2;\" : \"=h\"(bits) : \"h\"(x), \"h\"(y));\n"
        "  return bits;\n"
        "#else\n"
        "  return {0}FromF32({0}ToF32(x) {5} {0}ToF32(y));\n"
        "#endif\n"
        "}}\n",
        PrefixOf(type), name, is_f16 ? 530 : 900, op, is_f16 ? "f16" : "bf16", sign);
  if (!is_f16)
    text +=
        "// Correctly rounded, but for ties of subnormal numbers: the f32 quotient is within 2 "
        "ulp.\n"
        "__device__ inline unsigned short Bf16Div(unsigned short x, unsigned short y) {\n"
        "  float quotient;\n"
        "  asm(\"div.full.f32 %0, %1, %2;\"\n"
        "      : \"=f\"(quotient) : \"f\"(Bf16ToF32(x)), \"f\"(Bf16ToF32(y)));\n"
        "  return Bf16FromF32(quotient);\n"
        "}\n";
  return text + "\n";
}

std::string CudaWriter::NarrowOperand(ValueId id, ScalarType type) {
  const ScalarNode& node = kernel_.node(id);
  if (node.prim == Prim::kConvert) return Operand(node.operands[0]);
  // All kernels of this text have a representable number in an open constant's place: the text of
  // others has no such operation.
  if (node.prim == Prim::kConst && (open_ == nullptr || !open_->IsOpen(id)))
    return fmt::format("{:#x}", BitsOfDouble(type, DoubleOfBits(node.type, node.bits)));
  if (node.prim == Prim::kNeg)
    return fmt::format("{} ^ 0x8000", NarrowOperand(node.operands[0], type));
  if (type == ScalarType::kBF16) return fmt::format("Bf16Bits({})", Operand(id));
  return fmt::format("F16FromF32({})", Operand(id));
}

// x / c in bf16 as x * (1 / c), which is within 2 ulp of f32 (NarrowQuotient).
std::string CudaWriter::NarrowProduct(ValueId quotient) {
  const ScalarNode &node = kernel_.node(quotient), &by = kernel_.node(node.operands[1]);
  if (node.prim != Prim::kDiv || by.prim != Prim::kConst) return "";
  if (open_ != nullptr && open_->IsOpen(node.operands[1])) return "";
  auto divisor = static_cast<float>(DoubleOfBits(by.type, by.bits));
  int exponent = 0;
  std::frexp(divisor, &exponent);
  if (!std::isfinite(divisor) || divisor == 0 || std::abs(exponent) > kMostInverseExponent)
    return "";
  NoteType(ScalarType::kBF16);
  auto inverse = static_cast<Bits>(std::bit_cast<uint32_t>(1.0f / divisor));
  return fmt::format("Bf16FromF32({} * {})", Operand(node.operands[0]),
                     spelling_.Constant(ScalarType::kF32, inverse));
}

std::string CudaWriter::SpelledNarrow(ValueId id) {
  std::optional<ValueId> operation = NarrowOperation(kernel_, id, &narrow_arrays_);
  if (!operation) operation = NarrowQuotient(kernel_, id, &narrow_arrays_);
  if (!operation) return "";
  const ScalarNode& of = kernel_.node(*operation);
  if (of.prim == Prim::kDiv && DividesAllLanes(*operation)) return "";
  ScalarType type = kernel_.node(id).type;
  // The exact conversions of f16 cost as much as those that are saved.
  auto is_free = [&](ValueId operand) {
    Prim prim = kernel_.node(operand).prim;
    return prim == Prim::kConvert || prim == Prim::kConst;
  };
  if (type == ScalarType::kF16 && !(is_free(of.operands[0]) && is_free(of.operands[1]))) return "";
  if (std::string product = NarrowProduct(*operation); !product.empty()) return product;
  source_.helpers.insert(type == ScalarType::kF16 ? Helper::kF16Arithmetic
                                                  : Helper::kBf16Arithmetic);
  return fmt::format("{}{}({}, {})", PrefixOf(type), NameOf(of.prim),
                     NarrowOperand(of.operands[0], type), NarrowOperand(of.operands[1], type));
}

}  // namespace tokamak::cuda
