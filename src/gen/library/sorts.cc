#include "gen/library/sorts.h"

#include <limits>

#include "gen/library/functions.h"
#include "gen/library/scatter.h"
#include "gen/region.h"
#include "gen/sorting_network.h"

namespace tokamak {
namespace {

// CPU: lines per pair of elements that a sorting network compares. With fewer lines the runtime
// function finishes long before the network would be compiled (0.1 s for 16 elements). Chosen.
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
