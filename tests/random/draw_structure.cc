// Tuples, barriers, and duplicates: two instructions that are equal, or nearly.
#include <algorithm>

#include "ir/attrs.h"
#include "random/program_builder.h"

namespace tokamak::fuzz {
namespace {

bool DrawTuple(ProgramBuilder& builder) {
  std::vector<Instr*> elements;
  for (int64_t i = builder.random().Between(1, 3); i > 0; --i) {
    Instr* tuple = builder.random().Percent(15) ? builder.AnyTuple() : nullptr;
    if (tuple != nullptr && tuple->shape().depth() > 3) tuple = nullptr;
    elements.push_back(tuple != nullptr ? tuple : builder.Any());
  }
  return builder.Put(Op::kTuple, elements) != nullptr;
}

bool DrawElement(ProgramBuilder& builder) {
  Instr* tuple = builder.AnyTuple();
  if (tuple == nullptr || tuple->shape().elements().empty()) return false;
  auto count = static_cast<int64_t>(tuple->shape().elements().size());
  return builder.Element(tuple, builder.random().Below(count)) != nullptr;
}

bool DrawBarrier(ProgramBuilder& builder) {
  std::vector<Instr*> operands{builder.Any()};
  if (builder.random().Percent(50)) operands.push_back(builder.Any());
  Instr* barrier = builder.Put(Op::kOptimizationBarrier, operands);
  if (barrier == nullptr || barrier->shape().IsArray()) return barrier != nullptr;
  return builder.Element(barrier, builder.random().Below(2)) != nullptr;
}

bool DrawDimensionSize(ProgramBuilder& builder) {
  Instr* x = builder.AnyOfRank(1);
  DimensionAttrs attrs{builder.random().Below(x->shape().rank())};
  return builder.Put(Op::kGetDimensionSize, {x}, attrs,
                     {.shape = Shape::Scalar(ElementType::kS32)}) != nullptr;
}

// ---- duplicates

void Nudge(ProgramBuilder& builder, Dims& list) {
  if (list.empty()) return;
  int64_t change = builder.random().Percent(50) ? 1 : -1;
  list[At(builder.random().Below(static_cast<int64_t>(list.size())))] += change;
}

// A literal with one bit of one element changed: 0 and -0, 1 and the next number.
Literal OtherLiteral(ProgramBuilder& builder, const Literal& literal) {
  std::vector<std::byte> data(literal.data().data(), literal.data().data() + literal.data().size());
  if (data.empty()) return literal;
  auto width = static_cast<size_t>(BytesOf(literal.type()));
  size_t element = At(builder.random().Below(static_cast<int64_t>(data.size() / width)));
  int bits = std::min(InfoOf(literal.type()).bits, 64);
  int64_t bit = builder.random().Percent(50) ? bits - 1 : builder.random().Below(bits);
  data[element * width + At(bit / 8)] ^= std::byte{1} << (bit % 8);
  return Literal::Array(literal.shape(), Bytes::FromVector(std::move(data)));
}

// The attributes of `instr` with a change; unchanged if their type is not handled.
Attrs OtherAttrs(ProgramBuilder& builder, const Instr& instr) {
  Random& random = builder.random();
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
      return ConstantAttrs{OtherLiteral(builder, instr.attrs<ConstantAttrs>().literal)};
    case Op::kIota:
      return IotaAttrs{random.Below(instr.shape().rank())};
    case Op::kSlice: {
      SliceAttrs attrs = instr.attrs<SliceAttrs>();
      Dims& list = random.Percent(60)   ? attrs.starts
                   : random.Percent(50) ? attrs.limits
                                        : attrs.strides;
      Nudge(builder, list);
      return attrs;
    }
    case Op::kPad: {
      PadAttrs attrs = instr.attrs<PadAttrs>();
      Nudge(builder, attrs.low);
      if (random.Percent(70)) Nudge(builder, attrs.high);
      return attrs;
    }
    case Op::kTranspose:
      return DimensionsAttrs{builder.Permutation(instr.shape().rank())};
    case Op::kBroadcast:
    case Op::kReverse:
    case Op::kReduce: {
      DimensionsAttrs attrs = instr.attrs<DimensionsAttrs>();
      Nudge(builder, attrs.dimensions);
      return attrs;
    }
    case Op::kGetTupleElement: {
      auto count = static_cast<int64_t>(instr.operand(0)->shape().elements().size());
      return TupleIndexAttrs{random.Below(count)};
    }
    case Op::kDynamicSlice: {
      DynamicSliceAttrs attrs = instr.attrs<DynamicSliceAttrs>();
      Nudge(builder, attrs.sizes);
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
Instr* OtherOperand(ProgramBuilder& builder, Instr* operand) {
  if (!operand->shape().IsArray()) return operand;
  Instr* other =
      builder.AnyThat([&](const Shape& shape) { return Compatible(shape, operand->shape()); });
  return other != nullptr ? other : operand;
}

// Replaces the combiner of a reduction.
void SwapCombiner(ProgramBuilder& builder, const Instr& old, std::vector<Computation*>& called) {
  bool reduces =
      old.op() == Op::kReduce || old.op() == Op::kReduceWindow || old.op() == Op::kScatter;
  if (!reduces || old.captures() > 0 || called[0]->parameters().size() != 2) return;
  ElementType type = old.operand(0)->shape().type();
  Op op = builder.random().Pick({Op::kAdd, Op::kMultiply, Op::kMaximum, Op::kMinimum});
  if (IsComplex(type) && (op == Op::kMaximum || op == Op::kMinimum)) op = Op::kAdd;
  if (Computation* other = Combiner(builder, type, op)) called[0] = other;
}

bool DrawDuplicate(ProgramBuilder& builder) {
  std::vector<Instr*> instrs;
  for (Instr* instr : builder.computation()->Instrs())
    if (instr->op() != Op::kParameter && !instr->info().Is(kSideEffect)) instrs.push_back(instr);
  if (instrs.empty()) return false;
  const Instr& old = *builder.random().Pick(instrs);
  std::vector<Instr*> operands(old.operands().begin(), old.operands().end());
  std::vector<Computation*> called(old.called().begin(), old.called().end());
  Attrs attrs = old.attrs();
  int64_t dice = builder.random().Below(100);
  if (dice < 45) {
    attrs = OtherAttrs(builder, old);
  } else if (dice < 60 && !operands.empty()) {
    size_t i = At(builder.random().Below(static_cast<int64_t>(operands.size())));
    operands[i] = OtherOperand(builder, operands[i]);
  } else if (dice < 70 && operands.size() == 2) {
    std::swap(operands[0], operands[1]);
  }
  if (dice >= 70 && dice < 85) SwapCombiner(builder, old, called);
  std::optional<Shape> shape;
  if (old.info().shape_rule == ShapeRule::kExplicit) shape = old.shape();
  if (old.op() == Op::kGetTupleElement || old.op() == Op::kConstant) shape.reset();
  if (old.op() == Op::kConvert && dice > 80) shape = old.shape().WithType(builder.AnyType());
  return builder.Put(old.op(), operands, attrs,
                     {.shape = shape, .called = called, .captures = old.captures()}) != nullptr;
}

constexpr Drawer kStructureDrawers[] = {
    {"tuple", 20, 1, DrawTuple},         {"get-tuple-element", 25, 1, DrawElement},
    {"opt-barrier", 5, 2, DrawBarrier},  {"get-dimension-size", 3, 1, DrawDimensionSize},
    {"duplicate", 70, 1, DrawDuplicate},
};

}  // namespace

std::span<const Drawer> StructureDrawers() {
  return kStructureDrawers;
}

}  // namespace tokamak::fuzz
