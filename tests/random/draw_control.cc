// Calls, conditionals and repeated code.
#include <algorithm>

#include "ir/clone.h"
#include "random/program_builder.h"

namespace tokamak::fuzz {
namespace {

// A function of the given parameters with a few instructions; null root: incomplete.
void DrawBody(ProgramBuilder& body, int least, int most) {
  int instrs = static_cast<int>(body.random().Between(least, most));
  DrawOn(body, instrs);
}

// A function of arrays like `arguments`; its result is an array, or a tuple.
Computation* DrawFunction(ProgramBuilder& builder, const std::vector<Instr*>& arguments) {
  ProgramBuilder body(builder.program_state(), "f", ProgramBuilder::Kind::kBody,
                      builder.depth() + 1);
  for (const Instr* argument : arguments) body.Parameter(argument->shape());
  if (builder.random().Percent(6)) Infeed(body);
  DrawBody(body, 1, 5);
  Instr* root = Loose(body);
  if (builder.random().Percent(30)) root = body.Put(Op::kTuple, {root, body.Any()});
  if (root == nullptr) return nullptr;
  body.computation()->set_root(root);
  builder.program_state().functions.push_back(body.computation());
  return body.computation();
}

void SplitUp(ProgramBuilder& builder, Instr* result) {
  if (result == nullptr || !result->shape().IsTuple()) return;
  for (size_t i = 0; i < result->shape().elements().size(); ++i)
    if (builder.random().Percent(70)) builder.Element(result, static_cast<int64_t>(i));
}

std::vector<Instr*> Arguments(ProgramBuilder& builder, const Computation& callee) {
  std::vector<Instr*> arguments;
  for (const Instr* parameter : callee.parameters()) {
    if (!parameter->shape().IsArray()) return {};
    arguments.push_back(builder.Like(parameter->shape()));
  }
  return arguments;
}

Instr* PutCall(ProgramBuilder& builder, Computation* callee, const std::vector<Instr*>& arguments) {
  Op op = builder.random().Percent(80)   ? Op::kCall
          : builder.random().Percent(50) ? Op::kFusion
                                         : Op::kComposite;
  Attrs attrs;
  if (op == Op::kFusion) attrs = FusionAttrs{};
  if (op == Op::kComposite) attrs = CompositeAttrs{"random.f", {}, 1};
  return builder.Put(op, arguments, attrs, {.shape = callee->root()->shape(), .called = {callee}});
}

bool DrawCall(ProgramBuilder& builder) {
  if (builder.depth() >= 2) return false;
  std::vector<Instr*> arguments;
  for (int64_t i = builder.random().Between(0, 3); i > 0; --i) arguments.push_back(builder.Any());
  Computation* callee = DrawFunction(builder, arguments);
  if (callee == nullptr) return false;
  Instr* result = PutCall(builder, callee, arguments);
  SplitUp(builder, result);
  if (builder.random().Percent(40)) {  // with the same arguments, or others
    if (builder.random().Percent(60)) arguments = Arguments(builder, *callee);
    SplitUp(builder, PutCall(builder, callee, arguments));
  }
  return result != nullptr;
}

// Calls an earlier function. Functions call only older ones.
bool DrawRepeatedCall(ProgramBuilder& builder) {
  if (builder.program_state().functions.empty() || builder.depth() > 0) return false;
  Computation* callee = builder.random().Pick(builder.program_state().functions);
  std::vector<Instr*> arguments = Arguments(builder, *callee);
  Instr* result = PutCall(builder, callee, arguments);
  SplitUp(builder, result);
  return result != nullptr;
}

// The same few instructions several times, each applied to the last result, like an unrolled Python
// loop.
bool DrawUnrolled(ProgramBuilder& builder) {
  if (builder.depth() > 0) return false;
  Instr* x = builder.Any();
  Instr* shared =
      builder.Like(builder.random().Percent(60) ? x->shape() : builder.AnyShape(builder.AnyType()));
  if (shared == nullptr) return false;
  ProgramBuilder body(builder.program_state(), "step", ProgramBuilder::Kind::kBody, 2);
  int before = builder.program_state().instrs;
  Instr* carried = body.Parameter(x->shape());
  body.Parameter(shared->shape());
  DrawBody(body, 1, 3);
  Op op = builder.random().Pick({Op::kAdd, Op::kMultiply, Op::kSubtract, Op::kMaximum});
  Instr* root = body.Put(op, {carried, body.LikeButDrawn(x->shape())});
  builder.program_state().instrs = before;  // the template itself is not part of the program
  if (root == nullptr) return false;
  body.computation()->set_root(root);
  int cost = static_cast<int>(body.computation()->size()) - 2;
  bool any = false;
  for (int64_t i = builder.random().Between(3, 6); i > 0 && builder.HasRoom(cost + 2); --i) {
    Instr* next = Paste(builder, *body.computation(), {x, shared});
    if (next == nullptr) return any;
    any = true;
    x = next;
    // Occasionally one of them differs.
    if (builder.random().Percent(8)) shared = builder.LikeButDrawn(shared->shape());
  }
  return any;
}

// ---- conditional

Instr* BranchIndex(ProgramBuilder& builder, size_t branches) {
  bool pred = branches == 2 && builder.random().Percent(60);
  Shape shape = Shape::Scalar(pred ? ElementType::kPred : ElementType::kS32);
  if (builder.random().Percent(20)) return builder.Constant(shape, Mood::kSmall);
  if (!pred) return builder.LikeButDrawn(shape);
  Instr* x = builder.AnyThat([](const Shape& s) { return s.IsScalar(); });
  if (x == nullptr || builder.random().Percent(40)) return builder.LikeButDrawn(shape);
  CompareAttrs attrs{builder.random().Pick({CompareDirection::kEq, CompareDirection::kNe}),
                     CompareType::kNone};
  return builder.Put(Op::kCompare, {x, builder.Like(x->shape())}, attrs);
}

bool DrawConditional(ProgramBuilder& builder) {
  if (builder.depth() >= 2) return false;
  size_t branches = static_cast<size_t>(builder.random().Pick({1, 2, 2, 2, 3}));
  Instr* index = BranchIndex(builder, branches);
  std::vector<Instr*> operands{index};
  std::vector<Computation*> called;
  std::optional<Shape> result;
  for (size_t i = 0; i < branches; ++i) {
    std::vector<Instr*> arguments;
    bool again = i > 0 && builder.random().Percent(12);
    if (again) {  // two equal branches
      size_t count = called.back()->parameters().size();
      arguments.assign(operands.end() - static_cast<ptrdiff_t>(count), operands.end());
      called.push_back(called.back());
    } else {
      for (int64_t n = builder.random().Between(0, 2); n > 0; --n)
        arguments.push_back(builder.Any());
      ProgramBuilder body(builder.program_state(), "branch", ProgramBuilder::Kind::kBody,
                          builder.depth() + 1);
      for (const Instr* argument : arguments) body.Parameter(argument->shape());
      if (builder.random().Percent(5)) Infeed(body);
      DrawBody(body, 1, 3);
      Instr* root = result ? body.LikeButDrawn(*result) : Loose(body);
      if (root == nullptr) return false;
      result = root->shape();
      body.computation()->set_root(root);
      called.push_back(body.computation());
    }
    operands.insert(operands.end(), arguments.begin(), arguments.end());
  }
  return builder.Put(Op::kConditional, operands, {}, {.shape = result, .called = called}) !=
         nullptr;
}

constexpr Drawer kControlDrawers[] = {
    {"call", 20, 10, DrawCall},
    {"repeated-call", 20, 3, DrawRepeatedCall},
    {"unrolled", 12, 14, DrawUnrolled},
    {"conditional", 18, 12, DrawConditional},
};

}  // namespace

Instr* Paste(ProgramBuilder& builder, const Computation& callee,
             const std::vector<Instr*>& arguments) {
  InstrMapping copies;
  for (const Instr* instr : callee.Instrs()) {
    if (instr->op() == Op::kParameter) {
      copies[instr] = arguments[static_cast<size_t>(instr->attrs<ParameterAttrs>().number)];
      continue;
    }
    std::vector<Instr*> operands;
    for (const Instr* operand : instr->operands()) operands.push_back(copies[operand]);
    Instr* copy = builder.Put(
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
