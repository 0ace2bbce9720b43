// Elementwise ops. Those that ops.def describes fully are drawn from its rows: a new row needs no
// change here.
#include "random/program_builder.h"

namespace tokamak::fuzz {
namespace {

// Ops with operands of one shape and no attributes. Cheap ones are listed several times, because
// most rules match them.
const std::vector<Op>& PlainOps() {
  static const std::vector<Op> ops = [] {
    std::vector<Op> plain;
    for (const OpInfo& info : AllOps()) {
      bool fits = info.Is(kElementwise) && info.arity >= 1 && info.arity <= 3 &&
                  info.shape_rule != ShapeRule::kExplicit &&
                  (info.arity < 3 || info.shape_rule == ShapeRule::kSameAsOperands) &&
                  (info.attrs == "NoAttrs" || info.attrs == "AccuracyAttrs");
      if (!fits) continue;
      int times = info.arity >= 2 ? 4 : 1;
      if (info.flops_per_element > 8) times = 1;
      if (info.flops_per_element > 30) times = 0;  // rarely: see DrawCostly
      plain.insert(plain.end(), static_cast<size_t>(times), info.op);
    }
    return plain;
  }();
  return ops;
}

// The other operand of a binary op.
Instr* Partner(ProgramBuilder& builder, Instr* x) {
  int64_t dice = builder.random().Below(100);
  if (dice < 12) return x;
  if (dice < 30) return builder.Constant(x->shape());
  if (dice < 45) {
    Instr* scalar = builder.Constant(Shape::Scalar(x->shape().type()));
    return builder.BroadcastTo(scalar, x->shape().dims());
  }
  return builder.Like(x->shape());
}

bool PutPlain(ProgramBuilder& builder, Op op) {
  Instr* x = builder.AnyFor(op);
  if (x == nullptr) return false;
  if (InfoOf(op).arity == 1) return builder.Put(op, {x}) != nullptr;
  Instr* y = Partner(builder, x);
  if (builder.random().Percent(30)) std::swap(x, y);
  if (InfoOf(op).arity == 3) return builder.Put(op, {x, y, Partner(builder, x)}) != nullptr;
  return builder.Put(op, {x, y}) != nullptr;
}

bool DrawPlain(ProgramBuilder& builder) {
  return PutPlain(builder, builder.random().Pick(PlainOps()));
}

// add, multiply and similar ops, which most rules match.
bool DrawArithmetic(ProgramBuilder& builder) {
  return PutPlain(builder,
                  builder.random().Pick({Op::kAdd, Op::kSubtract, Op::kMultiply, Op::kDivide,
                                         Op::kMaximum, Op::kMinimum, Op::kAdd, Op::kMultiply,
                                         Op::kNegate, Op::kAbs, Op::kPower, Op::kRemainder}));
}

bool DrawBits(ProgramBuilder& builder) {
  return PutPlain(builder,
                  builder.random().Pick({Op::kAnd, Op::kOr, Op::kXor, Op::kNot, Op::kShiftLeft,
                                         Op::kShiftRightLogical, Op::kShiftRightArithmetic,
                                         Op::kPopulationCount, Op::kCountLeadingZeros}));
}

bool DrawCostly(ProgramBuilder& builder) {
  return PutPlain(builder,
                  builder.random().Pick({Op::kLgamma, Op::kDigamma, Op::kZeta, Op::kPolygamma,
                                         Op::kErfInv, Op::kErfc, Op::kBesselI1e}));
}

CompareDirection Direction(ProgramBuilder& builder, ElementType type) {
  if (IsComplex(type)) return builder.random().Pick({CompareDirection::kEq, CompareDirection::kNe});
  return static_cast<CompareDirection>(builder.random().Below(6));
}

Instr* Comparison(ProgramBuilder& builder, Instr* x) {
  if (x == nullptr) return nullptr;
  Instr* y = Partner(builder, x);
  CompareDirection direction = Direction(builder, x->shape().type());
  bool total = IsReal(x->shape().type()) && builder.random().Percent(15);
  return builder.Put(
      Op::kCompare, {x, y},
      CompareAttrs{direction, total ? CompareType::kTotalOrder : CompareType::kNone});
}

bool DrawCompare(ProgramBuilder& builder) {
  return Comparison(builder, builder.Any()) != nullptr;
}

bool DrawSelect(ProgramBuilder& builder) {
  Instr* x = builder.Any();
  Instr* y = Partner(builder, x);
  Instr* chosen = nullptr;
  if (builder.random().Percent(40)) {
    chosen = Comparison(builder, builder.AnyThat([&](const Shape& shape) {
      return shape.rank() == 0 || SameDims(shape, x->shape());
    }));
  } else {
    Dims dims = builder.random().Percent(25) ? Dims() : x->shape().dims();
    chosen = builder.Like(Shape::Array(ElementType::kPred, dims));
  }
  if (builder.random().Percent(30)) std::swap(x, y);
  return builder.Put(Op::kSelect, {chosen, x, y}) != nullptr;
}

bool DrawClamp(ProgramBuilder& builder) {
  Instr* x = builder.Any();
  Shape bound = builder.random().Percent(60) ? Shape::Scalar(x->shape().type()) : x->shape();
  Instr* low = builder.Like(bound);
  Instr* high = builder.Like(builder.random().Percent(80) ? bound : x->shape());
  return builder.Put(Op::kClamp, {low, x, high}) != nullptr;
}

bool DrawConvert(ProgramBuilder& builder) {
  Instr* x = builder.Any();
  return builder.Convert(x, builder.AnyType()) != nullptr;
}

bool DrawReducePrecision(ProgramBuilder& builder) {
  Instr* x = builder.AnyFor(Op::kReducePrecision);
  ReducePrecisionAttrs attrs{builder.random().Pick({2, 4, 5, 8, 8, 11}),
                             builder.random().Pick({0, 2, 3, 7, 10, 23, 52})};
  return builder.Put(Op::kReducePrecision, {x}, attrs) != nullptr;
}

// Types of the same width, or of a width that divides or is divided by it.
bool DrawBitcastConvert(ProgramBuilder& builder) {
  Instr* x = builder.Any();
  ElementType to =
      builder.random().Percent(50)
          ? builder.AnyType()
          : builder.random().Pick({ElementType::kU32, ElementType::kF32, ElementType::kU8,
                                   ElementType::kU16, ElementType::kS32, ElementType::kU64});
  Dims dims = x->shape().dims();
  int from_bits = InfoOf(x->shape().type()).bits, to_bits = InfoOf(to).bits;
  if (from_bits > to_bits) dims.push_back(from_bits / to_bits);
  if (from_bits < to_bits) {
    if (dims.empty() || dims.back() != to_bits / from_bits) return false;
    dims.pop_back();
  }
  if (from_bits == 1 || to_bits == 1) return false;  // pred has no defined bit width here
  return builder.Put(Op::kBitcastConvert, {x}, {}, {.shape = Shape::Array(to, dims)}) != nullptr;
}

bool DrawStochasticConvert(ProgramBuilder& builder) {
  Instr* x = builder.AnyThat([](const Shape& s) { return s.type() == ElementType::kF32; });
  if (x == nullptr) return false;
  Instr* bits = builder.Like(x->shape().WithType(ElementType::kU32));
  ElementType to = builder.random().Pick({ElementType::kS8, ElementType::kS16, ElementType::kS32});
  return builder.Put(Op::kStochasticConvert, {x, bits}, {}, {.shape = x->shape().WithType(to)}) !=
         nullptr;
}

bool DrawCopy(ProgramBuilder& builder) {
  Instr* x = builder.Any();
  return builder.Put(Op::kCopy, {x}, {}, {.shape = x->shape()}) != nullptr;
}

bool DrawMap(ProgramBuilder& builder) {
  Instr* x = builder.Any();
  const Shape shape = x->shape();
  Dims dimensions;
  for (int64_t d = 0; d < shape.rank(); ++d) dimensions.push_back(d);
  Instr* y = builder.random().Percent(50) ? nullptr : builder.Like(shape);
  Instr* captured =
      builder.random().Percent(60) ? nullptr : builder.LikeButDrawn(Shape::Scalar(shape.type()));
  std::vector<Instr*> operands{x};
  for (Instr* other : {y, captured})
    if (other != nullptr) operands.push_back(other);
  ProgramBuilder body(builder.program_state(), "map", ProgramBuilder::Kind::kBody,
                      builder.depth() + 1);
  for (size_t i = 0; i < operands.size(); ++i) body.Parameter(Shape::Scalar(shape.type()));
  for (int64_t i = builder.random().Between(1, 3); i > 0; --i) DrawPlain(body);
  Instr* root = body.values().back();
  if (!root->shape().IsScalar()) root = body.values()[0];
  if (captured != nullptr) {
    Instr* with = body.Put(Op::kAdd, {body.values()[0], body.computation()->parameters().back()});
    if (with != nullptr) root = with;
  }
  body.computation()->set_root(root);
  return builder.Put(Op::kMap, operands, DimensionsAttrs{dimensions},
                     {.called = {body.computation()}, .captures = captured != nullptr ? 1u : 0u}) !=
         nullptr;
}

constexpr Drawer kElementwiseDrawers[] = {
    {"plain", 120, 2, DrawPlain},
    {"arithmetic", 150, 2, DrawArithmetic},
    {"bits", 40, 2, DrawBits},
    {"costly", 4, 2, DrawCostly},
    {"compare", 40, 2, DrawCompare},
    {"select", 50, 3, DrawSelect},
    {"clamp", 20, 3, DrawClamp},
    {"convert", 50, 1, DrawConvert},
    {"reduce-precision", 8, 1, DrawReducePrecision},
    {"bitcast-convert", 12, 1, DrawBitcastConvert},
    {"stochastic-convert", 2, 2, DrawStochasticConvert},
    {"copy", 6, 1, DrawCopy},
    {"map", 6, 8, DrawMap},
};

}  // namespace

std::span<const Drawer> ElementwiseDrawers() {
  return kElementwiseDrawers;
}

}  // namespace tokamak::fuzz
