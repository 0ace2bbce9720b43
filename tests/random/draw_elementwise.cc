// Elementwise ops. Those that ops.def describes fully are drawn from its rows: a
// new row is drawn without a change here.
#include "random/draft.h"

namespace tokamak::fuzz {
namespace {

// Ops whose operands are alike and that have nothing to set. Cheap ones are
// there several times: they are what rules are about.
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
      if (info.flops_per_element > 30) times = 0;  // seldom: see DrawCostly
      plain.insert(plain.end(), static_cast<size_t>(times), info.op);
    }
    return plain;
  }();
  return ops;
}

// The other operand of a binary op.
Instr* Partner(Draft& draft, Instr* x) {
  int64_t dice = draft.random().Below(100);
  if (dice < 12) return x;
  if (dice < 30) return draft.Constant(x->shape());
  if (dice < 45) {
    Instr* scalar = draft.Constant(Shape::Scalar(x->shape().type()));
    return draft.Spread(scalar, x->shape().dims());
  }
  return draft.Like(x->shape());
}

bool PutPlain(Draft& draft, Op op) {
  Instr* x = draft.AnyFor(op);
  if (x == nullptr) return false;
  if (InfoOf(op).arity == 1) return draft.Put(op, {x}) != nullptr;
  Instr* y = Partner(draft, x);
  if (draft.random().Percent(30)) std::swap(x, y);
  if (InfoOf(op).arity == 3) return draft.Put(op, {x, y, Partner(draft, x)}) != nullptr;
  return draft.Put(op, {x, y}) != nullptr;
}

bool DrawPlain(Draft& draft) {
  return PutPlain(draft, draft.random().Pick(PlainOps()));
}

// add, multiply and their kind, which most rules are about.
bool DrawArithmetic(Draft& draft) {
  return PutPlain(draft, draft.random().Pick({Op::kAdd, Op::kSubtract, Op::kMultiply, Op::kDivide,
                                              Op::kMaximum, Op::kMinimum, Op::kAdd, Op::kMultiply,
                                              Op::kNegate, Op::kAbs, Op::kPower, Op::kRemainder}));
}

bool DrawBits(Draft& draft) {
  return PutPlain(draft, draft.random().Pick({Op::kAnd, Op::kOr, Op::kXor, Op::kNot, Op::kShiftLeft,
                                              Op::kShiftRightLogical, Op::kShiftRightArithmetic,
                                              Op::kPopulationCount, Op::kCountLeadingZeros}));
}

bool DrawCostly(Draft& draft) {
  return PutPlain(draft, draft.random().Pick({Op::kLgamma, Op::kDigamma, Op::kZeta, Op::kPolygamma,
                                              Op::kErfInv, Op::kErfc, Op::kBesselI1e}));
}

CompareDirection Direction(Draft& draft, ElementType type) {
  if (IsComplex(type)) return draft.random().Pick({CompareDirection::kEq, CompareDirection::kNe});
  return static_cast<CompareDirection>(draft.random().Below(6));
}

Instr* Comparison(Draft& draft, Instr* x) {
  if (x == nullptr) return nullptr;
  Instr* y = Partner(draft, x);
  CompareDirection direction = Direction(draft, x->shape().type());
  bool total = IsReal(x->shape().type()) && draft.random().Percent(15);
  return draft.Put(Op::kCompare, {x, y},
                   CompareAttrs{direction, total ? CompareType::kTotalOrder : CompareType::kNone});
}

bool DrawCompare(Draft& draft) {
  return Comparison(draft, draft.Any()) != nullptr;
}

bool DrawSelect(Draft& draft) {
  Instr* x = draft.Any();
  Instr* y = Partner(draft, x);
  Instr* chosen = nullptr;
  if (draft.random().Percent(40)) {
    chosen = Comparison(draft, draft.AnyThat([&](const Shape& shape) {
      return shape.rank() == 0 || SameDims(shape, x->shape());
    }));
  } else {
    Dims dims = draft.random().Percent(25) ? Dims() : x->shape().dims();
    chosen = draft.Like(Shape::Array(ElementType::kPred, dims));
  }
  if (draft.random().Percent(30)) std::swap(x, y);
  return draft.Put(Op::kSelect, {chosen, x, y}) != nullptr;
}

bool DrawClamp(Draft& draft) {
  Instr* x = draft.Any();
  Shape bound = draft.random().Percent(60) ? Shape::Scalar(x->shape().type()) : x->shape();
  Instr* low = draft.Like(bound);
  Instr* high = draft.Like(draft.random().Percent(80) ? bound : x->shape());
  return draft.Put(Op::kClamp, {low, x, high}) != nullptr;
}

bool DrawConvert(Draft& draft) {
  Instr* x = draft.Any();
  return draft.Convert(x, draft.AnyType()) != nullptr;
}

bool DrawReducePrecision(Draft& draft) {
  Instr* x = draft.AnyFor(Op::kReducePrecision);
  ReducePrecisionAttrs attrs{draft.random().Pick({2, 4, 5, 8, 8, 11}),
                             draft.random().Pick({0, 2, 3, 7, 10, 23, 52})};
  return draft.Put(Op::kReducePrecision, {x}, attrs) != nullptr;
}

// Types of the same width, or of a width that divides or is divided.
bool DrawBitcastConvert(Draft& draft) {
  Instr* x = draft.Any();
  ElementType to =
      draft.random().Percent(50)
          ? draft.AnyType()
          : draft.random().Pick({ElementType::kU32, ElementType::kF32, ElementType::kU8,
                                 ElementType::kU16, ElementType::kS32, ElementType::kU64});
  Dims dims = x->shape().dims();
  int from_bits = InfoOf(x->shape().type()).bits, to_bits = InfoOf(to).bits;
  if (from_bits > to_bits) dims.push_back(from_bits / to_bits);
  if (from_bits < to_bits) {
    if (dims.empty() || dims.back() != to_bits / from_bits) return false;
    dims.pop_back();
  }
  if (from_bits == 1 || to_bits == 1) return false;  // a pred has no bits to speak of
  return draft.Put(Op::kBitcastConvert, {x}, {}, {.shape = Shape::Array(to, dims)}) != nullptr;
}

bool DrawStochasticConvert(Draft& draft) {
  Instr* x = draft.AnyThat([](const Shape& s) { return s.type() == ElementType::kF32; });
  if (x == nullptr) return false;
  Instr* bits = draft.Like(x->shape().WithType(ElementType::kU32));
  ElementType to = draft.random().Pick({ElementType::kS8, ElementType::kS16, ElementType::kS32});
  return draft.Put(Op::kStochasticConvert, {x, bits}, {}, {.shape = x->shape().WithType(to)}) !=
         nullptr;
}

bool DrawCopy(Draft& draft) {
  Instr* x = draft.Any();
  return draft.Put(Op::kCopy, {x}, {}, {.shape = x->shape()}) != nullptr;
}

bool DrawMap(Draft& draft) {
  Instr* x = draft.Any();
  const Shape shape = x->shape();
  Dims dimensions;
  for (int64_t d = 0; d < shape.rank(); ++d) dimensions.push_back(d);
  Instr* y = draft.random().Percent(50) ? nullptr : draft.Like(shape);
  Instr* captured =
      draft.random().Percent(60) ? nullptr : draft.LikeButDrawn(Shape::Scalar(shape.type()));
  std::vector<Instr*> operands{x};
  for (Instr* other : {y, captured})
    if (other != nullptr) operands.push_back(other);
  Draft body(draft.plot(), "map", Draft::Kind::kBody, draft.depth() + 1);
  for (size_t i = 0; i < operands.size(); ++i) body.Parameter(Shape::Scalar(shape.type()));
  for (int64_t i = draft.random().Between(1, 3); i > 0; --i) DrawPlain(body);
  Instr* root = body.values().back();
  if (!root->shape().IsScalar()) root = body.values()[0];
  if (captured != nullptr) {
    Instr* with = body.Put(Op::kAdd, {body.values()[0], body.computation()->parameters().back()});
    if (with != nullptr) root = with;
  }
  body.computation()->set_root(root);
  return draft.Put(Op::kMap, operands, DimensionsAttrs{dimensions},
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
