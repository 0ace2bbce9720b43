// Calls, conditionals and code that repeats.
#include <algorithm>

#include "ir/clone.h"
#include "random/draft.h"

namespace tokamak::fuzz {
namespace {

// A function of the given parameters with a few instructions; null root: not finished.
void DrawBody(Draft& body, int least, int most) {
  int instrs = static_cast<int>(body.random().Between(least, most));
  DrawOn(body, instrs);
}

// A function of arrays like `arguments`; its result is an array, or a tuple.
Computation* DrawFunction(Draft& draft, const std::vector<Instr*>& arguments) {
  Draft body(draft.plot(), "f", Draft::Kind::kBody, draft.depth() + 1);
  for (const Instr* argument : arguments) body.Parameter(argument->shape());
  if (draft.random().Percent(6)) Infeed(body);
  DrawBody(body, 1, 5);
  Instr* root = Loose(body);
  if (draft.random().Percent(30)) root = body.Put(Op::kTuple, {root, body.Any()});
  if (root == nullptr) return nullptr;
  body.computation()->set_root(root);
  draft.plot().functions.push_back(body.computation());
  return body.computation();
}

void TakeApart(Draft& draft, Instr* result) {
  if (result == nullptr || !result->shape().IsTuple()) return;
  for (size_t i = 0; i < result->shape().elements().size(); ++i)
    if (draft.random().Percent(70)) draft.Element(result, static_cast<int64_t>(i));
}

std::vector<Instr*> Arguments(Draft& draft, const Computation& callee) {
  std::vector<Instr*> arguments;
  for (const Instr* parameter : callee.parameters()) {
    if (!parameter->shape().IsArray()) return {};
    arguments.push_back(draft.Like(parameter->shape()));
  }
  return arguments;
}

Instr* PutCall(Draft& draft, Computation* callee, const std::vector<Instr*>& arguments) {
  Op op = draft.random().Percent(80)   ? Op::kCall
          : draft.random().Percent(50) ? Op::kFusion
                                       : Op::kComposite;
  Attrs attrs;
  if (op == Op::kFusion) attrs = FusionAttrs{};
  if (op == Op::kComposite) attrs = CompositeAttrs{"random.f", {}, 1};
  return draft.Put(op, arguments, attrs, {.shape = callee->root()->shape(), .called = {callee}});
}

bool DrawCall(Draft& draft) {
  if (draft.depth() >= 2) return false;
  std::vector<Instr*> arguments;
  for (int64_t i = draft.random().Between(0, 3); i > 0; --i) arguments.push_back(draft.Any());
  Computation* callee = DrawFunction(draft, arguments);
  if (callee == nullptr) return false;
  Instr* result = PutCall(draft, callee, arguments);
  TakeApart(draft, result);
  if (draft.random().Percent(40)) {  // with the same arguments, or others
    if (draft.random().Percent(60)) arguments = Arguments(draft, *callee);
    TakeApart(draft, PutCall(draft, callee, arguments));
  }
  return result != nullptr;
}

// A function that was drawn before, from here. Functions call only older ones.
bool DrawCallAgain(Draft& draft) {
  if (draft.plot().functions.empty() || draft.depth() > 0) return false;
  Computation* callee = draft.random().Pick(draft.plot().functions);
  std::vector<Instr*> arguments = Arguments(draft, *callee);
  Instr* result = PutCall(draft, callee, arguments);
  TakeApart(draft, result);
  return result != nullptr;
}

// The same few instructions several times, each on the result of the last, as a
// loop in Python leaves them.
bool DrawUnrolled(Draft& draft) {
  if (draft.depth() > 0) return false;
  Instr* x = draft.Any();
  Instr* shared =
      draft.Like(draft.random().Percent(60) ? x->shape() : draft.AnyShape(draft.AnyType()));
  if (shared == nullptr) return false;
  Draft body(draft.plot(), "step", Draft::Kind::kBody, 2);
  int before = draft.plot().instrs;
  Instr* carried = body.Parameter(x->shape());
  body.Parameter(shared->shape());
  DrawBody(body, 1, 3);
  Op op = draft.random().Pick({Op::kAdd, Op::kMultiply, Op::kSubtract, Op::kMaximum});
  Instr* root = body.Put(op, {carried, body.LikeButDrawn(x->shape())});
  draft.plot().instrs = before;  // the step itself is not part of the program
  if (root == nullptr) return false;
  body.computation()->set_root(root);
  int cost = static_cast<int>(body.computation()->size()) - 2;
  bool any = false;
  for (int64_t i = draft.random().Between(3, 6); i > 0 && draft.HasRoom(cost + 2); --i) {
    Instr* next = Paste(draft, *body.computation(), {x, shared});
    if (next == nullptr) return any;
    any = true;
    x = next;
    // Once in a while one of them is not like the others.
    if (draft.random().Percent(8)) shared = draft.LikeButDrawn(shared->shape());
  }
  return any;
}

// ---- conditional

Instr* BranchIndex(Draft& draft, size_t branches) {
  bool pred = branches == 2 && draft.random().Percent(60);
  Shape shape = Shape::Scalar(pred ? ElementType::kPred : ElementType::kS32);
  if (draft.random().Percent(20)) return draft.Constant(shape, Mood::kSmall);
  if (!pred) return draft.LikeButDrawn(shape);
  Instr* x = draft.AnyThat([](const Shape& s) { return s.IsScalar(); });
  if (x == nullptr || draft.random().Percent(40)) return draft.LikeButDrawn(shape);
  CompareAttrs attrs{draft.random().Pick({CompareDirection::kEq, CompareDirection::kNe}),
                     CompareType::kNone};
  return draft.Put(Op::kCompare, {x, draft.Like(x->shape())}, attrs);
}

bool DrawConditional(Draft& draft) {
  if (draft.depth() >= 2) return false;
  size_t branches = static_cast<size_t>(draft.random().Pick({1, 2, 2, 2, 3}));
  Instr* index = BranchIndex(draft, branches);
  std::vector<Instr*> operands{index};
  std::vector<Computation*> called;
  std::optional<Shape> result;
  for (size_t i = 0; i < branches; ++i) {
    std::vector<Instr*> arguments;
    bool again = i > 0 && draft.random().Percent(12);
    if (again) {  // two branches that are one
      size_t count = called.back()->parameters().size();
      arguments.assign(operands.end() - static_cast<ptrdiff_t>(count), operands.end());
      called.push_back(called.back());
    } else {
      for (int64_t n = draft.random().Between(0, 2); n > 0; --n) arguments.push_back(draft.Any());
      Draft body(draft.plot(), "branch", Draft::Kind::kBody, draft.depth() + 1);
      for (const Instr* argument : arguments) body.Parameter(argument->shape());
      if (draft.random().Percent(5)) Infeed(body);
      DrawBody(body, 1, 3);
      Instr* root = result ? body.LikeButDrawn(*result) : Loose(body);
      if (root == nullptr) return false;
      result = root->shape();
      body.computation()->set_root(root);
      called.push_back(body.computation());
    }
    operands.insert(operands.end(), arguments.begin(), arguments.end());
  }
  return draft.Put(Op::kConditional, operands, {}, {.shape = result, .called = called}) != nullptr;
}

constexpr Drawer kControlDrawers[] = {
    {"call", 20, 10, DrawCall},
    {"call-again", 20, 3, DrawCallAgain},
    {"unrolled", 12, 14, DrawUnrolled},
    {"conditional", 18, 12, DrawConditional},
};

}  // namespace

Instr* Paste(Draft& draft, const Computation& callee, const std::vector<Instr*>& arguments) {
  InstrMapping copies;
  for (const Instr* instr : callee.Instrs()) {
    if (instr->op() == Op::kParameter) {
      copies[instr] = arguments[static_cast<size_t>(instr->attrs<ParameterAttrs>().number)];
      continue;
    }
    std::vector<Instr*> operands;
    for (const Instr* operand : instr->operands()) operands.push_back(copies[operand]);
    Instr* copy = draft.Put(
        instr->op(), operands, instr->attrs(),
        {.shape = instr->shape(), .called = {instr->called().begin(), instr->called().end()}});
    if (copy == nullptr) return nullptr;
    copies[instr] = copy;
  }
  return copies[callee.root()];
}

std::span<const Drawer> ControlDrawers() {
  return kControlDrawers;
}

}  // namespace tokamak::fuzz
