#include "gen/library/sorts.h"

#include <limits>

#include "gen/library/custom_kernel.h"
#include "gen/library/functions.h"
#include "gen/library/scatter.h"
#include "gen/region.h"
#include "gen/sort_schedule.h"

namespace tokamak {
namespace {

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
  if (const Instr* call = CustomKernelIn(instr)) return HasCSource(*call);
  if (HasRuntimeFunction(instr) || UsesRuntimeScatter(instr)) return true;
  if (instr.op() == Op::kSort) {
    if (!HasPlainOperands(instr) || !KeysOf(instr)) return false;
    SortSchedule cheapest = CheapestOf(SortSchedules(instr, machine), SizeOf(instr), machine);
    return cheapest.method == SortMethod::kRadix;
  }
  return instr.op() == Op::kTopK && IsTopK(instr);
}

}  // namespace tokamak
