#include "lower/library_calls.h"

#include "fusion/sorts.h"
#include "gen/region.h"
#include "lower/math_calls.h"
#include "runtime/sort.h"

namespace tokamak {
namespace {

SortOrder OrderOf(KeyOrder order) {
  switch (order) {
    case KeyOrder::kUnsigned:
      return SortOrder::kUnsigned;
    case KeyOrder::kSigned:
      return SortOrder::kSigned;
    case KeyOrder::kTotal:
      return SortOrder::kTotal;
    case KeyOrder::kNumbers:
      return SortOrder::kNumbers;
    case KeyOrder::kPlain:
      return SortOrder::kPlain;
  }
  return SortOrder::kUnsigned;
}

int64_t BytesOfElement(const Shape& shape) {
  return shape.ByteSize() / shape.ElementCount();
}

SortForm FormOfSort(const Instr& sort) {
  SortForm form;
  for (const Instr* operand : sort.operands())
    form.bytes.push_back(BytesOfElement(operand->shape()));
  for (const Instr* operand : sort.operands())
    form.counted.push_back(CountsAlong(*operand, sort.attrs<SortAttrs>().dimension));
  std::vector<KeyOfSort> keys = KeysOf(sort).value();
  for (const KeyOfSort& key : keys)
    form.keys.push_back({.operand = key.operand,
                         .order = OrderOf(key.order),
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
              .order = OrderOf(*TotalOrderOf(shape.type())),
              .is_descending = top.attrs<TopKAttrs>().largest,
              .infinity = InfinityBits(shape.type())};
  form.bytes = BytesOfElement(shape);
  form.index_bytes = BytesOfElement(PartsOf(top.shape())[1]);
  form.length = shape.dims().back();
  form.lines = shape.ElementCount() / form.length;
  form.k = PartsOf(top.shape())[0].dims().back();
  return form;
}

}  // namespace

std::shared_ptr<const LibraryCall> LibraryCallOf(const Instr& instr) {
  if (instr.op() == Op::kTopK) return std::make_shared<TopKCall>(FormOfTopK(instr));
  if (instr.op() != Op::kSort) return MathCallOf(instr);
  return std::make_shared<SortCall>(FormOfSort(instr));
}

}  // namespace tokamak
