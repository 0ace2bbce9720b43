#include "fusion/values.h"

#include <optional>
#include <utility>

#include "fusion/regions.h"
#include "gen/element.h"
#include "gen/reducer.h"
#include "gen/scan.h"
#include "ir/post_order.h"

namespace tokamak {

std::vector<Instr*> OrderFromRoot(const Computation& computation) {
  PostOrderWalk walk(computation.id_limit());
  for (Instr* parameter : computation.parameters()) walk.Visit(parameter);
  walk.Visit(computation.root());
  // Then effects, in their order. Dead instructions come last.
  for (Instr* instr : computation.Instrs())
    if (instr->users().empty()) walk.Visit(instr);
  for (Instr* instr : computation.Instrs()) walk.Visit(instr);
  return walk.TakeOrder();
}

bool HasParts(const Instr& instr) {
  return instr.op() == Op::kReduce || instr.op() == Op::kScan || instr.op() == Op::kReduceWindow;
}

bool IsKernelless(const Instr& instr) {
  return instr.op() == Op::kParameter || instr.op() == Op::kWhile ||
         instr.op() == Op::kConditional ||
         (!instr.shape().IsArray() && !HasParts(instr) && instr.op() != Op::kSort);
}

bool IsMemoryConstant(const Instr& instr) {
  return instr.op() == Op::kConstant && !IsImmediate(instr);
}

bool IsUpdate(const Instr& instr) {
  return instr.op() == Op::kDynamicUpdateSlice || instr.op() == Op::kScatter;
}

std::string WhyNoKernel(const Instr& instr, const Machine& machine) {
  std::optional<std::string> why;
  switch (instr.op()) {
    case Op::kReduce:
      why = WhyNoReducer(instr);
      break;
    case Op::kDot:
      why = WhyNoDot(instr);
      break;
    case Op::kScatter:
      why = WhyNoScatter(instr);
      break;
    case Op::kScan:
      why = WhyNoScan(instr);
      break;
    case Op::kSort:
      why = WhyNoSort(instr, machine);
      break;
    default:
      why = WhyNoElement(instr);
  }
  return why.value_or("");
}

int64_t BytesOfParts(const Instr& instr) {
  if (instr.shape().IsArray()) return instr.shape().ByteSize();
  int64_t bytes = 0;
  for (const Shape& part : PartsOf(instr.shape())) bytes += part.ByteSize();
  return bytes;
}

bool IsAlias(const Instr& instr) {
  switch (instr.op()) {
    case Op::kTuple:
    case Op::kGetTupleElement:
    case Op::kOptimizationBarrier:
    case Op::kAddDependency:
    case Op::kDomain:
    case Op::kShardingConstraint:
    case Op::kReshard:
    case Op::kPropagationBarrier:
    case Op::kCopy:
    case Op::kReshape:
      return true;
    case Op::kBitcast:
      return !WhyNoElement(instr);
    default:
      return false;
  }
}

}  // namespace tokamak
