// The normal form is made by walking the program once per round, like an
// interpreter whose values are instructions of the new module: calls inline
// themselves, tuples dissolve into trees of leaves, equal instructions meet in
// the table of NormalGraph. What a loop carries is known only when the whole
// program has been seen, so a second round drops what the first found unneeded.

#include "rewrite/normal_form.h"

#include <algorithm>
#include <unordered_map>

#include "ir/compare.h"
#include "rewrite/normal/graph.h"
#include "rewrite/normal/needs.h"
#include "rewrite/normal/tree.h"

namespace tokamak {
namespace {

constexpr int kMaxRounds = 4;

bool IsIdentityCall(const std::string& target) {
  return target == "Sharding" || target == "xla.sdy.FuncResultSharding" ||
         target == "SPMDFullToShardShape" || target == "SPMDShardToFullShape" ||
         target == "annotate_device_placement";
}

class Walker {
 public:
  Walker(Module& out, const LoopNeeds& needs) : out_(out), needs_(needs) {}

  Status RunEntry(const Computation& source) {
    Computation* target = out_.AddComputation("main");
    NormalGraph graph(target, &hashes_);
    std::vector<Tree> arguments;
    int64_t number = 0;
    for (const Instr* parameter : source.parameters())
      arguments.push_back(Parameters(graph, parameter->shape(), number));
    TOK_TRY(Tree root, Run(source, arguments, graph));
    SetRoot(graph, root);
    out_.set_entry(target);
    return Ok();
  }

 private:
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

  void SetRoot(NormalGraph& graph, const Tree& root) {
    std::vector<Instr*> leaves;
    Flatten(root, leaves);
    graph.target()->set_root(root.leaf != nullptr || leaves.size() == 1 ? leaves[0]
                                                                        : TupleOf(graph, leaves));
  }

  static Instr* TupleOf(NormalGraph& graph, const std::vector<Instr*>& leaves) {
    std::vector<Shape> shapes;
    for (const Instr* leaf : leaves) shapes.push_back(leaf->shape());
    return graph.Intern(Op::kTuple, Shape::Tuple(shapes), leaves);
  }

  // ---- one computation ----

  Result<Tree> Run(const Computation& source, const std::vector<Tree>& arguments,
                   NormalGraph& graph) {
    if (++depth_ > kMaxCallDepth)
      return MakeError(ErrorCode::kTooDeep, "call: calls are nested too deeply");
    std::unordered_map<const Instr*, Tree> values;
    for (const Instr* instr : source.PostOrder()) {
      std::vector<const Tree*> operands;
      for (const Instr* operand : instr->operands()) operands.push_back(&values[operand]);
      TOK_TRY(Tree value, Evaluate(*instr, operands, arguments, graph));
      values[instr] = std::move(value);
    }
    --depth_;
    return values[source.root()];
  }

  Result<Tree> Evaluate(const Instr& instr, const std::vector<const Tree*>& operands,
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
        return *operands[0];
      case Op::kCall:
      case Op::kFusion:
      case Op::kAsyncStart:
        return Inline(*instr.called(0), operands, graph);
      case Op::kAsyncUpdate:
      case Op::kAsyncDone:
        return *operands[0];
      case Op::kComposite:
        return EvaluateComposite(instr, operands, graph);
      case Op::kWhile:
        return EvaluateWhile(instr, operands, graph);
      case Op::kConditional:
        return EvaluateConditional(instr, operands, graph);
      case Op::kCustomCall:
        if (IsIdentityCall(instr.attrs<CustomCallAttrs>().target)) return *operands[0];
        return EvaluatePlain(instr, operands, graph);
      default:
        return EvaluatePlain(instr, operands, graph);
    }
  }

  Result<Tree> Inline(const Computation& callee, const std::vector<const Tree*>& operands,
                      NormalGraph& graph) {
    std::vector<Tree> arguments;
    for (const Tree* operand : operands) arguments.push_back(*operand);
    return Run(callee, arguments, graph);
  }

  // A composite that names an op of ours is that op; any other is its decomposition.
  Result<Tree> EvaluateComposite(const Instr& instr, const std::vector<const Tree*>& operands,
                                 NormalGraph& graph) {
    const CompositeAttrs& attrs = instr.attrs<CompositeAttrs>();
    std::optional<Op> op = OpFromMlirName(attrs.name);
    if (op && InfoOf(*op).arity == static_cast<int>(operands.size())) {
      if (InfoOf(*op).Is(kElementwise))
        return Tree{graph.Make(*op, instr.shape(), Leaves(operands)), {}};
      const AttrValue* k = Find(attrs.attributes, "k");
      if (*op == Op::kTopK && k != nullptr && k->As<IntAttr>() != nullptr)
        return Results(graph.Make(*op, FlatShape(instr.shape()), Leaves(operands),
                                  TopKAttrs{.k = k->As<IntAttr>()->value}),
                       instr.shape(), graph);
    }
    return Inline(*instr.called(0), operands, graph);
  }

  static std::vector<Instr*> Leaves(const std::vector<const Tree*>& operands) {
    std::vector<Instr*> leaves;
    for (const Tree* operand : operands) Flatten(*operand, leaves);
    return leaves;
  }

  static Shape FlatShape(const Shape& shape) {
    if (!shape.IsTuple()) return shape.WithoutLayout();
    std::vector<Shape> leaves;
    Flatten(shape, leaves);
    return Shape::Tuple(leaves);
  }

  // The leaves of an instruction with a flat tuple shape, as the tree of `shape`.
  static Tree Results(Instr* instr, const Shape& shape, NormalGraph& graph) {
    if (!shape.IsTuple()) return {instr, {}};
    std::vector<Instr*> leaves;
    for (size_t i = 0; i < instr->shape().elements().size(); ++i)
      leaves.push_back(graph.Intern(Op::kGetTupleElement, instr->shape().elements()[i], {instr},
                                    TupleIndexAttrs{static_cast<int64_t>(i)}));
    size_t next = 0;
    return Unflatten(shape, leaves, next);
  }

  Result<Tree> EvaluatePlain(const Instr& instr, const std::vector<const Tree*>& operands,
                             NormalGraph& graph) {
    std::vector<Instr*> leaves = Leaves(operands);
    if (leaves.size() < operands.size()) return Tree{};  // an operand is dead, so this is
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

  Result<Computation*> NormalCallee(const Computation& source) {
    auto it = callees_.find(&source);
    if (it != callees_.end()) return it->second;
    Computation* target = out_.AddComputation(source.name());
    NormalGraph graph(target, &hashes_);
    std::vector<Tree> arguments;
    int64_t number = 0;
    for (const Instr* parameter : source.parameters())
      arguments.push_back(Parameters(graph, parameter->shape(), number));
    TOK_TRY(Tree root, Run(source, arguments, graph));
    SetRoot(graph, root);
    callees_[&source] = target;
    return target;
  }

  // ---- loops ----

  // A loop under construction: which carried values stay, how they are told apart.
  struct Loop {
    const Instr& source;
    std::vector<Instr*> initial;  // leaves, in the order of the source
    std::vector<Shape> shapes;
    std::vector<size_t> kept;       // positions in `initial`, in the order of the new loop
    std::vector<uint64_t> colours;  // per position in `initial`
    std::vector<bool> constant;     // unchanged by the body and initially a constant
  };
  struct BuiltLoop {
    Computation *condition, *body;
    std::vector<Instr*> results;  // leaves of the body's result, all positions; null for dead ones
    std::vector<Instr*> parameters;
    std::vector<uint64_t> result_hashes;
  };

  static bool IsSmallConstant(const Instr* instr) {
    if (instr->op() == Op::kBroadcast) instr = instr->operand(0);
    return instr->op() == Op::kConstant && instr->shape().IsArray() &&
           instr->shape().ElementCount() <= 1 << 12;
  }

  static Instr* CloneConstant(const Instr* instr, NormalGraph& graph) {
    if (instr->op() == Op::kConstant)
      return graph.Intern(Op::kConstant, instr->shape(), {}, instr->attrs());
    return graph.Intern(instr->op(), instr->shape(), {CloneConstant(instr->operand(0), graph)},
                        instr->attrs());
  }

  // One parameter per kept leaf, in order; the arguments of a called computation.
  std::vector<Tree> LoopArguments(const Loop& loop, NormalGraph& graph,
                                  std::vector<Instr*>& leaves) {
    leaves.assign(loop.initial.size(), nullptr);
    for (size_t position = 0; position < loop.initial.size(); ++position)
      if (loop.constant[position]) leaves[position] = CloneConstant(loop.initial[position], graph);
    int64_t number = 0;
    for (size_t position : loop.kept)
      leaves[position] = graph.Parameter(number++, loop.shapes[position], loop.colours[position]);
    size_t next = 0;
    std::vector<Tree> arguments;
    for (const Instr* operand : loop.source.operands())
      arguments.push_back(Unflatten(operand->shape(), leaves, next));
    return arguments;
  }

  Result<BuiltLoop> Build(const Loop& loop) {
    BuiltLoop built{out_.AddComputation("condition"), out_.AddComputation("body"), {}, {}, {}};
    std::vector<Instr*> leaves;
    NormalGraph condition(built.condition, &hashes_);
    std::vector<Tree> condition_arguments = LoopArguments(loop, condition, leaves);
    TOK_TRY(Tree proceed, Run(*loop.source.called(0), condition_arguments, condition));
    SetRoot(condition, proceed);

    NormalGraph body(built.body, &hashes_);
    std::vector<Tree> arguments = LoopArguments(loop, body, built.parameters);
    TOK_TRY(Tree result, Run(*loop.source.called(1), arguments, body));
    FlattenKeepingDead(result, loop.source.shape(), built.results);
    std::vector<Instr*> kept;
    for (size_t position : loop.kept) kept.push_back(built.results[position]);
    built.body->set_root(kept.size() == 1 ? kept[0] : TupleOf(body, kept));
    for (const Instr* leaf : built.results)
      built.result_hashes.push_back(leaf == nullptr ? 0 : body.HashOf(leaf));
    return built;
  }

  static void FlattenKeepingDead(const Tree& tree, const Shape& shape,
                                 std::vector<Instr*>& leaves) {
    if (!shape.IsTuple()) {
      leaves.push_back(tree.leaf);
      return;
    }
    for (size_t i = 0; i < shape.elements().size(); ++i)
      FlattenKeepingDead(i < tree.elements.size() ? tree.elements[i] : Tree{}, shape.elements()[i],
                         leaves);
  }

  // Values that start alike are told apart by what the body makes of them.
  static void Refine(Loop& loop, const BuiltLoop& built) {
    for (size_t i = 0; i < loop.colours.size(); ++i) {
      Hasher hasher;
      hasher.Add(loop.colours[i]);
      hasher.Add(built.result_hashes[i]);
      loop.colours[i] = hasher.digest();
    }
    std::ranges::stable_sort(loop.kept, {},
                             [&](size_t position) { return loop.colours[position]; });
  }

  Result<Tree> EvaluateWhile(const Instr& instr, const std::vector<const Tree*>& operands,
                             NormalGraph& graph) {
    Loop loop{instr, {}, {}, {}, {}, {}};
    for (size_t i = 0; i < operands.size(); ++i) {
      FlattenKeepingDead(*operands[i], instr.operand(i)->shape(), loop.initial);
      Flatten(instr.operand(i)->shape(), loop.shapes);
    }
    auto needs = needs_.find(&instr);
    loop.constant.assign(loop.initial.size(), false);
    for (size_t i = 0; i < loop.initial.size(); ++i) {
      loop.colours.push_back(loop.initial[i] == nullptr ? 0 : graph.HashOf(loop.initial[i]));
      if (loop.initial[i] != nullptr && (needs == needs_.end() || needs->second.contains(i)))
        loop.kept.push_back(i);
    }
    TOK_TRY(BuiltLoop built, Build(loop));
    std::erase_if(loop.kept, [&](size_t i) {
      loop.constant[i] =
          built.results[i] == built.parameters[i] && IsSmallConstant(loop.initial[i]);
      return loop.constant[i];
    });
    for (int round = 0; round < 2; ++round) {
      TOK_TRY(built, Build(loop));
      Refine(loop, built);
    }
    TOK_TRY(built, Build(loop));
    return FinishWhile(loop, built, graph);
  }

  Tree FinishWhile(const Loop& loop, const BuiltLoop& built, NormalGraph& graph) {
    std::vector<Instr*> initial;
    std::vector<Shape> shapes;
    for (size_t position : loop.kept) {
      initial.push_back(loop.initial[position]);
      shapes.push_back(loop.shapes[position]);
    }
    bool single = shapes.size() == 1;
    Instr* loop_instr = graph.Intern(Op::kWhile, single ? shapes[0] : Shape::Tuple(shapes), initial,
                                     {}, {built.condition, built.body});
    std::vector<Instr*> leaves(loop.initial.size(), nullptr);
    for (size_t i = 0; i < loop.initial.size(); ++i)
      if (loop.constant[i] ||
          (built.results[i] != nullptr && built.results[i] == built.parameters[i]))
        leaves[i] = loop.initial[i];
    for (size_t i = 0; i < loop.kept.size(); ++i) {
      if (leaves[loop.kept[i]] != nullptr) continue;  // the body does not change it
      leaves[loop.kept[i]] = single ? loop_instr
                                    : graph.Intern(Op::kGetTupleElement, shapes[i], {loop_instr},
                                                   TupleIndexAttrs{static_cast<int64_t>(i)});
    }
    size_t next = 0;
    return Unflatten(loop.source.shape(), leaves, next);
  }

  // ---- conditionals ----

  // A branch takes each distinct value that it uses once, in the order of their hashes.
  Result<Computation*> BuildBranch(const Computation& source, const std::vector<Tree>& operands,
                                   std::vector<Instr*>& taken, NormalGraph& outside) {
    for (int round = 0; round < 2; ++round) {
      Computation* target = out_.AddComputation("branch");
      NormalGraph graph(target, &hashes_);
      std::unordered_map<const Instr*, Instr*> inner;
      for (size_t i = 0; i < taken.size(); ++i)
        inner[taken[i]] =
            graph.Parameter(static_cast<int64_t>(i), taken[i]->shape(), outside.HashOf(taken[i]));
      std::vector<Tree> arguments;
      for (const Tree& operand : operands) arguments.push_back(Inner(operand, inner, graph));
      TOK_TRY(Tree root, Run(source, arguments, graph));
      SetRoot(graph, root);
      if (round == 1) return target;
      KeepUsed(*target, taken);
      std::ranges::stable_sort(taken, {},
                               [&](const Instr* instr) { return outside.HashOf(instr); });
    }
    TOK_UNREACHABLE("two rounds");
  }

  Tree Inner(const Tree& tree, const std::unordered_map<const Instr*, Instr*>& inner,
             NormalGraph& graph) {
    Tree result;
    if (tree.leaf != nullptr) {
      auto it = inner.find(tree.leaf);
      result.leaf = it != inner.end()            ? it->second
                    : IsSmallConstant(tree.leaf) ? CloneConstant(tree.leaf, graph)
                                                 : nullptr;
    }
    for (const Tree& element : tree.elements)
      result.elements.push_back(Inner(element, inner, graph));
    return result;
  }

  static void KeepUsed(const Computation& branch, std::vector<Instr*>& taken) {
    InstrMap<bool> live(branch, false);
    live[branch.root()] = true;
    std::vector<Instr*> order = branch.PostOrder();
    for (size_t i = order.size(); i-- > 0;) {
      if (!live[order[i]] && !order[i]->info().Is(kSideEffect)) continue;
      for (const Instr* operand : order[i]->operands()) live[operand] = true;
    }
    std::vector<Instr*> kept;
    for (size_t i = 0; i < taken.size(); ++i)
      if (live[branch.parameter(i)]) kept.push_back(taken[i]);
    taken = std::move(kept);
  }

  // The branch that a constant chooses, or the only one.
  static std::optional<size_t> ChosenBranch(const Instr& instr, const Instr* selector) {
    size_t count = instr.called().size();
    if (selector->shape().type() != ElementType::kPred && count == 1) return 0;
    if (selector->op() != Op::kConstant) return std::nullopt;
    int64_t value = selector->attrs<ConstantAttrs>().literal.IntAt(0);
    if (selector->shape().type() == ElementType::kPred) return value != 0 ? 0 : 1;
    return value < 0 || value >= static_cast<int64_t>(count) ? count - 1
                                                             : static_cast<size_t>(value);
  }

  Result<Tree> EvaluateConditional(const Instr& instr, const std::vector<const Tree*>& operands,
                                   NormalGraph& graph) {
    if (std::optional<size_t> chosen = ChosenBranch(instr, operands[0]->leaf)) {
      size_t first = 1;
      for (size_t i = 0; i < *chosen; ++i) first += instr.called(i)->parameters().size();
      size_t count = instr.called(*chosen)->parameters().size();
      auto begin = operands.begin() + static_cast<int64_t>(first);
      return Inline(*instr.called(*chosen), {begin, begin + static_cast<int64_t>(count)}, graph);
    }
    std::vector<Instr*> all = {operands[0]->leaf};
    std::vector<Computation*> branches;
    size_t next = 1;
    for (const Computation* branch : instr.called()) {
      std::vector<Tree> arguments;
      std::vector<Instr*> taken;
      for (size_t i = 0; i < branch->parameters().size(); ++i)
        arguments.push_back(*operands[next++]);
      for (const Tree& argument : arguments) Flatten(argument, taken);
      std::erase_if(taken, [](const Instr* leaf) { return IsSmallConstant(leaf); });
      std::ranges::sort(taken, {}, [&](const Instr* leaf) { return graph.HashOf(leaf); });
      taken.erase(std::unique(taken.begin(), taken.end()), taken.end());
      TOK_TRY(Computation * built, BuildBranch(*branch, arguments, taken, graph));
      branches.push_back(built);
      all.insert(all.end(), taken.begin(), taken.end());
    }
    Shape flat = FlatShape(instr.shape());
    if (flat.IsTuple() && flat.elements().size() == 1) flat = flat.elements()[0];
    Instr* made = graph.Intern(Op::kConditional, flat, all, {}, branches);
    if (!flat.IsTuple() && instr.shape().IsTuple()) {
      std::vector<Instr*> leaves = {made};
      size_t at = 0;
      return Unflatten(instr.shape(), leaves, at);
    }
    return Results(made, instr.shape(), graph);
  }

  Module& out_;
  const LoopNeeds& needs_;
  ComputationHashes hashes_;
  std::unordered_map<const Computation*, Computation*> callees_;
  int depth_ = 0;
};

// ---- the result, in an order of its own ----

// Copies what the entry reaches, operands first, starting from side effects in
// program order and then the root: the order no longer depends on the source.
class Emitter {
 public:
  explicit Emitter(Module& out) : out_(out) {}

  Computation* Emit(const Computation& source) {
    auto it = done_.find(&source);
    if (it != done_.end()) return it->second;
    Computation* target = out_.AddComputation("c" + std::to_string(out_.computations().size()));
    done_[&source] = target;
    std::unordered_map<const Instr*, Instr*> copies;
    for (const Instr* parameter : source.parameters())
      copies[parameter] =
          target->AppendParameter(parameter->attrs<ParameterAttrs>().number, parameter->shape());
    for (const Instr* instr : source.Instrs())
      if (instr->info().Is(kSideEffect)) Copy(instr, *target, copies);
    target->set_root(Copy(source.root(), *target, copies));
    return target;
  }

 private:
  Instr* Copy(const Instr* root, Computation& target,
              std::unordered_map<const Instr*, Instr*>& copies) {
    std::vector<const Instr*> stack = {root};
    while (!stack.empty()) {
      const Instr* instr = stack.back();
      if (copies.contains(instr)) {
        stack.pop_back();
        continue;
      }
      size_t before = stack.size();
      for (size_t i = instr->operand_count(); i-- > 0;)
        if (!copies.contains(instr->operand(i))) stack.push_back(instr->operand(i));
      if (stack.size() > before) continue;
      std::vector<Instr*> operands;
      for (const Instr* operand : instr->operands()) operands.push_back(copies[operand]);
      std::vector<Computation*> called;
      for (const Computation* callee : instr->called()) called.push_back(Emit(*callee));
      Instr* copy = target.Append(instr->op(), instr->shape(), std::move(operands), instr->attrs());
      copy->set_called(std::move(called));
      copy->set_captures(instr->captures());
      copies[instr] = copy;
      stack.pop_back();
    }
    return copies[root];
  }

  Module& out_;
  std::unordered_map<const Computation*, Computation*> done_;
};

Result<std::unique_ptr<Module>> OneRound(const Module& module, const LoopNeeds& needs) {
  Module scratch;
  TOK_RETURN_IF_ERROR(Walker(scratch, needs).RunEntry(*module.entry()));
  auto out = std::make_unique<Module>("normal");
  out->set_entry(Emitter(*out).Emit(*scratch.entry()));
  return out;
}

}  // namespace

Result<std::unique_ptr<Module>> NormalForm(const Module& module) {
  if (module.entry() == nullptr) return std::make_unique<Module>("normal");
  TOK_TRY(std::unique_ptr<Module> normal, OneRound(module, {}));
  for (int round = 1; round < kMaxRounds; ++round) {
    uint64_t before = StructuralHash(*normal);
    TOK_TRY(normal, OneRound(*normal, FindLoopNeeds(*normal)));
    if (StructuralHash(*normal) == before) break;
  }
  return normal;
}

}  // namespace tokamak
