// while: counted up or down, with constant and with carried bounds, with values
// that stay, change places, or are carried for nothing; and the scan of JAX, which
// reads a row of one array and writes a row of another each time round.
#include <algorithm>

#include "random/draft.h"

namespace tokamak::fuzz {
namespace {

// How the loop counts. It ends after `trips` rounds, or earlier.
struct Counting {
  ElementType type = ElementType::kS32;
  int64_t start = 0, step = 1, limit = 0, trips = 0;
  CompareDirection direction = CompareDirection::kLt;
  bool fixed_start = true;  // else anything between start and limit
  enum class Bound : uint8_t { kConstant, kCarried, kCarriedAny } bound = Bound::kConstant;
};

Counting DrawCounting(Draft& draft) {
  Random& random = draft.random();
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
Instr* AnyBetween(Draft& draft, const Counting& how) {
  Instr* x = draft.LikeButDrawn(Shape::Scalar(how.type));
  Instr* low = draft.Integer(how.type, std::min(how.start, how.limit));
  Instr* high = draft.Integer(how.type, std::max(how.start, how.limit));
  return draft.Put(Op::kClamp, {low, x, high});
}

// The state as the condition and the body see it.
std::vector<Instr*> TakeState(Draft& body, const std::vector<Instr*>& init, bool as_tuple) {
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

Computation* DrawCondition(Draft& draft, const Counting& how, const std::vector<Instr*>& init,
                           bool as_tuple) {
  Draft body(draft.plot(), "condition", Draft::Kind::kBody, draft.depth() + 1);
  std::vector<Instr*> state = TakeState(body, init, as_tuple);
  bool carried = how.bound != Counting::Bound::kConstant;
  Instr* limit = carried ? state[1] : body.Integer(how.type, how.limit);
  Instr* root =
      body.Put(Op::kCompare, {state[0], limit}, CompareAttrs{how.direction, CompareType::kNone});
  if (draft.random().Percent(12)) {  // data may end it sooner
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
void ReadRow(Draft& body, Instr* xs, Instr* i) {
  std::vector<Instr*> operands{xs, i};
  Dims sizes = xs->shape().dims(), row(sizes.begin() + 1, sizes.end());
  sizes[0] = 1;
  for (size_t d = 1; d < sizes.size(); ++d) operands.push_back(body.Integer(i->shape().type(), 0));
  Instr* slice = body.Put(Op::kDynamicSlice, operands, DynamicSliceAttrs{sizes});
  body.Reshape(slice, row);
}

// ys with row i written.
Instr* WriteRow(Draft& body, Instr* ys, Instr* i) {
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

// What becomes of a carried value in one round.
Instr* NextOf(Draft& body, Instr* value, const std::vector<Instr*>& state) {
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

Computation* DrawLoopBody(Draft& draft, const Counting& how, const std::vector<Instr*>& init,
                          bool as_tuple, bool fed) {
  Draft body(draft.plot(), "body", Draft::Kind::kBody, draft.depth() + 1);
  std::vector<Instr*> state = TakeState(body, init, as_tuple);
  size_t first = how.bound == Counting::Bound::kConstant ? 1 : 2;
  std::vector<Instr*> next{nullptr};
  if (first == 2) next.push_back(state[1]);
  for (size_t i = first; i < state.size(); ++i)
    if (HasRows(state[i]) && draft.random().Percent(35)) ReadRow(body, state[i], state[0]);
  if (fed) Infeed(body);
  int instrs = static_cast<int>(draft.random().Between(0, 4));
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

bool DrawLoop(Draft& draft) {
  if (draft.depth() >= 2) return false;
  bool fed = draft.random().Percent(8);
  Counting how = DrawCounting(draft);
  std::vector<Instr*> init;
  init.push_back(how.fixed_start ? draft.Integer(how.type, how.start) : AnyBetween(draft, how));
  if (how.bound == Counting::Bound::kCarried) init.push_back(draft.Integer(how.type, how.limit));
  if (how.bound == Counting::Bound::kCarriedAny) init.push_back(AnyBetween(draft, how));
  for (int64_t i = draft.random().Between(1, 3); i > 0; --i) {
    Instr* x = draft.Any();
    init.push_back(draft.random().Percent(25) ? draft.Like(x->shape()) : x);
  }
  for (const Instr* value : init)
    if (value == nullptr) return false;
  bool as_tuple = draft.random().Percent(40);
  for (const Instr* value : init)  // no element of a tuple would be
    if (as_tuple && value->shape().ElementCount() > draft.plot().size.max_elements) return false;
  Computation* condition = DrawCondition(draft, how, init, as_tuple);
  Computation* body = DrawLoopBody(draft, how, init, as_tuple, fed);
  if (condition == nullptr || body == nullptr) return false;
  std::vector<Instr*> operands = init;
  if (as_tuple) operands = {draft.Put(Op::kTuple, init)};
  Instr* loop = draft.Put(Op::kWhile, operands, {}, {.called = {condition, body}});
  if (loop == nullptr) return false;
  bool any = false;
  for (size_t i = 0; i < init.size(); ++i) {
    int wanted = i == 0 ? 20 : 65;
    if (!draft.random().Percent(wanted) && !(i + 1 == init.size() && !any)) continue;
    draft.Element(loop, static_cast<int64_t>(i));
    any = true;
  }
  if (fed) Infeed(draft);  // gets what the loop has left
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
