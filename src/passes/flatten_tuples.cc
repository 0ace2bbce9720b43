// Every loop, conditional and call takes arrays instead of tuples. The rule for get-tuple-element
// of a tuple op removes the remaining tuples.
//
//   before                                   after
//   t = (f32[], s32[]) tuple(a, b)           w = (f32[], s32[]) while(a, b)
//   w = (f32[], s32[]) while(t)              body: p0 = f32[] parameter(0), p1 = s32[] parameter(1)
//   body: p = (f32[], s32[]) parameter(0)    and inside it tuple(p0, p1) replaces p
//
// The parameters and the root of a computation change only if all of its callers are flattened with
// it; FindFlattened determines which. Linear in the program and the leaves of its tuples.

#include <algorithm>
#include <unordered_map>

#include "passes/passes.h"
#include "passes/tuples.h"
#include "rewrite/editor.h"
#include "rewrite/replace.h"
#include "rewrite/rules/topics.h"

namespace tokamak {
namespace {

size_t LeafCount(const Shape& shape) {
  return LeavesOf(shape).size();
}

// Whether extras apply to the tuple as a whole and could not be attached to its leaves.
bool IsPinnedTuple(const Instr& instr) {
  const InstrExtras& extras = instr.extras();
  return extras.sharding || extras.sharding_rule || !extras.control_predecessors.empty() ||
         instr.is_control_predecessor() || !extras.frontend_attributes.empty();
}

// Whether the instruction passes a tuple to a computation, or returns a nested one.
bool HasTuples(const Instr& caller) {
  bool takes = std::ranges::any_of(caller.operands(),
                                   [](const Instr* operand) { return operand->shape().IsTuple(); });
  return takes || IsNested(caller.shape());
}

class Flattener {
 public:
  Flattener(Module& module, PassContext& context) : module_(module), context_(context) {}

  Result<Changed> Run() {
    FindFlattened();
    for (const auto& computation : module_.computations())
      if (flat_[computation.get()]) FlattenComputation(*computation);
    for (const auto& computation : module_.computations()) FlattenCallers(*computation);
    static const RuleSet* rules = new RuleSet(TupleRules());
    Changed changed = changed_;
    for (const auto& computation : module_.computations()) {
      TOK_TRY(Changed own, ApplyRules(*computation, *rules, context_));
      changed |= own;
    }
    return changed;
  }

 private:
  // The computations that receive leaves from all of their callers. A caller calls several
  // computations; either all of them are flattened or none, which may exclude others. Iterates
  // until nothing more is excluded.
  void FindFlattened() {
    std::unordered_map<Computation*, std::vector<Instr*>> callers;
    for (const auto& computation : module_.computations()) flat_[computation.get()] = false;
    for (const auto& computation : module_.computations())
      for (Instr* instr : computation->Callers())
        for (size_t i = 0; i < instr->called().size(); ++i) {
          Computation* callee = instr->called(i);
          callers[callee].push_back(instr);
          flat_[callee] = true;
          (instr->op() == Op::kWhile ? is_body_ : is_branch_)[callee] = true;
        }
    std::vector<Computation*> open;
    auto rule_out = [&](Computation* computation) {
      if (!flat_[computation]) return;
      flat_[computation] = false;
      open.push_back(computation);
    };
    for (const auto& computation : module_.computations()) {
      bool has_two_roles = is_body_[computation.get()] && is_branch_[computation.get()];
      if (computation.get() == module_.entry() || computation->is_public || has_two_roles ||
          IsAwkward(*computation))
        rule_out(computation.get());
      for (Instr* instr : computation->Callers())
        if (!RunsComputations(instr->op()) || IsPinnedTuple(*instr) || !MayFlatten(*instr))
          for (Computation* callee : instr->called()) rule_out(callee);
    }
    while (!open.empty()) {
      Computation* computation = open.back();
      open.pop_back();
      for (Instr* caller : callers[computation])
        for (Computation* callee : caller->called()) rule_out(callee);
    }
  }

  static bool IsAwkward(const Computation& computation) {
    return !computation.results.empty() ||
           std::ranges::any_of(computation.parameters(), [](const Instr* parameter) {
             return parameter->shape().IsTuple() && IsPinnedTuple(*parameter);
           });
  }

  // A loop without state has nothing to flatten.
  static bool MayFlatten(const Instr& caller) {
    return caller.op() != Op::kWhile || LeafCount(caller.shape()) > 0;
  }

  void FlattenComputation(Computation& computation) {
    if (std::ranges::any_of(computation.parameters(),
                            [](const Instr* p) { return p->shape().IsTuple(); }))
      FlattenParameters(computation);
    Instr* root = computation.root();
    if (!root->shape().IsTuple()) return;
    bool is_loop_of_one = is_body_[&computation] && LeafCount(root->shape()) == 1;
    if (!IsNested(root->shape()) && !is_loop_of_one) return;
    std::vector<Instr*> leaves;
    AddLeaves(root, leaves);
    if (is_loop_of_one) {
      computation.set_root(leaves[0]);
    } else {
      std::vector<Shape> shapes;
      for (const Instr* leaf : leaves) shapes.push_back(leaf->shape());
      computation.set_root(Editor::Beside(*root).Make(Op::kTuple, Shape::Tuple(shapes), leaves));
    }
    context_.Accepted("tuple.flat-root", *root, computation.root(), computation.name());
    changed_ = Changed::kYes;
  }

  void FlattenParameters(Computation& computation) {
    std::vector<Instr*> parameters;
    std::vector<Instr*> old = computation.parameters();
    for (Instr* parameter : old) {
      if (!parameter->shape().IsTuple()) {
        parameters.push_back(parameter);
        continue;
      }
      std::vector<Instr*> leaves;
      for (const Shape& shape : LeavesOf(parameter->shape())) {
        leaves.push_back(
            Editor::Beside(*parameter).Make(Op::kParameter, shape, {}, ParameterAttrs{}));
        leaves.back()->set_name(parameter->name() + "." + std::to_string(leaves.size() - 1));
      }
      Instr* whole = TupleOfLeaves(*parameter, leaves);
      context_.Accepted("tuple.flat-parameter", *parameter, whole, computation.name());
      computation.ReplaceUses(parameter, whole);
      parameters.insert(parameters.end(), leaves.begin(), leaves.end());
      changed_ = Changed::kYes;
    }
    computation.SetParameters(std::move(parameters));
    for (Instr* parameter : old)
      if (parameter->shape().IsTuple()) computation.Remove(parameter);
  }

  // New callers take the positions of the old ones, so side effects inside them keep their order.
  void FlattenCallers(Computation& computation) {
    if (!computation.has_callers()) return;
    std::vector<Instr*> before = computation.Instrs();
    InstrMap<Instr*> instead(computation, nullptr);
    bool found = false;
    for (Instr* instr : before) {
      if (!RunsComputations(instr->op()) || !flat_[instr->called(0)] || !HasTuples(*instr))
        continue;
      instead[instr] = FlattenCaller(instr);
      found = true;
    }
    if (!found) return;
    std::vector<Instr*> order;
    std::vector<char> placed(computation.id_limit(), 0);
    auto append = [&](Instr* instr) {
      if (instr->is_removed() || placed[static_cast<size_t>(instr->id())] != 0) return;
      placed[static_cast<size_t>(instr->id())] = 1;
      order.push_back(instr);
    };
    for (Instr* instr : before) append(instead[instr] != nullptr ? instead[instr] : instr);
    for (Instr* instr : computation.Instrs()) append(instr);
    computation.SetOrder(order);
  }

  Instr* FlattenCaller(Instr* caller) {
    Computation& computation = *caller->parent();
    std::vector<Instr*> operands;
    for (Instr* operand : caller->operands()) AddLeaves(operand, operands);
    std::vector<Shape> shapes = LeavesOf(caller->shape());
    bool is_one = caller->op() == Op::kWhile && shapes.size() == 1;
    bool is_flat = !caller->shape().IsTuple() || is_one;
    Shape shape = is_flat ? shapes[0] : Shape::Tuple(shapes);
    Instr* flat =
        Editor::Beside(*caller).Make(caller->op(), shape, std::move(operands), caller->attrs());
    flat->set_name(caller->name());
    flat->set_called({caller->called().begin(), caller->called().end()});
    if (caller->has_extras()) flat->mutable_extras() = caller->extras();
    std::vector<Instr*> results;
    AddLeaves(flat, results);
    Instr* whole = TupleOfLeaves(*caller, results);
    context_.Accepted("tuple.flat-caller", *caller, flat);
    MergeOrigins(flat, *caller);
    computation.ReplaceUses(caller, whole);
    computation.Remove(caller);
    changed_ = Changed::kYes;
    return flat;
  }

  Module& module_;
  PassContext& context_;
  // is_body_: body or condition of a loop.
  std::unordered_map<const Computation*, bool> flat_, is_body_, is_branch_;
  Changed changed_ = Changed::kNo;
};

}  // namespace

// Loops, conditionals and calls take and return arrays: tuples are unpacked before them and rebuilt
// after them; tuples that are only unpacked are removed. The entry keeps its parameters and
// results. Computations that also have other callers (a custom call, a reduction) keep theirs.
Result<Changed> FlattenTuples(Module& module, PassContext& context) {
  return Flattener(module, context).Run();
}

}  // namespace tokamak
