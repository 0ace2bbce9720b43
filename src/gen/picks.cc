// Reducers that pick an element: argmax and argmin.
//
// Their computation takes two pairs (value, index) and returns one value and one index. If it only
// compares values with values and indices with indices, the result depends only on the outcomes of
// these comparisons, so trying all cases determines it completely.

#include <algorithm>
#include <limits>

#include "gen/generator.h"
#include "gen/reducer.h"

namespace tokamak {
namespace {

// Inputs of the reduction: values and indices (definition of the argmax idiom). Its initial values
// follow, and the parameters of the computation have the same order.
constexpr size_t kPickInputs = 2;

bool IsParameter(const Instr& instr, size_t number) {
  return instr.op() == Op::kParameter &&
         instr.attrs<ParameterAttrs>().number == static_cast<int64_t>(number);
}

// Whether it consists of comparisons of values, comparisons of indices, and selects.
bool OnlyCompares(const Computation& body) {
  for (const Instr* instr : body.PostOrder()) {
    switch (instr->op()) {
      case Op::kParameter:
      case Op::kSelect:
      case Op::kAnd:
      case Op::kOr:
      case Op::kNot:
      case Op::kTuple:
        break;
      case Op::kCompare: {
        if (instr->attrs<CompareAttrs>().type == CompareType::kTotalOrder) return false;
        auto both = [&](size_t x, size_t y) {
          return std::all_of(instr->operands().begin(), instr->operands().end(),
                             [&](const Instr* operand) {
                               return IsParameter(*operand, x) || IsParameter(*operand, y);
                             });
        };
        if (!both(0, kPickInputs) && !both(1, kPickInputs + 1)) return false;
        break;
      }
      default:
        return false;
    }
  }
  return true;
}

// The dimension along which an iota, or a slice of one, counts; -1 if it is not one.
int64_t CountedOf(const Instr& index) {
  const Instr& whole = index.op() == Op::kSlice ? *index.operand(0) : index;
  return whole.op() == Op::kIota ? whole.attrs<IotaAttrs>().dimension : -1;
}

// Whether an array's elements increase along a dimension and are not negative: an iota, or one of
// the dimensions that an iota was reshaped into.
bool CountsAlong(const Instr& index, int64_t dimension) {
  if (CountedOf(index) >= 0) return CountedOf(index) == dimension;
  if (index.op() != Op::kReshape || CountedOf(*index.operand(0)) < 0) return false;
  const Dims &from = index.operand(0)->shape().dims(), &to = index.shape().dims();
  auto counted = static_cast<size_t>(CountedOf(*index.operand(0)));
  int64_t behind = ProductOf(from, counted + 1, from.size());
  size_t end = to.size();
  int64_t size = 1;
  while (end > 0 && size < behind) size *= to[--end];
  size_t begin = end;
  int64_t cut = 1;
  while (begin > 0 && cut < from[counted]) cut *= to[--begin];
  auto d = static_cast<size_t>(dimension);
  return size == behind && cut == from[counted] && d >= begin && d < end;
}

// Whether the inputs are results of the same picks over chunks, possibly concatenated.
bool ReducesPicks(const Instr& reduce, const Instr& value, const Instr& index) {
  if (value.op() == Op::kConcatenate && index.op() == Op::kConcatenate) {
    auto picks = [&](const Instr* x, const Instr* y) { return ReducesPicks(reduce, *x, *y); };
    return std::equal(value.operands().begin(), value.operands().end(), index.operands().begin(),
                      index.operands().end(), picks);
  }
  if (value.op() != Op::kGetTupleElement || index.op() != Op::kGetTupleElement) return false;
  const Instr& parts = *value.operand(0);
  return parts.op() == Op::kReduce && index.operand(0) == &parts &&
         value.attrs<TupleIndexAttrs>().index == 0 && index.attrs<TupleIndexAttrs>().index == 1 &&
         parts.called(0) == reduce.called(0) &&
         parts.operand(kPickInputs) == reduce.operand(kPickInputs) &&
         parts.operand(kPickInputs + 1) == reduce.operand(kPickInputs + 1) &&
         ReducerOf(parts).arg_reduction != ArgReduction::kNone;
}

// Whether indices increase from 0 and the initial index is not greater. Chunks that picked the
// initial pair have its index: no other is lower.
bool CountsUp(const Instr& reduce, const Dims& reduced) {
  const Instr &index = *reduce.operand(1), &first = *reduce.operand(kPickInputs + 1);
  if (!IsInteger(index.shape().type()) || InfoOf(index.shape().type()).bits < 32) return false;
  if (!IsImmediate(first) || first.attrs<ConstantAttrs>().literal.IntAt(0) > 0) return false;
  return (reduced.size() == 1 && CountsAlong(index, reduced[0])) ||
         ReducesPicks(reduce, *reduce.operand(0), index);
}

struct Case {
  double x, y;
  bool takes_greatest, takes_least;  // whether argmax or argmin takes the first pair
};

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
// Values of the pairs for which the comparison is evaluated; the index of the first pair is the
// lower one. By definition of argmax: lower, greater, equal and NaN.
constexpr Case kCases[] = {{2, 1, true, false},     {1, 2, false, true},
                           {1, 1, true, true},      {kNan, 1, true, true},
                           {1, kNan, false, false}, {kNan, kNan, true, true}};

// Whether the computation takes the first pair; nullopt if it mixes them. Pairs with equal indices,
// such as the initial value and the first element, must still give the right value.
std::optional<bool> TakesFirst(const Reducer& reducer, const Case& values, bool one_index) {
  KernelBuilder b("probe");
  ElementType type = AccumulatorElementType(reducer.type(0)), index = reducer.type(1);
  // Indices of the two pairs, in values of their type. Chosen: any two in this order.
  constexpr double kLower = 5, kHigher = 7;
  Element arguments[] = {ConstantElement(b, type, values.x), ConstantElement(b, index, kLower),
                         ConstantElement(b, type, values.y),
                         ConstantElement(b, index, one_index ? kLower : kHigher)};
  std::optional<std::vector<Element>> results = ApplyBody(b, *reducer.body, arguments, true);
  if (!results || results->size() != 2) return std::nullopt;
  if (one_index) return (*results)[0][0].id() == arguments[0][0].id();
  bool first = (*results)[1][0].id() == arguments[1][0].id();
  // For equal values either is right.
  if ((*results)[0][0].id() != arguments[first ? 0 : 2][0].id() && values.x != values.y)
    return std::nullopt;
  return first;
}

}  // namespace

ArgReduction ArgReductionOf(const Reducer& reducer) {
  const Instr& reduce = *reducer.instr;
  if (reducer.input_count != kPickInputs || reduce.captures() > 0 ||
      reduce.operand_count() != 2 * kPickInputs)
    return ArgReduction::kNone;
  ElementType type = reducer.type(0);
  if ((!IsReal(type) && !IsInteger(type)) || InfoOf(type).bits < 8) return ArgReduction::kNone;
  if (!CountsUp(reduce, reducer.reduced_dims) || !OnlyCompares(*reducer.body))
    return ArgReduction::kNone;
  bool greatest = true, least = true;
  for (const Case& values : kCases) {
    if (!IsReal(type) && (values.x != values.x || values.y != values.y)) continue;
    for (bool one_index : {false, true}) {
      std::optional<bool> first = TakesFirst(reducer, values, one_index);
      if (!first) return ArgReduction::kNone;
      greatest = greatest && *first == values.takes_greatest;
      least = least && *first == values.takes_least;
    }
  }
  return greatest ? ArgReduction::kArgMax : least ? ArgReduction::kArgMin : ArgReduction::kNone;
}

std::vector<Element> SelectPair(ArgReduction pick, const std::vector<Element>& x,
                                const std::vector<Element>& y) {
  Scalar a = x[0][0], b = y[0][0], i = x[1][0], k = y[1][0];
  Scalar better = pick == ArgReduction::kArgMax ? b < a : a < b, same = a == b;
  if (IsFloat(a.type())) {
    better = better | ((a != a) & (b == b));
    same = same | ((a != a) & (b != b));
  }
  Scalar first = better | (same & (i <= k));
  return {{Choose(first, a, b), {}}, {Choose(first, i, k), {}}};
}

}  // namespace tokamak
