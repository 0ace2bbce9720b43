#include <utility>

#include "rewrite/normal/normal_form_builder.h"
#include "support/limits.h"

namespace tokamak {
namespace {

Tree Parameters(NormalGraph& graph, const Shape& shape, int64_t& number) {
  std::vector<Shape> shapes;
  Flatten(shape, shapes);
  std::vector<Instr*> leaves;
  for (const Shape& leaf : shapes) {
    leaves.push_back(graph.Parameter(number, leaf, static_cast<uint64_t>(number)));
    ++number;
  }
  size_t next = 0;
  return Unflatten(shape, leaves, next);
}

std::vector<Tree> ParametersOf(const Computation& source, NormalGraph& graph) {
  std::vector<Tree> arguments;
  int64_t number = 0;
  for (const Instr* parameter : source.parameters())
    arguments.push_back(Parameters(graph, parameter->shape(), number));
  return arguments;
}

}  // namespace

void SetRoot(NormalGraph& graph, const Tree& root) {
  std::vector<Instr*> leaves;
  Flatten(root, leaves);
  bool one = root.leaf != nullptr || leaves.size() == 1;
  graph.target()->set_root(one ? leaves[0] : TupleOf(graph, leaves));
}

Instr* TupleOf(NormalGraph& graph, const std::vector<Instr*>& leaves) {
  std::vector<Shape> shapes;
  for (const Instr* leaf : leaves) shapes.push_back(leaf->shape());
  return graph.Intern(Op::kTuple, Shape::Tuple(shapes), leaves);
}

std::vector<Instr*> Leaves(const std::vector<const Tree*>& operands) {
  std::vector<Instr*> leaves;
  for (const Tree* operand : operands) Flatten(*operand, leaves);
  return leaves;
}

Shape FlatShape(const Shape& shape) {
  if (!shape.IsTuple()) return shape.WithoutLayout();
  std::vector<Shape> leaves;
  Flatten(shape, leaves);
  return Shape::Tuple(leaves);
}

Tree Results(Instr* instr, const Shape& shape, NormalGraph& graph) {
  if (!shape.IsTuple()) return {instr, {}};
  std::vector<Instr*> leaves;
  for (size_t i = 0; i < instr->shape().elements().size(); ++i)
    leaves.push_back(graph.Intern(Op::kGetTupleElement, instr->shape().elements()[i], {instr},
                                  TupleIndexAttrs{static_cast<int64_t>(i)}));
  size_t next = 0;
  return Unflatten(shape, leaves, next);
}

bool IsSmallConstant(const Instr* instr) {
  if (instr->op() == Op::kBroadcast) instr = instr->operand(0);
  return instr->op() == Op::kConstant && instr->shape().IsArray() &&
         instr->shape().ElementCount() <= 1 << 12;
}

Instr* CloneConstant(const Instr* instr, NormalGraph& graph) {
  if (instr->op() == Op::kConstant)
    return graph.Intern(Op::kConstant, instr->shape(), {}, instr->attrs());
  return graph.Intern(instr->op(), instr->shape(), {CloneConstant(instr->operand(0), graph)},
                      instr->attrs());
}

Status NormalFormBuilder::RunEntry(const Computation& source) {
  Computation* target = out_.AddComputation("main");
  NormalGraph graph(target, &hashes_);
  std::vector<Tree> arguments = ParametersOf(source, graph);
  TOK_TRY(Tree root, Run(source, arguments, graph));
  SetRoot(graph, root);
  out_.set_entry(target);
  return Ok();
}

Result<Tree> NormalFormBuilder::Run(const Computation& source, const std::vector<Tree>& arguments,
                                    NormalGraph& graph) {
  if (++depth_ > kMaxCallDepth)
    return MakeError(ErrorCode::kTooDeep, "call: calls are nested too deeply");
  std::unordered_map<const Instr*, Tree> values;
  for (const Instr* instr : source.PostOrder()) {
    if (++steps_ > max_steps_)
      return MakeError(ErrorCode::kTooLarge, "normal form: calls and loops expand to more than " +
                                                 std::to_string(max_steps_) + " instructions");
    Operands operands;
    for (const Instr* operand : instr->operands()) operands.push_back(&values[operand]);
    TOK_TRY(Tree value, Evaluate(*instr, operands, arguments, graph));
    values[instr] = std::move(value);
  }
  --depth_;
  return values[source.root()];
}

Result<Tree> NormalFormBuilder::Evaluate(const Instr& instr, const Operands& operands,
                                         const std::vector<Tree>& arguments, NormalGraph& graph) {
  switch (instr.op()) {
    case Op::kParameter:
      return arguments[static_cast<size_t>(instr.attrs<ParameterAttrs>().number)];
    case Op::kTuple:
    case Op::kOptimizationBarrier: {
      if (instr.op() == Op::kOptimizationBarrier && operands.size() == 1) return *operands[0];
      Tree tuple;
      for (const Tree* operand : operands) tuple.elements.push_back(*operand);
      return tuple;
    }
    case Op::kGetTupleElement: {
      size_t index = static_cast<size_t>(instr.attrs<TupleIndexAttrs>().index);
      return index < operands[0]->elements.size() ? operands[0]->elements[index] : Tree{};
    }
    case Op::kAddDependency:
    case Op::kAsyncUpdate:
    case Op::kAsyncDone:
      return *operands[0];
    case Op::kCall:
    case Op::kFusion:
    case Op::kAsyncStart:
      return Inline(*instr.called(0), operands, graph);
    case Op::kComposite:
      return EvaluateComposite(instr, operands, graph);
    case Op::kManualComputation:
      return EvaluateManual(instr, operands, graph);
    case Op::kCustomCall:
      return EvaluateCustomCall(instr, operands, graph);
    case Op::kWhile:
      return EvaluateWhile(instr, operands, graph);
    case Op::kConditional:
      return EvaluateConditional(instr, operands, graph);
    default:
      return EvaluatePlain(instr, operands, graph);
  }
}

Result<Tree> NormalFormBuilder::EvaluatePlain(const Instr& instr, const Operands& operands,
                                              NormalGraph& graph) {
  std::vector<Instr*> leaves = Leaves(operands);
  if (leaves.size() < operands.size()) return Tree{};  // an operand is dead, so this value is dead
  std::vector<Computation*> called;
  for (const Computation* callee : instr.called()) {
    TOK_TRY(Computation * normal, NormalCallee(*callee));
    called.push_back(normal);
  }
  Shape shape = FlatShape(instr.shape());
  bool pinned = instr.info().Is(kSideEffect) || instr.info().Is(kRandom);
  if (instr.op() == Op::kCustomCall) pinned = instr.attrs<CustomCallAttrs>().has_side_effect;
  Instr* made =
      pinned ? graph.Append(instr.op(), shape, leaves, instr.attrs(), called, instr.captures())
             : graph.Make(instr.op(), shape, leaves, instr.attrs(), called, instr.captures());
  return Results(made, instr.shape(), graph);
}

Result<Computation*> NormalFormBuilder::NormalCallee(const Computation& source) {
  auto it = callees_.find(&source);
  if (it != callees_.end()) return it->second;
  Computation* target = out_.AddComputation(source.name());
  NormalGraph graph(target, &hashes_);
  std::vector<Tree> arguments = ParametersOf(source, graph);
  TOK_TRY(Tree root, Run(source, arguments, graph));
  SetRoot(graph, root);
  callees_[&source] = target;
  return target;
}

}  // namespace tokamak
