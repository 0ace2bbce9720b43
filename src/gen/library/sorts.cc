#include "gen/library/sorts.h"

#include <limits>

#include "gen/library/functions.h"
#include "gen/library/scatter.h"
#include "gen/region.h"
#include "gen/sorting_network.h"

namespace tokamak {
namespace {

// CPU: lines per pair of elements that a sorting network compares. With fewer lines the runtime
// function finishes long before the network would be compiled (0.1 s for 16 elements).
constexpr int64_t kManyLines = 16;

bool IsTopK(const Instr& instr) {
  const Shape& shape = instr.operand(0)->shape();
  if (!IsPlainArray(shape) || shape.ElementCount() == 0 || shape.rank() == 0) return false;
  if (shape.dims().back() > std::numeric_limits<int32_t>::max()) return false;
  for (const Shape& part : ResultShapesOf(instr.shape()))
    if (!IsPlainArray(part) || part.ElementCount() == 0) return false;
  ElementType index = ResultShapesOf(instr.shape())[1].type();
  bool counts = index == ElementType::kS32 || index == ElementType::kU32 ||
                index == ElementType::kS64 || index == ElementType::kU64;
  return counts && TotalOrderOf(shape.type()).has_value();
}

}  // namespace

bool HasPlainOperands(const Instr& sort) {
  if (sort.captures() > 0 || sort.operand_count() == 0) return false;
  for (const Instr* operand : sort.operands()) {
    const Shape& shape = operand->shape();
    if (!IsPlainArray(shape) || shape.ElementCount() == 0 || shape.rank() == 0) return false;
  }
  return true;
}

std::optional<std::vector<OperandKey>> KeysOf(const Instr& sort) {
  std::optional<std::vector<ComparedKey>> compared = ComparedKeysOf(*sort.called(0));
  if (!compared) return std::nullopt;
  std::vector<OperandKey> keys;
  for (const ComparedKey& key : *compared) {
    if (key.value->op() != Op::kParameter) return std::nullopt;
    auto operand = static_cast<size_t>(key.value->attrs<ParameterAttrs>().number / 2);
    if (operand >= sort.operand_count() ||
        sort.operand(operand)->shape().type() != key.value->shape().type())
      return std::nullopt;
    keys.push_back({operand, key.order, key.is_descending});
  }
  return keys;
}

bool IsIotaAlong(const Instr& instr, int64_t dimension) {
  if (!instr.shape().IsArray() || !IsInteger(instr.shape().type()) ||
      InfoOf(instr.shape().type()).bits < 8)
    return false;
  if (dimension < 0) dimension += instr.shape().rank();
  if (instr.op() == Op::kIota) return instr.attrs<IotaAttrs>().dimension == dimension;
  return instr.op() == Op::kBroadcast && instr.operand(0)->op() == Op::kIota &&
         instr.operand(0)->shape().rank() == 1 &&
         instr.attrs<DimensionsAttrs>().dimensions == Dims{dimension};
}

bool UsesRuntimeFunction(const Instr& instr, const Machine& machine) {
  if (machine.is_gpu()) return false;
  if (HasRuntimeFunction(instr) || UsesRuntimeScatter(instr)) return true;
  if (instr.op() == Op::kSort) {
    if (!HasPlainOperands(instr) || !KeysOf(instr)) return false;
    LineSort line = LineSortOf(instr);
    return line.lines / line.length < kManyLines * line.length || !IsNetworkSort(instr);
  }
  return instr.op() == Op::kTopK && IsTopK(instr);
}

}  // namespace tokamak
