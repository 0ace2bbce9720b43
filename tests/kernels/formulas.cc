#include "kernels/formulas.h"

#include <optional>

#include <fmt/format.h>

#include "ir/op.h"
#include "kernel/builder.h"
#include "kernel/formulas.h"

namespace tokamak {
namespace {

constexpr int64_t kThreads = 64;

// Ops that need attributes or mixed operand types, which this test does not generate.
bool IsLeftOut(Op op) {
  switch (op) {
    case Op::kMap:
    case Op::kUniformQuantize:
    case Op::kUniformDequantize:
    case Op::kThreefry2x32:
    case Op::kCompare:
    case Op::kReducePrecision:
    case Op::kConvert:
    case Op::kStochasticConvert:
    case Op::kSelect:
    case Op::kClamp:
    case Op::kComplex:
    case Op::kReal:
    case Op::kImag:
    case Op::kIsFinite:
    case Op::kIsInf:
    case Op::kIsPosInf:
    case Op::kIsNegInf:
      return true;
    default:
      return false;
  }
}

std::optional<Kernel> FormulaKernel(const OpInfo& info, ElementType type) {
  bool is_complex = IsComplex(type);
  ElementType result = info.op == Op::kAbs ? RealPartOf(type) : type;
  KernelBuilder b(fmt::format("{}_{}", info.name, HloName(type)));
  std::vector<ArrayId> inputs;
  for (int i = 0; i < info.arity * (is_complex ? 2 : 1); ++i)
    inputs.push_back(b.Argument({.name = fmt::format("x{}", i),
                                 .type = StorageType(type),
                                 .access = Access::kRead,
                                 .size = kThreads}));
  std::vector<ArrayId> outputs;
  for (int i = 0; i < (IsComplex(result) ? 2 : 1); ++i)
    outputs.push_back(b.Argument({.name = fmt::format("y{}", i),
                                  .type = StorageType(result),
                                  .access = Access::kWrite,
                                  .size = kThreads}));
  bool has = true;
  b.For("t", LoopRole::kThread, b.Index(kThreads), [&](Scalar t) {
    std::vector<Element> operands;
    for (size_t i = 0; i < inputs.size(); i += is_complex ? 2 : 1) {
      Element loaded{b.Load(inputs[i], t)};
      if (is_complex) loaded[1] = b.Load(inputs[i + 1], t);
      operands.push_back(FromStorage(b, type, loaded));
    }
    std::optional<Element> value = ApplyOp(b, {info.op, result, type, operands, nullptr});
    has = value.has_value();
    if (!has) return;
    Element stored = ToStorage(b, result, *value);
    for (size_t i = 0; i < outputs.size(); ++i) b.Store(outputs[i], t, stored[i]);
  });
  if (!has) return std::nullopt;
  Kernel kernel = b.Finish();
  kernel.index_bits = 32;
  return kernel;
}

}  // namespace

std::vector<Kernel> FormulaKernels() {
  std::vector<Kernel> kernels;
  for (const OpInfo& info : AllOps()) {
    if (!info.Is(kElementwise) || IsLeftOut(info.op) || info.arity < 1) continue;
    for (ElementType type : {ElementType::kF32, ElementType::kBF16, ElementType::kF64,
                             ElementType::kC64, ElementType::kS32, ElementType::kU8}) {
      if (!info.Takes(type)) continue;
      if (std::optional<Kernel> kernel = FormulaKernel(info, type))
        kernels.push_back(std::move(*kernel));
    }
  }
  return kernels;
}

}  // namespace tokamak
