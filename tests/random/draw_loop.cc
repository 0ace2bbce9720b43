// while: counted up or down, with constant and with carried bounds, with values that are invariant,
// swapped, or carried but unused. Also JAX's scan, which reads a row of one array and writes a row
// of another in each iteration.
#include <algorithm>

#include "random/program_builder.h"

namespace tokamak::fuzz {
namespace {

// How the loop counts. It ends after at most `trips` iterations.
struct Counting {
  ElementType type = ElementType::kS32;
  int64_t start = 0, step = 1, limit = 0, trips = 0;
  CompareDirection direction = CompareDirection::kLt;
  bool fixed_start = true;  // otherwise any value between start and limit
  enum class Bound : uint8_t { kConstant, kCarried, kCarriedAny } bound = Bound::kConstant;
};

Counting DrawCounting(ProgramBuilder& builder) {
  Random& random = builder.random();
  Counting how;
  how.type = random.Pick({ElementType::kS32, ElementType::kS32, ElementType::kS32,
                          ElementType::kS64, ElementType::kU32, ElementType::kS8});
  how.trips = random.Pick({0, 1, 1, 2, 2, 3, 3, 4, 5});
  how.step = random.Pick({1, 1, 1, 1, 2, 3, -1});
  how.start = random.Pick({0, 0, 0, 0, 1, 5});
  bool is_signed = IsSigned(how.type);
  if (!is_signed && how.step < 0) how.step = 1;
  how.limit = how.start + how.trips * how.step;
  bool up = how.step > 0;
  how.direction = up ? CompareDirection::kLt : CompareDirection::kGt;
  how.fixed_start = random.Percent(85);
  how.bound = random.Percent(60)   ? Counting::Bound::kConstant
              : random.Percent(60) ? Counting::Bound::kCarried
                                   : Counting::Bound::kCarriedAny;
  bool exact = how.fixed_start && how.bound != Counting::Bound::kCarriedAny;
  int64_t dice = random.Below(100);
  if (exact && dice < 20) how.direction = CompareDirection::kNe;
  if (exact && dice >= 20 && dice < 40 && (is_signed || how.limit > how.step)) {
    how.direction = up ? CompareDirection::kLe : CompareDirection::kGe;
    how.limit -= how.step;
  }
  return how;
}

// A number of the program between start and limit.
Instr* AnyBetween(ProgramBuilder& builder, const Counting& how) {
  Instr* x = builder.LikeButDrawn(Shape::Scalar(how.type));
  Instr* low = builder.Integer(how.type, std::min(how.start, how.limit));
  Instr* high = builder.Integer(how.type, std::max(how.start, how.limit));
  return builder.Put(Op::kClamp, {low, x, high});
}

// The state as the condition and the body see it.
std::vector<Instr*> TakeState(ProgramBuilder& body, const std::vector<Instr*>& init,
                              bool as_tuple) {
  std::vector<Instr*> state;
  if (!as_tuple) {
    for (const Instr* value : init) state.push_back(body.Parameter(value->shape()));
    return state;
  }
  std::vector<Shape> shapes;
  for (const Instr* value : init) shapes.push_back(value->shape());
  Instr* tuple = body.Parameter(Shape::Tuple(shapes));
  for (size_t i = 0; i < init.size(); ++i)
    state.push_back(body.Element(tuple, static_cast<int64_t>(i)));
  return state;
}

Computation* DrawCondition(ProgramBuilder& builder, const Counting& how,
                           const std::vector<Instr*>& init, bool as_tuple) {
  ProgramBuilder body(builder.program_state(), "condition", ProgramBuilder::Kind::kBody,
                      builder.depth() + 1);
  std::vector<Instr*> state = TakeState(body, init, as_tuple);
  bool carried = how.bound != Counting::Bound::kConstant;
  Instr* limit = carried ? state[1] : body.Integer(how.type, how.limit);
  Instr* root =
      body.Put(Op::kCompare, {state[0], limit}, CompareAttrs{how.direction, CompareType::kNone});
  if (builder.random().Percent(12)) {  // a data-dependent early exit
    Instr* x = body.AnyThat([](const Shape& s) { return s.IsScalar() && !IsComplex(s.type()); });
    Instr* goes_on = body.Put(Op::kCompare, {x, body.Constant(x->shape())},
                              CompareAttrs{CompareDirection::kNe, CompareType::kNone});
    root = body.Put(Op::kAnd, {root, goes_on});
  }
  if (root == nullptr) return nullptr;
  body.computation()->set_root(root);
  return body.computation();
}

// Reads row i of xs, which is then a value of the body.
void ReadRow(ProgramBuilder& body, Instr* xs, Instr* i) {
  std::vector<Instr*> operands{xs, i};
  Dims sizes = xs->shape().dims(), row(sizes.begin() + 1, sizes.end());
  sizes[0] = 1;
  for (size_t d = 1; d < sizes.size(); ++d) operands.push_back(body.Integer(i->shape().type(), 0));
  Instr* slice = body.Put(Op::kDynamicSlice, operands, DynamicSliceAttrs{sizes});
  body.Reshape(slice, row);
}

// ys with row i written.
Instr* WriteRow(ProgramBuilder& body, Instr* ys, Instr* i) {
  Dims sizes = ys->shape().dims(), row(sizes.begin() + 1, sizes.end());
  sizes[0] = 1;
  Instr* value = body.LikeButDrawn(ys->shape().WithDims(row));
  std::vector<Instr*> operands{ys, body.Reshape(value, sizes), i};
  for (size_t d = 1; d < sizes.size(); ++d) operands.push_back(body.Integer(i->shape().type(), 0));
  return body.Put(Op::kDynamicUpdateSlice, operands);
}

bool HasRows(const Instr* x) {
  return x->shape().rank() > 0 && x->shape().dim(0) > 0;
}

// The next value of a carried value.
Instr* NextOf(ProgramBuilder& body, Instr* value, const std::vector<Instr*>& state) {
  Random& random = body.random();
  int64_t dice = random.Below(100);
  if (dice < 22) return value;
  if (dice < 34) {  // another carried one of its shape
    std::vector<Instr*> alike;
    for (Instr* other : state)
      if (Compatible(other->shape(), value->shape())) alike.push_back(other);
    return random.Pick(alike);
  }
  if (dice < 54 && HasRows(value)) return WriteRow(body, value, state[0]);
  if (dice < 60) return body.Constant(value->shape());
  if (dice < 75) return body.LikeButDrawn(value->shape());
  Op op = random.Pick({Op::kAdd, Op::kMultiply, Op::kMaximum, Op::kSubtract});
  if (!InfoOf(op).Takes(value->shape().type())) op = Op::kAdd;
  Instr* other = body.LikeButDrawn(value->shape());
  return body.Put(op, {value, other});
}

Computation* DrawLoopBody(ProgramBuilder& builder, const Counting& how,
                          const std::vector<Instr*>& init, bool as_tuple, bool fed) {
  ProgramBuilder body(builder.program_state(), "body", ProgramBuilder::Kind::kBody,
                      builder.depth() + 1);
  std::vector<Instr*> state = TakeState(body, init, as_tuple);
  size_t first = how.bound == Counting::Bound::kConstant ? 1 : 2;
  std::vector<Instr*> next{nullptr};
  if (first == 2) next.push_back(state[1]);
  for (size_t i = first; i < state.size(); ++i)
    if (HasRows(state[i]) && builder.random().Percent(35)) ReadRow(body, state[i], state[0]);
  if (fed) Infeed(body);
  int instrs = static_cast<int>(builder.random().Between(0, 4));
  if (instrs > 0) DrawOn(body, instrs);
  for (size_t i = first; i < state.size(); ++i) {
    Instr* value = NextOf(body, state[i], state);
    next.push_back(value != nullptr ? value : state[i]);
  }
  next[0] = body.Put(Op::kAdd, {state[0], body.Integer(how.type, how.step)});
  Instr* root = body.Put(Op::kTuple, next);
  if (root == nullptr) return nullptr;
  body.computation()->set_root(root);
  return body.computation();
}

bool DrawLoop(ProgramBuilder& builder) {
  if (builder.depth() >= 2) return false;
  bool fed = builder.random().Percent(8);
  Counting how = DrawCounting(builder);
  std::vector<Instr*> init;
  init.push_back(how.fixed_start ? builder.Integer(how.type, how.start) : AnyBetween(builder, how));
  if (how.bound == Counting::Bound::kCarried) init.push_back(builder.Integer(how.type, how.limit));
  if (how.bound == Counting::Bound::kCarriedAny) init.push_back(AnyBetween(builder, how));
  for (int64_t i = builder.random().Between(1, 3); i > 0; --i) {
    Instr* x = builder.Any();
    init.push_back(builder.random().Percent(25) ? builder.Like(x->shape()) : x);
  }
  for (const Instr* value : init)
    if (value == nullptr) return false;
  bool as_tuple = builder.random().Percent(40);
  for (const Instr* value : init)  // no tuple element would be
    if (as_tuple && value->shape().ElementCount() > builder.program_state().size.max_elements)
      return false;
  Computation* condition = DrawCondition(builder, how, init, as_tuple);
  Computation* body = DrawLoopBody(builder, how, init, as_tuple, fed);
  if (condition == nullptr || body == nullptr) return false;
  std::vector<Instr*> operands = init;
  if (as_tuple) operands = {builder.Put(Op::kTuple, init)};
  Instr* loop = builder.Put(Op::kWhile, operands, {}, {.called = {condition, body}});
  if (loop == nullptr) return false;
  bool any = false;
  for (size_t i = 0; i < init.size(); ++i) {
    int wanted = i == 0 ? 20 : 65;
    if (!builder.random().Percent(wanted) && !(i + 1 == init.size() && !any)) continue;
    builder.Element(loop, static_cast<int64_t>(i));
    any = true;
  }
  if (fed) Infeed(builder);  // receives what the loop left
  return true;
}

constexpr Drawer kLoopDrawers[] = {
    {"while", 40, 20, DrawLoop},
};

}  // namespace

std::span<const Drawer> LoopDrawers() {
  return kLoopDrawers;
}

}  // namespace tokamak::fuzz
