#include "gen/reducer.h"

#include <algorithm>
#include <limits>

namespace tokamak {
namespace {

Element ElementOf(KernelBuilder& b, ElementType type, double value) {
  Element element{b.Constant(ComputeType(type), value), {}};
  if (IsComplex(type)) element[1] = b.Constant(ComputeType(type), value);
  return element;
}

// The op of a result that is x op y or y op x, if it is commutative and has a neutral element.
std::optional<Op> OpOfPair(const Instr& result, const Instr* x, const Instr* y) {
  if (result.operand_count() != 2 || !IsCommutative(result.op())) return std::nullopt;
  const Instr *left = result.operand(0), *right = result.operand(1);
  bool both = (left == x && right == y) || (left == y && right == x);
  return both ? std::optional(result.op()) : std::nullopt;
}

// Reducer::ops of a body with `count` inputs.
std::vector<Op> OpsOf(const Computation& body, size_t count) {
  const Instr* root = body.root();
  if (root == nullptr || body.parameters().size() != 2 * count) return {};
  bool is_tuple = root->op() == Op::kTuple;
  if (is_tuple ? root->operand_count() != count : count != 1) return {};
  std::vector<Op> ops;
  for (size_t i = 0; i < count; ++i) {
    const Instr& result = is_tuple ? *root->operand(i) : *root;
    std::optional<Op> op = OpOfPair(result, body.parameter(i), body.parameter(count + i));
    if (!op) return {};
    ops.push_back(*op);
  }
  return ops;
}

}  // namespace

std::optional<Op> CommutativeOpOf(const Computation& body) {
  std::vector<Op> ops = OpsOf(body, 1);
  return ops.empty() ? std::nullopt : std::optional(ops[0]);
}

Element NeutralOf(KernelBuilder& b, Op op, ElementType type) {
  ScalarType scalar = ComputeType(type);
  bool real = IsReal(type);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  auto integer = [&](bool greatest) {
    int bits = InfoOf(type).bits;
    uint64_t ones = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
    if (IsSigned(type)) {
      auto most = static_cast<int64_t>(ones >> 1);
      return Element{b.ConstantBits(scalar, BitsOfInt(scalar, greatest ? most : -most - 1)), {}};
    }
    return Element{b.ConstantBits(scalar, greatest ? ones : 0), {}};
  };
  switch (op) {
    case Op::kAdd:
      // -0 + x is x, also for x = -0.
      return ElementOf(b, type, real || IsComplex(type) ? -0.0 : 0);
    case Op::kMultiply:
      return ElementOf(b, type, 1);
    case Op::kMaximum:
      return real ? ElementOf(b, type, -kInfinity) : integer(false);
    case Op::kMinimum:
      return real ? ElementOf(b, type, kInfinity) : integer(true);
    case Op::kAnd:
      return IsSigned(type) ? ElementOf(b, type, -1) : integer(true);
    default:
      return ElementOf(b, type, 0);
  }
}

Reducer ReducerOf(const Instr& reduce) {
  Reducer reducer;
  reducer.instr = &reduce;
  reducer.input_count = (reduce.operand_count() - reduce.captures()) / 2;
  reducer.body = reduce.called(0);
  reducer.reduced_dims = reduce.attrs<DimensionsAttrs>().dimensions;
  std::sort(reducer.reduced_dims.begin(), reducer.reduced_dims.end());
  for (int64_t d = 0; d < reducer.input().rank(); ++d)
    if (!std::binary_search(reducer.reduced_dims.begin(), reducer.reduced_dims.end(), d))
      reducer.kept_dims.push_back(d);
  reducer.ops = OpsOf(*reducer.body, reducer.input_count);
  reducer.can_reassociate = !reducer.ops.empty();
  // (1 + 0i) * x is not x if x is infinite, and complex numbers have no maximum.
  for (size_t i = 0; i < reducer.ops.size(); ++i)
    if ((IsComplex(reducer.type(i)) && reducer.ops[i] != Op::kAdd) ||
        reducer.type(i) != reducer.result_type(i))
      reducer.can_reassociate = false;
  if (reducer.input_count == 2 && reducer.ops.empty())
    reducer.arg_reduction = ArgReductionOf(reducer);
  if (reducer.arg_reduction != ArgReduction::kNone) reducer.can_reassociate = true;
  return reducer;
}

std::optional<std::string> WhyNoReduceKernel(const Instr& reduce) {
  Reducer reducer = ReducerOf(reduce);
  for (size_t i = 0; i < reducer.input_count; ++i) {
    const Shape &input = reduce.operand(i)->shape(),
                &init = reduce.operand(reducer.input_count + i)->shape();
    if (!IsPlainArray(input) || input.ElementCount() == 0) return "reduce: its array is empty";
    if (!init.IsScalar() || init.type() != input.type()) return "reduce: its types differ";
    const Shape& parameter = reducer.body->parameter(i)->shape();
    if (!parameter.IsArray() || parameter.type() != input.type())
      return "reduce: the parameter types of its computation differ from its operands";
    if (!IsPlainArray(ResultShapesOf(reduce.shape())[i]) || reducer.result_type(i) != input.type())
      return "reduce: its result has another type";
  }
  KernelBuilder b("probe");
  std::vector<Element> arguments;
  for (const Instr* parameter : reducer.body->parameters()) {
    if (!IsPlainArray(parameter->shape()))
      return "reduce: the parameters of its computation are not scalars";
    ElementType type = AccumulatorElementType(parameter->shape().type());
    ArrayId array =
        b.Argument({.name = "x", .type = StorageType(type), .access = Access::kRead, .size = 2});
    Element loaded{b.Load(array, b.Index(0)), {}};
    if (IsComplex(type)) loaded[1] = b.Load(array, b.Index(1));
    arguments.push_back(FromStorage(b, type, loaded));
  }
  if (!ApplyBody(b, *reducer.body, arguments, true))
    return "reduce: its computation has no scalar formula";
  return std::nullopt;
}

Accumulators::Accumulators(KernelBuilder& b, ElementEmitter& emitter, const Reducer& reducer,
                           int64_t lanes)
    : b_(b), emitter_(emitter), reducer_(&reducer), lanes_(lanes) {
  for (size_t i = 0; i < reducer.input_count; ++i) {
    ElementType type = AccumulatorElementType(reducer.type(i));
    arrays_.push_back(LocalElements(b, "sum", type, Space::kRegisters, lanes));
  }
}

std::vector<Element> Accumulators::StartValue() {
  std::vector<Element> values;
  for (size_t i = 0; i < reducer_->input_count; ++i)
    values.push_back(
        StartsNeutral() ? NeutralOf(b_, reducer_->ops[i], AccumulatorElementType(reducer_->type(i)))
                        : emitter_.At(*reducer_->instr->operand(reducer_->input_count + i), {}));
  return values;
}

std::vector<Element> Accumulators::Read(Scalar lane) {
  std::vector<Element> values;
  for (size_t i = 0; i < reducer_->input_count; ++i)
    values.push_back(ReadElement(b_, arrays_[i], reducer_->type(i), lane));
  return values;
}

void Accumulators::Write(Scalar lane, const std::vector<Element>& values) {
  if (!emitter_.failure().empty()) return;
  for (size_t i = 0; i < reducer_->input_count; ++i) StoreElement(b_, arrays_[i], lane, values[i]);
}

std::vector<Element> Accumulators::Apply(const std::vector<Element>& x,
                                         const std::vector<Element>& y) {
  std::vector<Element> arguments = x;
  arguments.insert(arguments.end(), y.begin(), y.end());
  const Instr& instr = *reducer_->instr;
  for (size_t i = instr.operand_count() - instr.captures(); i < instr.operand_count(); ++i)
    arguments.push_back(emitter_.At(*instr.operand(i), {}));
  std::optional<std::vector<Element>> results = ApplyBody(b_, *reducer_->body, arguments, true);
  if (results && results->size() == reducer_->input_count) return *results;
  emitter_.Fail("reduce: its computation has no scalar formula");
  return x;
}

void Accumulators::Accumulate(Scalar lane, const Coordinates& at, Scalar valid) {
  std::vector<Element> elements;
  for (size_t i = 0; i < reducer_->input_count; ++i)
    elements.push_back(emitter_.At(*reducer_->instr->operand(i), at));
  if (!emitter_.failure().empty()) return;
  if (valid.ok() && reducer_->arg_reduction != ArgReduction::kNone) {
    std::vector<Element> before = Read(lane), after = Apply(before, elements);
    for (size_t i = 0; i < after.size(); ++i)
      after[i][0] = Choose(valid, after[i][0], before[i][0]);
    return Write(lane, after);
  }
  for (size_t i = 0; i < elements.size() && valid.ok(); ++i) {
    Element neutral = NeutralOf(b_, reducer_->ops[i], AccumulatorElementType(reducer_->type(i)));
    elements[i] = Choose(valid, elements[i], neutral);
  }
  if (std::optional<Scalar> sum = TryMultiplyAdd(lane, elements[0]))
    return b_.Store(arrays_[0][0], lane, *sum);
  Write(lane, Apply(Read(lane), elements));
}

// Fuses multiply and add in a sum that may run in any order: one rounding per term.
std::optional<Scalar> Accumulators::TryMultiplyAdd(Scalar lane, const Element& element) {
  bool adds = b_.dialect() == Dialect::kCpu && reducer_->can_reassociate &&
              reducer_->ops == std::vector{Op::kAdd} && IsFloat(element[0].type()) &&
              !element[1].ok();
  if (!adds) return std::nullopt;
  const ScalarNode product = b_.kernel().node(element[0].id());
  if (product.prim != Prim::kMul) return std::nullopt;
  return Fma({&b_, product.operands[0]}, {&b_, product.operands[1]}, b_.Read(arrays_[0][0], lane));
}

std::vector<Element> Accumulators::CombinePair(const std::vector<Element>& x,
                                               const std::vector<Element>& y) {
  return reducer_->arg_reduction == ArgReduction::kNone ? Apply(x, y)
                                                        : SelectPair(reducer_->arg_reduction, x, y);
}

std::vector<Element> Accumulators::CombineLanes() {
  for (int64_t half = lanes_ / 2; half > 0; half /= 2) {
    auto accumulate = [&](Scalar lane) {
      std::vector<Element> own = Read(lane);
      Write(lane, CombinePair(own, Read(lane + b_.Index(half))));
    };
    if (half == 1) {
      accumulate(b_.Index(0));
    } else {
      b_.For("h", LoopRole::kVector, b_.Index(half), accumulate);
    }
  }
  return Read(b_.Index(0));
}

std::vector<Element> Accumulators::FinalResult(std::vector<Element> sums) {
  if (StartsNeutral()) {
    std::vector<Element> first;
    for (size_t i = 0; i < reducer_->input_count; ++i)
      first.push_back(emitter_.At(*reducer_->instr->operand(reducer_->input_count + i), {}));
    sums = Apply(first, sums);
  }
  for (size_t i = 0; i < reducer_->input_count; ++i)
    sums[i] =
        ConvertElement(b_, AccumulatorElementType(reducer_->type(i)), reducer_->type(i), sums[i]);
  return sums;
}

}  // namespace tokamak
