#include "fusion/instr_predicates.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "gen/element.h"
#include "gen/reducer.h"
#include "gen/scan.h"
#include "ir/post_order.h"

namespace tokamak {
namespace {

// Why a dot has no kernel; nullopt if it has one.
std::optional<std::string> WhyNoDot(const Instr& dot) {
  if (!IsPlainArray(dot.shape()) || dot.shape().ElementCount() == 0)
    return "dot: an operand or the result is empty or not an array";
  for (const Instr* operand : dot.operands()) {
    if (!IsPlainArray(operand->shape()) || operand->shape().ElementCount() == 0)
      return "dot: an operand or the result is empty or not an array";
    if (IsComplex(operand->shape().type()) != IsComplex(dot.shape().type()))
      return "dot: mixes real and complex types";
  }
  return std::nullopt;
}

}  // namespace

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

bool IsMultiResultOp(const Instr& instr) {
  return instr.op() == Op::kReduce || instr.op() == Op::kScan || instr.op() == Op::kReduceWindow;
}

bool IsNeverInKernel(const Instr& instr) {
  return instr.op() == Op::kParameter || instr.op() == Op::kWhile ||
         instr.op() == Op::kConditional ||
         (!instr.shape().IsArray() && !IsMultiResultOp(instr) && instr.op() != Op::kSort);
}

bool IsMemoryConstant(const Instr& instr) {
  return instr.op() == Op::kConstant && !IsImmediate(instr);
}

bool IsPartialUpdate(const Instr& instr) {
  return instr.op() == Op::kDynamicUpdateSlice || instr.op() == Op::kScatter;
}

std::string WhyNoKernel(const Instr& instr, const Machine& machine) {
  std::optional<std::string> why;
  switch (instr.op()) {
    case Op::kReduce:
      why = WhyNoReduceKernel(instr);
      break;
    case Op::kDot:
      why = WhyNoDot(instr);
      break;
    case Op::kScatter:
      why = WhyNoScatterKernel(instr);
      break;
    case Op::kScan:
      why = WhyNoScanKernel(instr);
      break;
    case Op::kSort:
      why = WhyNoSortKernel(instr, machine);
      break;
    default:
      why = WhyNoElementCode(instr);
  }
  return why.value_or("");
}

int64_t ResultBytes(const Instr& instr) {
  if (instr.shape().IsArray()) return instr.shape().ByteSize();
  int64_t bytes = 0;
  for (const Shape& part : ResultShapesOf(instr.shape())) bytes += part.ByteSize();
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
      return !WhyNoElementCode(instr);
    default:
      return false;
  }
}

bool IsFreeToRecompute(const Instr& instr) {
  switch (instr.op()) {
    case Op::kBroadcast:
    case Op::kIota:
    case Op::kSlice:
    case Op::kGetTupleElement:
    case Op::kReshape:
    case Op::kBitcast:
    case Op::kTuple:
    case Op::kConstant:
    case Op::kParameter:
      return true;
    default:
      return false;
  }
}

bool IsReduceDotOrScan(const Instr& instr) {
  return instr.op() == Op::kReduce || instr.op() == Op::kDot || instr.op() == Op::kScan;
}

bool IsRowReduction(const Instr& instr) {
  if (instr.op() != Op::kReduce) return false;
  const Dims& reduced = instr.attrs<DimensionsAttrs>().dimensions;
  int64_t first = instr.operand(0)->shape().rank() - static_cast<int64_t>(reduced.size());
  return std::all_of(reduced.begin(), reduced.end(), [&](int64_t d) { return d >= first; });
}

int64_t ResultElementCount(const Instr& instr) {
  const Shape& shape = instr.shape();
  return (shape.IsTuple() ? shape.elements()[0] : shape).ElementCount();
}

int64_t ComputedElementCount(const Instr& instr) {
  if (instr.op() == Op::kDynamicUpdateSlice) return ResultElementCount(*instr.operand(1));
  if (instr.op() == Op::kScatter) return ResultElementCount(*instr.operand(2));
  return ResultElementCount(instr);
}

bool ContainsInstr(const std::vector<const Instr*>& list, const Instr* instr) {
  return std::find(list.begin(), list.end(), instr) != list.end();
}

}  // namespace tokamak
