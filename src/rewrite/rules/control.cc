// Simplification of tuples, conditionals, loops, sorts and maps.

#include <algorithm>
#include <unordered_map>

#include "analysis/effects.h"
#include "rewrite/rules/conditions.h"
#include "rewrite/rules/topics.h"

namespace tokamak {
namespace {

using m::x;

// Maximum instructions of a body inlined by one firing. Chosen: bounds the cost of a firing.
constexpr size_t kMostInstrs = 256;

bool IsPlainBody(const Computation& body) {
  if (body.size() > kMostInstrs) return false;
  for (const Instr* instr : body.Instrs()) {
    if (instr->op() == Op::kParameter) continue;
    if (!IsPlain(*instr) || instr->is_control_predecessor() || instr->has_extras()) return false;
  }
  return true;
}

// Inlines a computation with these arguments and returns the value of its root.
Instr* WrittenOut(Editor& edit, const Computation& body, std::span<Instr* const> arguments) {
  std::unordered_map<const Instr*, Instr*> here;
  for (size_t i = 0; i < body.parameters().size(); ++i) here[body.parameter(i)] = arguments[i];
  for (Instr* instr : body.PostOrder()) {
    if (instr->op() == Op::kParameter) continue;
    std::vector<Instr*> operands;
    for (const Instr* operand : instr->operands()) operands.push_back(here.at(operand));
    here[instr] = edit.Copy(*instr, std::move(operands));
  }
  return here.at(body.root());
}

// The branch taken, if it is known at compile time.
std::optional<size_t> KnownBranchOf(const Instr* conditional) {
  const Literal* which = SplatOf(conditional->operand(0));
  if (which == nullptr) return std::nullopt;
  size_t last = conditional->called().size() - 1;
  int64_t index = which->IntAt(0);
  if (which->type() == ElementType::kPred) return index != 0 ? 0 : 1;
  return index < 0 || index > static_cast<int64_t>(last) ? last : static_cast<size_t>(index);
}
std::span<Instr* const> ArgumentsOf(const Instr* conditional, size_t branch) {
  size_t first = 1;
  for (size_t i = 0; i < branch; ++i) first += conditional->called(i)->parameters().size();
  return conditional->operands().subspan(first, conditional->called(branch)->parameters().size());
}

// The arguments have exactly the shapes of the parameters, and the root has that of the
// conditional.
bool CanWriteOut(const Instr* conditional, size_t branch) {
  const Computation& body = *conditional->called(branch);
  std::span<Instr* const> arguments = ArgumentsOf(conditional, branch);
  for (size_t i = 0; i < arguments.size(); ++i)
    if (!(arguments[i]->shape() == body.parameter(i)->shape())) return false;
  return body.root()->shape() == conditional->shape() && IsPlainBody(body);
}

bool IsTupleOfAllElements(const m::Match& match) {
  const Instr* tuple = match.root();
  if (tuple->operand_count() == 0) return false;
  const Instr* first = tuple->operand(0);
  if (first->op() != Op::kGetTupleElement || first->has_extras()) return false;
  const Instr* whole = first->operand(0);
  if (whole->shape().elements().size() != tuple->operand_count()) return false;
  for (size_t i = 0; i < tuple->operand_count(); ++i) {
    const Instr* part = tuple->operand(i);
    if (part->op() != Op::kGetTupleElement || part->operand(0) != whole || part->has_extras() ||
        part->attrs<TupleIndexAttrs>().index != static_cast<int64_t>(i))
      return false;
  }
  return true;
}

// The map applies one op to its parameters.
bool MapsOneOp(const m::Match& match) {
  const Computation& body = *match.root()->called(0);
  const Instr* root = body.root();
  if (match.root()->captures() != 0 || !root->info().Is(kElementwise) || !IsPlain(*root))
    return false;
  if (root->op() == Op::kMap || root->has_extras()) return false;
  return root->operand_count() > 0 && std::ranges::all_of(root->operands(), [](const Instr* o) {
           return o->op() == Op::kParameter;
         });
}

}  // namespace

// long: a table
std::span<const Rule> ControlRules() {
  static constexpr Rule kRules[] = {
      {"tuple.of-elements", "a tuple of all elements of a tuple", m::Tuple(),
       [](Editor&, const m::Match& match) { return match.root()->operand(0)->operand(0); },
       IsTupleOfAllElements,
       R"(t = (f32[4], s32[4]) parameter(0)
          x = f32[4] get-tuple-element(t), index=0
          y = s32[4] get-tuple-element(t), index=1
          ROOT u = (f32[4], s32[4]) tuple(x, y))"},
      {"conditional.known", "a conditional with a constant index is its branch", m::Conditional(),
       [](Editor& edit, const m::Match& match) {
         size_t branch = *KnownBranchOf(match.root());
         return WrittenOut(edit, *match.root()->called(branch), ArgumentsOf(match.root(), branch));
       },
       [](const m::Match& match) {
         std::optional<size_t> branch = KnownBranchOf(match.root());
         return branch && CanWriteOut(match.root(), *branch);
       },
       R"(HloModule m

twice {
  a = f32[4] parameter(0)
  ROOT b = f32[4] add(a, a)
}

minus {
  a = f32[4] parameter(0)
  ROOT b = f32[4] negate(a)
}

ENTRY main {
  i = s32[] constant(-3)
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  ROOT c = f32[4] conditional(i, x, y), branch_computations={twice, minus}
})"},
      {"map.one-op", "a map of one op is that op", m::Map(),
       [](Editor& edit, const m::Match& match) -> Instr* {
         const Instr* root = match.root()->called(0)->root();
         std::vector<Instr*> operands;
         for (const Instr* parameter : root->operands())
           operands.push_back(match.root()->operand(
               static_cast<size_t>(parameter->attrs<ParameterAttrs>().number)));
         return edit.MakeShaped(root->op(), match.shape().WithoutLayout(), std::move(operands),
                                root->attrs());
       },
       MapsOneOp,
       R"(HloModule m

minus {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] subtract(b, a)
}

ENTRY main {
  x = f32[61] parameter(0)
  y = f32[61] parameter(1)
  ROOT c = f32[61] map(x, y), dimensions={0}, to_apply=minus
})"},
  };
  return kRules;
}

}  // namespace tokamak
