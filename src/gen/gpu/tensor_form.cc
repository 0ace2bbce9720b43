#include "gen/gpu/tensor_form.h"

#include "gen/contract.h"
#include "gen/gpu/split_operand.h"
#include "ir/dot_precision.h"

namespace tokamak::gpu {
namespace {

// Multiplies of two factors that are sums of two bf16 (definition: TensorForm::Products).
constexpr int64_t kSplitProducts = 3;

// The form of factors that are multiplied in 8 bits.
TensorForm ByteForm(const Instr& dot) {
  TensorForm form;
  for (size_t i : {0, 1}) {
    ElementType type = dot.operand(i)->shape().type();
    form.types[i] = IsSigned(type) ? ScalarType::kS8 : ScalarType::kU8;
    if (IsReal(type))
      form.float8[i] = type == ElementType::kF8E5M2 ? Float8::kE5M2 : Float8::kE4M3Fn;
  }
  return form;
}

}  // namespace

TensorForm FormOf(ScalarType type, const std::array<int64_t, 2>& parts) {
  return {.types = {type, type}, .tf32 = type == ScalarType::kF32, .parts = parts};
}

std::vector<TensorForm> FormsOf(const Instr& dot, const Machine& machine) {
  ScalarType type = FactorTypeOf(dot, machine);
  if (type == ScalarType::kBF16 || type == ScalarType::kF16) return {FormOf(type)};
  if (std::optional<DotAlgorithm> algorithm = dot.attrs<DotAttrs>().algorithm;
      algorithm && type == ScalarType::kF32 && algorithm->primitive_operations == kSplitProducts &&
      algorithm->lhs_type == "bf16" && algorithm->rhs_type == "bf16")
    return {FormOf(ScalarType::kBF16, {kSplitParts, kSplitParts})};
  std::vector<TensorForm> forms;
  if (MultipliesBytes(dot)) forms.push_back(ByteForm(dot));
  if (!MultipliesTf32(dot, machine)) return forms;
  // bf16 has the exponents of f32. One is exact for bf16 and 8-bit types, two for f16; of an f32
  // two keep 16 significant bits, TF32 11.
  auto parts_of = [&](size_t i) -> int64_t {
    ElementType element = dot.operand(i)->shape().type();
    return element == ElementType::kBF16 || InfoOf(element).bits <= 8 ? 1 : kSplitParts;
  };
  forms.push_back(FormOf(ScalarType::kF32));
  forms.push_back(FormOf(ScalarType::kBF16, {parts_of(0), parts_of(1)}));
  return forms;
}

std::optional<TensorForm> KMajorFormOf(const Instr& dot, const Machine& machine) {
  if (!machine.async_multiply) return std::nullopt;
  for (const TensorForm& form : FormsOf(dot, machine))
    if (form.IsKMajorOnly()) return form;
  return std::nullopt;
}

}  // namespace tokamak::gpu
