#include "lower/library_calls.h"

#include "gen/library/custom_kernel.h"
#include "gen/library/scatter.h"
#include "gen/region.h"
#include "gen/sort_keys.h"
#include "lower/math_calls.h"
#include "runtime/scatter.h"
#include "runtime/sort.h"

namespace tokamak {
namespace {

int64_t BytesOfElement(const Shape& shape) {
  return shape.ByteSize() / shape.ElementCount();
}

SortForm FormOfSort(const Instr& sort) {
  SortForm form;
  for (const Instr* operand : sort.operands())
    form.bytes.push_back(BytesOfElement(operand->shape()));
  for (const Instr* operand : sort.operands())
    form.counted.push_back(IsIotaAlong(*operand, sort.attrs<SortAttrs>().dimension));
  std::vector<OperandKey> keys = KeysOf(sort).value();
  for (const OperandKey& key : keys)
    form.keys.push_back({.operand = key.operand,
                         .order = key.order,
                         .is_descending = key.is_descending,
                         .infinity = InfinityBits(sort.operand(key.operand)->shape().type())});
  const Dims& dims = sort.operand(0)->shape().dims();
  int64_t along = sort.attrs<SortAttrs>().dimension;
  if (along < 0) along += static_cast<int64_t>(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    auto at = static_cast<int64_t>(d);
    (at < along ? form.outer : at == along ? form.length : form.inner) *= dims[d];
  }
  return form;
}

TopKForm FormOfTopK(const Instr& top) {
  const Shape& shape = top.operand(0)->shape();
  TopKForm form;
  form.key = {.operand = 0,
              .order = *TotalOrderOf(shape.type()),
              .is_descending = top.attrs<TopKAttrs>().largest,
              .infinity = InfinityBits(shape.type())};
  form.bytes = BytesOfElement(shape);
  form.index_bytes = BytesOfElement(ResultShapesOf(top.shape())[1]);
  form.length = shape.dims().back();
  form.lines = shape.ElementCount() / form.length;
  form.k = ResultShapesOf(top.shape())[0].dims().back();
  return form;
}

ScatterOp OpOf(LinearScatterOp op) {
  switch (op) {
    case LinearScatterOp::kSet:
      return ScatterOp::kSet;
    case LinearScatterOp::kAdd:
      return ScatterOp::kAdd;
    case LinearScatterOp::kMultiply:
      return ScatterOp::kMultiply;
    case LinearScatterOp::kMinimum:
      return ScatterOp::kMinimum;
    case LinearScatterOp::kMaximum:
      return ScatterOp::kMaximum;
  }
  return ScatterOp::kSet;
}

// The element type for the runtime's scatter. With `bits` only the bits matter, not the value.
ScatterElement ElementOf(const Shape& shape, bool bits) {
  ElementType type = shape.type();
  int64_t bytes = BytesOfElement(shape);
  if (bytes == 1) return ScatterElement::k8Bits;
  if (!bits && type == ElementType::kBF16) return ScatterElement::kBF16;
  if (bytes == 2) return ScatterElement::k16Bits;
  if (!bits && IsReal(type)) return bytes == 4 ? ScatterElement::kF32 : ScatterElement::kF64;
  if (!bits && IsSigned(type)) return bytes == 4 ? ScatterElement::kS32 : ScatterElement::kS64;
  return bytes == 4 ? ScatterElement::kU32 : ScatterElement::kU64;
}

ScatterForm FormOfScatter(const Instr& scatter) {
  ScatterForm form;
  form.op = OpOf(*LinearScatterOpOf(scatter));
  bool compares = form.op == ScatterOp::kMinimum || form.op == ScatterOp::kMaximum;
  bool bits = form.op == ScatterOp::kSet || (IsInteger(scatter.shape().type()) && !compares);
  form.element = ElementOf(scatter.shape(), bits);
  form.size = scatter.shape().ElementCount();
  form.count = scatter.operand(2)->shape().ElementCount();
  return form;
}

// A custom kernel without its code: the executable has a call with it (LoadCalls in
// driver/compile).
class PlannedCustomKernel final : public LibraryCall {
 public:
  explicit PlannedCustomKernel(const CustomKernelStep& step) {
    text_ = "custom kernel " + step.kernel.name;
    if (step.kernel.blocks > 1) text_ += " in " + std::to_string(step.kernel.blocks);
    for (const auto& arrays : {step.kernel.inputs, step.kernel.outputs})
      for (const CustomKernelArray& array : arrays)
        bytes_ += static_cast<double>(array.Count() * BytesOf(array.type));
  }
  void Run(std::span<void* const>, const std::atomic<bool>*) const override {}
  int64_t ScratchBytes() const override { return 0; }
  std::string Text() const override { return text_; }
  double Micros() const override { return bytes_ / kCustomKernelBytes; }

 private:
  // Bytes of arrays per microsecond of one thread. Chosen: order of magnitude of a kernel that
  // reads its operands once, for the minimum parallel work.
  static constexpr double kCustomKernelBytes = 4000;
  std::string text_;
  double bytes_ = 0;
};

}  // namespace

std::shared_ptr<const LibraryCall> LibraryCallOf(const Instr& instr) {
  if (CustomKernelIn(instr) != nullptr)
    return std::make_shared<PlannedCustomKernel>(CustomKernelStepOf(instr).value());
  if (instr.op() == Op::kTopK) return std::make_shared<TopKCall>(FormOfTopK(instr));
  if (instr.op() == Op::kScatter) return std::make_shared<ScatterCall>(FormOfScatter(instr));
  if (instr.op() != Op::kSort) return MathCallOf(instr);
  return std::make_shared<SortCall>(FormOfSort(instr));
}

}  // namespace tokamak
