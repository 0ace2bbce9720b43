// Tuples, barriers, and twins: two instructions that are the same, or nearly.
#include <algorithm>

#include "ir/attrs.h"
#include "random/draft.h"

namespace tokamak::fuzz {
namespace {

bool DrawTuple(Draft& draft) {
  std::vector<Instr*> elements;
  for (int64_t i = draft.random().Between(1, 3); i > 0; --i) {
    Instr* tuple = draft.random().Percent(15) ? draft.AnyTuple() : nullptr;
    if (tuple != nullptr && tuple->shape().depth() > 3) tuple = nullptr;
    elements.push_back(tuple != nullptr ? tuple : draft.Any());
  }
  return draft.Put(Op::kTuple, elements) != nullptr;
}

bool DrawElement(Draft& draft) {
  Instr* tuple = draft.AnyTuple();
  if (tuple == nullptr || tuple->shape().elements().empty()) return false;
  auto count = static_cast<int64_t>(tuple->shape().elements().size());
  return draft.Element(tuple, draft.random().Below(count)) != nullptr;
}

bool DrawBarrier(Draft& draft) {
  std::vector<Instr*> operands{draft.Any()};
  if (draft.random().Percent(50)) operands.push_back(draft.Any());
  Instr* barrier = draft.Put(Op::kOptimizationBarrier, operands);
  if (barrier == nullptr || barrier->shape().IsArray()) return barrier != nullptr;
  return draft.Element(barrier, draft.random().Below(2)) != nullptr;
}

bool DrawDimensionSize(Draft& draft) {
  Instr* x = draft.AnyOfRank(1);
  DimensionAttrs attrs{draft.random().Below(x->shape().rank())};
  return draft.Put(Op::kGetDimensionSize, {x}, attrs,
                   {.shape = Shape::Scalar(ElementType::kS32)}) != nullptr;
}

// ---- twins

void Nudge(Draft& draft, Dims& list) {
  if (list.empty()) return;
  int64_t change = draft.random().Percent(50) ? 1 : -1;
  list[At(draft.random().Below(static_cast<int64_t>(list.size())))] += change;
}

// One element of a literal changed by one bit: 0 and -0, 1 and the number after it.
Literal OtherLiteral(Draft& draft, const Literal& literal) {
  std::vector<std::byte> data(literal.data().data(), literal.data().data() + literal.data().size());
  if (data.empty()) return literal;
  auto width = static_cast<size_t>(BytesOf(literal.type()));
  size_t element = At(draft.random().Below(static_cast<int64_t>(data.size() / width)));
  int bits = std::min(InfoOf(literal.type()).bits, 64);
  int64_t bit = draft.random().Percent(50) ? bits - 1 : draft.random().Below(bits);
  data[element * width + At(bit / 8)] ^= std::byte{1} << (bit % 8);
  return Literal::Array(literal.shape(), Bytes::FromVector(std::move(data)));
}

// The attributes of `instr` with something changed; the same where nothing is known of them.
Attrs OtherAttrs(Draft& draft, const Instr& instr) {
  Random& random = draft.random();
  switch (instr.op()) {
    case Op::kCompare: {
      CompareAttrs attrs = instr.attrs<CompareAttrs>();
      if (random.Percent(70))
        attrs.direction = static_cast<CompareDirection>(random.Below(6));
      else if (IsReal(instr.operand(0)->shape().type()))
        attrs.type = CompareType::kTotalOrder;
      return attrs;
    }
    case Op::kConstant:
      return ConstantAttrs{OtherLiteral(draft, instr.attrs<ConstantAttrs>().literal)};
    case Op::kIota:
      return IotaAttrs{random.Below(instr.shape().rank())};
    case Op::kSlice: {
      SliceAttrs attrs = instr.attrs<SliceAttrs>();
      Dims& list = random.Percent(60)   ? attrs.starts
                   : random.Percent(50) ? attrs.limits
                                        : attrs.strides;
      Nudge(draft, list);
      return attrs;
    }
    case Op::kPad: {
      PadAttrs attrs = instr.attrs<PadAttrs>();
      Nudge(draft, attrs.low);
      if (random.Percent(70)) Nudge(draft, attrs.high);
      return attrs;
    }
    case Op::kTranspose:
      return DimensionsAttrs{draft.Permutation(instr.shape().rank())};
    case Op::kBroadcast:
    case Op::kReverse:
    case Op::kReduce: {
      DimensionsAttrs attrs = instr.attrs<DimensionsAttrs>();
      Nudge(draft, attrs.dimensions);
      return attrs;
    }
    case Op::kGetTupleElement: {
      auto count = static_cast<int64_t>(instr.operand(0)->shape().elements().size());
      return TupleIndexAttrs{random.Below(count)};
    }
    case Op::kDynamicSlice: {
      DynamicSliceAttrs attrs = instr.attrs<DynamicSliceAttrs>();
      Nudge(draft, attrs.sizes);
      return attrs;
    }
    case Op::kDot: {
      DotAttrs attrs = instr.attrs<DotAttrs>();
      attrs.precision = {Precision::kHighest, Precision::kHighest};
      return attrs;
    }
    case Op::kReducePrecision: {
      ReducePrecisionAttrs attrs = instr.attrs<ReducePrecisionAttrs>();
      attrs.mantissa_bits = random.Pick({0, 3, 7, 10});
      return attrs;
    }
    case Op::kConcatenate:
      return DimensionAttrs{random.Below(instr.shape().rank())};
    case Op::kReduceWindow: {
      WindowAttrs attrs = instr.attrs<WindowAttrs>();
      if (!attrs.window.empty()) attrs.window[0].pad_low ^= 1, attrs.window[0].pad_high ^= 1;
      return attrs;
    }
    case Op::kSort: {
      SortAttrs attrs = instr.attrs<SortAttrs>();
      attrs.dimension = random.Below(instr.operand(0)->shape().rank());
      return attrs;
    }
    case Op::kRngBitGenerator:
      return RngBitGeneratorAttrs{RngAlgorithm::kPhilox};
    default:
      return instr.attrs();
  }
}

// Like Adapt: the operand itself, or another of its shape.
Instr* OtherOperand(Draft& draft, Instr* operand) {
  if (!operand->shape().IsArray()) return operand;
  Instr* other =
      draft.AnyThat([&](const Shape& shape) { return Compatible(shape, operand->shape()); });
  return other != nullptr ? other : operand;
}

// A reduction by something else.
void SwapCombiner(Draft& draft, const Instr& old, std::vector<Computation*>& called) {
  bool folds = old.op() == Op::kReduce || old.op() == Op::kReduceWindow || old.op() == Op::kScatter;
  if (!folds || old.captures() > 0 || called[0]->parameters().size() != 2) return;
  ElementType type = old.operand(0)->shape().type();
  Op op = draft.random().Pick({Op::kAdd, Op::kMultiply, Op::kMaximum, Op::kMinimum});
  if (IsComplex(type) && (op == Op::kMaximum || op == Op::kMinimum)) op = Op::kAdd;
  if (Computation* other = Combiner(draft, type, op)) called[0] = other;
}

bool DrawTwin(Draft& draft) {
  std::vector<Instr*> instrs;
  for (Instr* instr : draft.computation()->Instrs())
    if (instr->op() != Op::kParameter && !instr->info().Is(kSideEffect)) instrs.push_back(instr);
  if (instrs.empty()) return false;
  const Instr& old = *draft.random().Pick(instrs);
  std::vector<Instr*> operands(old.operands().begin(), old.operands().end());
  std::vector<Computation*> called(old.called().begin(), old.called().end());
  Attrs attrs = old.attrs();
  int64_t dice = draft.random().Below(100);
  if (dice < 45) {
    attrs = OtherAttrs(draft, old);
  } else if (dice < 60 && !operands.empty()) {
    size_t i = At(draft.random().Below(static_cast<int64_t>(operands.size())));
    operands[i] = OtherOperand(draft, operands[i]);
  } else if (dice < 70 && operands.size() == 2) {
    std::swap(operands[0], operands[1]);
  }
  if (dice >= 70 && dice < 85) SwapCombiner(draft, old, called);
  std::optional<Shape> shape;
  if (old.info().shape_rule == ShapeRule::kExplicit) shape = old.shape();
  if (old.op() == Op::kGetTupleElement || old.op() == Op::kConstant) shape.reset();
  if (old.op() == Op::kConvert && dice > 80) shape = old.shape().WithType(draft.AnyType());
  return draft.Put(old.op(), operands, attrs,
                   {.shape = shape, .called = called, .captures = old.captures()}) != nullptr;
}

constexpr Drawer kStructureDrawers[] = {
    {"tuple", 20, 1, DrawTuple},        {"get-tuple-element", 25, 1, DrawElement},
    {"opt-barrier", 5, 2, DrawBarrier}, {"get-dimension-size", 3, 1, DrawDimensionSize},
    {"twin", 70, 1, DrawTwin},
};

}  // namespace

std::span<const Drawer> StructureDrawers() {
  return kStructureDrawers;
}

}  // namespace tokamak::fuzz
