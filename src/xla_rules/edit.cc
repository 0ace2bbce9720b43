// Builds and merges fusions in the form of XLA's HLO: a fusion instruction calls a
// fused_computation whose parameters are its operands. Inputs keeps the two in step while a body
// grows:
//
//   Fuse(p, u)                                     Join(a, b)
//   u = fusion(p, y), body f(p, y)                 a = fusion(x), b = fusion(a, y)
//   u = fusion(x, y), body f(g(x), y)              ab = fusion(x, y), body (f(x), g(f(x), y))
//
// Fuse recomputes the producer inside one user, and the producer stays for others. Join makes one
// kernel with the results of both; uses become get-tuple-elements. Bodies shared by several fusions
// are copied before they are edited (Own), and bodies without callers are removed in Finish.
// Editing is linear in the edited bodies.

#include "xla_rules/edit.h"

#include <algorithm>

#include "rewrite/editor.h"
#include "rewrite/replace.h"
#include "xla_rules/facts.h"

namespace tokamak::fuse {
namespace {

std::string Numbered(std::string name, int64_t number) {
  return number == 0 ? name : name + "." + std::to_string(number);
}

// The operands of a fusion under construction, and a parameter of its body for each.
struct Inputs {
  Computation* body;
  std::vector<Instr*> operands, parameters;

  explicit Inputs(const Instr& fusion)
      : body(fusion.called(0)),
        operands(fusion.operands().begin(), fusion.operands().end()),
        parameters(body->parameters()) {}

  Instr* ParameterOf(Instr* operand) {
    for (size_t i = 0; i < operands.size(); ++i)
      if (operands[i] == operand) return parameters[i];
    auto number = static_cast<int64_t>(body->id_limit());
    Instr* made = body->AppendParameter(static_cast<int64_t>(parameters.size()), operand->shape(),
                                        "param_" + std::to_string(number));
    made->set_origins(operand->origins());
    operands.push_back(operand);
    parameters.push_back(made);
    return made;
  }

  // From here on `value` of the body represents an operand.
  void Bind(Instr* operand, Instr* value) {
    for (size_t i = operands.size(); i-- > 0;) {
      if (operands[i] != operand) continue;
      Instr* parameter = parameters[i];
      body->ReplaceUses(parameter, value);
      operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(i));
      parameters.erase(parameters.begin() + static_cast<std::ptrdiff_t>(i));
      body->Remove(parameter);
    }
    body->SetParameters(parameters);
  }
};

// Sharding and frontend attributes move to the fusion.
Instr* CopyInto(const Instr& instr, std::vector<Instr*> operands, Computation& to) {
  Instr* copy = Editor(instr, to).Copy(instr, std::move(operands));
  copy->set_name(instr.name());
  if (!instr.extras().backend_config.empty())
    copy->mutable_extras().backend_config = instr.extras().backend_config;
  return copy;
}

// The value of an instruction or a fusion, recomputed in a body.
Instr* ComputeIn(const Instr& producer, Inputs& inputs) {
  std::vector<Instr*> arguments;
  for (Instr* operand : producer.operands()) arguments.push_back(inputs.ParameterOf(operand));
  if (producer.op() != Op::kFusion) return CopyInto(producer, std::move(arguments), *inputs.body);
  std::vector<Instr*> made;
  return PasteBody(*producer.called(0), arguments, *inputs.body, made);
}

std::vector<Instr*> ResultsIn(Instr* root) {
  if (root->op() != Op::kTuple) return {root};
  return {root->operands().begin(), root->operands().end()};
}

}  // namespace

FusionEditor::FusionEditor(Module& module) : module_(module), calls_(module) {
  for (const auto& computation : module.computations()) {
    bodies_ += computation->name().starts_with("fused_computation") ? 1 : 0;
    fusions_ += static_cast<int64_t>(computation->CountOf(Op::kFusion));
    for (const Instr* caller : computation->Callers())
      if (caller->op() == Op::kFusion) made_.insert(caller->called(0));
  }
}

void FusionEditor::Finish() {
  std::unordered_set<const Computation*> called;
  for (const auto& computation : module_.computations())
    for (const Instr* caller : computation->Callers())
      called.insert(caller->called().begin(), caller->called().end());
  std::vector<bool> keep;
  for (const auto& computation : module_.computations())
    keep.push_back(!made_.contains(computation.get()) || called.contains(computation.get()));
  module_.KeepComputations(keep);
}

FusionKind FusionEditor::KindOf(const Computation& body) const {
  for (const Instr* instr : body.Instrs())
    if (ReducedElements(*instr) >= large_reduction || instr->op() == Op::kScatter)
      return FusionKind::kInput;
  return FusionKind::kLoop;
}

Instr* FusionEditor::Wrap(Instr* instr) {
  Computation* body = module_.AddComputation(Numbered("fused_computation", bodies_++));
  made_.insert(body);
  body->is_public = false;
  body->origins = instr->origins();
  Computation* parent = instr->parent();
  std::vector<Instr*> operands = DistinctOperands(*instr);
  std::vector<Instr*> inside;
  for (size_t i = 0; i < operands.size(); ++i) {
    Instr* parameter = body->AppendParameter(static_cast<int64_t>(i), operands[i]->shape(),
                                             "param_" + std::to_string(i));
    parameter->set_origins(operands[i]->origins());
  }
  for (Instr* operand : instr->operands()) {
    auto position = std::find(operands.begin(), operands.end(), operand) - operands.begin();
    inside.push_back(body->parameter(static_cast<size_t>(position)));
  }
  body->set_root(CopyInto(*instr, std::move(inside), *body));
  Instr* fusion = parent->Append(Op::kFusion, instr->shape(), std::move(operands),
                                 FusionAttrs{.kind = KindOf(*body), .output_aliases = {}},
                                 Numbered("fusion", fusions_++));
  fusion->set_called({body});
  calls_.Add(*fusion);
  fusion->set_origins(instr->origins());
  fusion->set_pos(instr->pos());
  parent->ReplaceUses(instr, fusion);
  parent->Remove(instr);
  return fusion;
}

Instr* FusionEditor::Remake(Instr* fusion, const std::vector<Instr*>& operands, Shape shape) {
  Instr* made = fusion->parent()->Append(
      Op::kFusion, std::move(shape), operands,
      FusionAttrs{.kind = KindOf(*fusion->called(0)), .output_aliases = {}}, fusion->name());
  made->set_called({fusion->called(0)});
  calls_.Add(*made);
  calls_.Remove(*fusion);
  made->set_origins(fusion->origins());
  made->set_pos(fusion->pos());
  return made;
}

Instr* FusionEditor::Own(Instr* instr) {
  if (instr->op() != Op::kFusion) return Wrap(instr);
  made_.insert(calls_.Own(instr, 0));
  return instr;
}

Instr* FusionEditor::Fuse(Instr* producer, Instr* user) {
  Computation* parent = user->parent();
  user = Own(user);
  Inputs inputs(*user);
  inputs.Bind(producer, ComputeIn(*producer, inputs));
  Instr* made = Remake(user, inputs.operands, user->shape());
  MergeOrigins(made, *producer);
  parent->ReplaceUses(user, made);
  parent->Remove(user);
  return made;
}

// Replaces uses of result i of `from` by result first + i of `to`.
void FusionEditor::ShareResults(Instr* from, Instr* to, size_t first) {
  Computation* parent = from->parent();
  auto take = [&](size_t i, const Instr& like) {
    Instr* part = Editor::Beside(like).Make(Op::kGetTupleElement, to->shape().elements()[i], {to},
                                            TupleIndexAttrs{static_cast<int64_t>(i)});
    part->set_name("get-tuple-element");
    return part;
  };
  if (!from->shape().IsTuple()) {
    parent->ReplaceUses(from, take(first, *from));
    return;
  }
  for (Instr* part : DistinctUsers(*from)) {
    auto i = static_cast<size_t>(part->attrs<TupleIndexAttrs>().index);
    parent->ReplaceUses(part, take(first + i, *part));
    parent->Remove(part);
  }
}

// Results of a precede those of b. Operands of b that are results of a are bound to the values in
// the body.
Instr* FusionEditor::Join(Instr* a, Instr* b, bool horizontal) {
  Computation* parent = a->parent();
  a = Own(a);
  Inputs inputs(*a);
  Computation* body = inputs.body;
  Instr* root_a = body->root();
  std::vector<Instr*> results = ResultsIn(root_a);
  size_t first_of_b = results.size();
  Instr* root_b = ComputeIn(*b, inputs);
  // The values that b uses from a are already in the body.
  for (Instr* operand : std::vector<Instr*>(inputs.operands)) {
    if (operand == a) inputs.Bind(operand, results[0]);
    if (operand->op() == Op::kGetTupleElement && operand->operand(0) == a)
      inputs.Bind(operand, results[static_cast<size_t>(operand->attrs<TupleIndexAttrs>().index)]);
  }
  for (Instr* result : ResultsIn(root_b)) results.push_back(result);
  std::vector<Shape> shapes;
  for (const Instr* result : results) shapes.push_back(result->shape());
  Shape shape = Shape::Tuple(std::move(shapes));
  Instr* root = body->Append(Op::kTuple, shape, std::move(results), {}, "tuple");
  root->set_origins(a->origins());
  body->set_root(root);
  for (Instr* old : {root_a, root_b})
    if (old->op() == Op::kTuple && old->users().empty()) body->Remove(old);
  Instr* made = Remake(a, inputs.operands, shape);
  MergeOrigins(made, *b);
  MergeOrigins(root, *b);
  if (horizontal)
    Set(made->mutable_extras().frontend_attributes, kHorizontalMark,
        AttrValue(std::string("horizontal")));
  ShareResults(b, made, first_of_b);
  parent->Remove(b);
  ShareResults(a, made, 0);
  parent->Remove(a);
  return made;
}

}  // namespace tokamak::fuse
