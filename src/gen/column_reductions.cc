#include "gen/column_reductions.h"

namespace tokamak {

std::string AnalyzeColumnReductions(const FusedRegion& region, ColumnReductions& found) {
  bool first = true;
  for (const Instr* instr : region.instrs) {
    if (instr->op() != Op::kReduce && instr->op() != Op::kDot) continue;
    Shape shape = ResultShapesOf(instr->shape())[0];
    if (first) found.dims = shape.dims();
    if (shape.dims() != found.dims) return "its reductions have results of different shapes";
    first = false;
    if (instr->op() == Op::kDot) {
      found.dots.push_back(instr);
      continue;
    }
    found.reducers.push_back(ReducerOf(*instr));
    const Reducer &reducer = found.reducers.back(), &like = found.reducers.front();
    if (reducer.input().dims() != like.input().dims() || reducer.reduced_dims != like.reduced_dims)
      return "its reductions have different dimensions";
  }
  for (const Instr* root : region.roots)
    for (const Shape& part : ResultShapesOf(root->shape()))
      if (part.ElementCount() != ProductOf(found.dims, 0, found.dims.size()))
        return "a root has another number of elements than its reductions";
  return first ? "it has no reduction" : "";
}

Coordinates InputCoordinates(const Reducer& reducer, const Coordinates& result,
                             const Coordinates& reduced) {
  return ReadCoordinates(*IndexMapOf(*reducer.instr, 0), result, reduced);
}

Element AddDotTerm(KernelBuilder& b, ElementEmitter& emitter, const Instr& dot,
                   const Coordinates& result, const Coordinates& contracted, Element sum) {
  ElementType type = AccumulatorElementType(dot.shape().type());
  auto operand = [&](size_t i) {
    const Instr& instr = *dot.operand(i);
    Coordinates at = ReadCoordinates(*IndexMapOf(dot, i), result, contracted);
    return ConvertElement(b, instr.shape().type(), type, emitter.At(instr, at));
  };
  Element x = operand(0);
  Element y = operand(1);
  if (!emitter.failure().empty()) return sum;
  // Products are rounded before the addition, as in the interpreter: bitwise the same results.
  if (IsReal(type)) return {sum[0] + x[0] * y[0], {}};
  Element product[2] = {x, y};
  std::optional<Element> of = ApplyOp(b, {Op::kMultiply, type, type, product, nullptr});
  Element terms[2] = {sum, of.value_or(x)};
  std::optional<Element> total = ApplyOp(b, {Op::kAdd, type, type, terms, nullptr});
  if (!of || !total) emitter.Fail("dot: its type has no scalar formula");
  return total.value_or(sum);
}

}  // namespace tokamak
