#include "gen/column_reductions.h"

#include <algorithm>
#include <unordered_set>

namespace tokamak {
namespace {

// Whether the last dimension of a pad is that of the reduced elements, is kept, and is the only one
// that is padded, after its end.
bool PadsRows(const Instr& pad, const Reducer& reducer) {
  const PadAttrs& attrs = pad.attrs<PadAttrs>();
  const Dims &of = pad.operand(0)->shape().dims(), &dims = reducer.input().dims();
  if (of.empty() || dims.empty() || of.back() != dims.back() || attrs.high.back() < 0) return false;
  if (reducer.reduced_dims.empty() || reducer.reduced_dims.back() + 1 == reducer.input().rank())
    return false;
  auto is_zero = [](int64_t n) { return n == 0; };
  return std::ranges::all_of(attrs.low, is_zero) && std::ranges::all_of(attrs.interior, is_zero) &&
         std::all_of(attrs.high.begin(), attrs.high.end() - 1, is_zero);
}

// The region's reductions and what depends on them.
std::unordered_set<const Instr*> DependentsOf(const FusedRegion& region) {
  std::unordered_set<const Instr*> dependents;
  for (const Instr* instr : region.instrs)
    if (instr->op() == Op::kReduce || instr->op() == Op::kDot ||
        std::ranges::any_of(instr->operands(),
                            [&](const Instr* operand) { return dependents.contains(operand); }))
      dependents.insert(instr);
  return dependents;
}

bool AddElementRoot(const FusedRegion& region, const Instr& root, ColumnReductions& found) {
  if (found.reducers.empty() || !found.dots.empty() || DependentsOf(region).contains(&root))
    return false;
  const Reducer& reducer = found.reducers.front();
  bool is_padded = root.op() == Op::kPad && PadsRows(root, reducer);
  const Instr& value = is_padded ? *root.operand(0) : root;
  if (!value.shape().IsArray() || value.shape().ElementCount() != reducer.input().ElementCount())
    return false;
  found.element_roots.push_back({&root, &value});
  return true;
}

}  // namespace

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
      if (part.ElementCount() != ProductOf(found.dims, 0, found.dims.size()) &&
          !AddElementRoot(region, *root, found))
        return "a root has another number of elements than its reductions";
  return first ? "it has no reduction" : "";
}

Coordinates InputCoordinates(const Reducer& reducer, const Coordinates& result,
                             const Coordinates& reduced) {
  return ReadCoordinates(*IndexMapOf(*reducer.instr, 0), result, reduced);
}

namespace {

// The sum plus the product of one pair of elements.
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
  std::optional<Element> total = AddProduct(b, type, sum, x, y);
  if (!total) emitter.Fail("dot: its type has no scalar formula");
  return total.value_or(sum);
}

}  // namespace

DotSum ColumnEmitter::AddSum(const Instr& dot, int64_t lanes) {
  ElementType type = AccumulatorElementType(dot.shape().type());
  DotSum sum{&dot, LocalElements(b_, "sum", type, Space::kRegisters, lanes)};
  dot_sums_.push_back(sum);
  return sum;
}

Element ColumnEmitter::Read(const DotSum& sum, Scalar lane) {
  return ReadElement(b_, sum.arrays, sum.dot->shape().type(), lane);
}

void ColumnEmitter::WriteZero(const DotSum& sum, Scalar lane) {
  Element zero = ConstantElement(b_, AccumulatorElementType(sum.dot->shape().type()), 0);
  StoreElement(b_, sum.arrays, lane, zero);
}

void ColumnEmitter::AddTerm(const DotSum& sum, Scalar lane, const Coordinates& result,
                            const Coordinates& contracted, const Element& before) {
  Element term = AddDotTerm(b_, emitter_, *sum.dot, result, contracted, before);
  if (emitter_.failure().empty()) StoreElement(b_, sum.arrays, lane, term);
}

void ColumnEmitter::Bind(Accumulators& sums, const Coordinates& at,
                         const std::vector<Element>& values) {
  std::vector<Element> results = sums.FinalResult(values);
  for (size_t i = 0; i < results.size(); ++i)
    emitter_.Bind(*sums.reducer().instr, i, at, results[i]);
}

void ColumnEmitter::BindDots(const Coordinates& at, Scalar lane) {
  for (const DotSum& sum : dot_sums_) {
    ElementType type = sum.dot->shape().type();
    emitter_.Bind(*sum.dot, 0, at,
                  ConvertElement(b_, AccumulatorElementType(type), type, Read(sum, lane)));
  }
}

void ColumnEmitter::StoreRoots(const Coordinates& at, const Dims& dims, Scalar linear,
                               const std::vector<ElementRoot>& others) {
  for (const Instr* root : region_.roots) {
    if (std::ranges::find(others, root, &ElementRoot::root) != others.end()) continue;
    std::vector<Shape> parts = ResultShapesOf(root->shape());
    for (size_t i = 0; i < parts.size(); ++i) {
      Coordinates here = parts[i].dims() == dims ? at : Delinearized(b_, linear, parts[i].dims());
      emitter_.StoreLinear(*root, i, linear, emitter_.At(*root, here, i));
    }
  }
}

}  // namespace tokamak
