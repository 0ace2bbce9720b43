#include <algorithm>

#include "rewrite/normal/normal_form_builder.h"

namespace tokamak {
namespace {

// Replaces an argument that the result turned out not to depend on. Values that were computed from
// it and cancelled are recomputed.
Instr* StandIn(const Instr* dropped, NormalGraph& graph) {
  const Shape& shape = dropped->shape();
  if (!shape.IsArray() || shape.HasDynamicDims() || shape.quant() != nullptr) return nullptr;
  std::vector<std::byte> zero(static_cast<size_t>(BytesOf(shape.type())));
  return graph.Constant(Literal::Splat(shape.WithoutLayout(), Bytes::FromVector(std::move(zero))));
}

Tree Inner(const Tree& tree, const std::unordered_map<const Instr*, Instr*>& inner,
           NormalGraph& graph) {
  Tree result;
  if (tree.leaf != nullptr) {
    auto it = inner.find(tree.leaf);
    result.leaf = it != inner.end()            ? it->second
                  : IsSmallConstant(tree.leaf) ? CloneConstant(tree.leaf, graph)
                                               : StandIn(tree.leaf, graph);
  }
  for (const Tree& element : tree.elements) result.elements.push_back(Inner(element, inner, graph));
  return result;
}

void KeepUsed(const Computation& branch, std::vector<Instr*>& branch_operands,
              ComputationHashes& hashes) {
  InstrMap<bool> live(branch, false);
  live[branch.root()] = true;
  std::vector<Instr*> order = branch.PostOrder();
  for (size_t i = order.size(); i-- > 0;) {
    if (!live[order[i]] && !hashes.Acts(*order[i])) continue;
    for (const Instr* operand : order[i]->operands()) live[operand] = true;
  }
  std::vector<Instr*> kept;
  for (size_t i = 0; i < branch_operands.size(); ++i)
    if (live[branch.parameter(i)]) kept.push_back(branch_operands[i]);
  branch_operands = std::move(kept);
}

// The branch that a constant selects, or the only one.
std::optional<size_t> ChosenBranch(const Instr& instr, const Instr* selector) {
  size_t count = instr.called().size();
  if (selector->shape().type() != ElementType::kPred && count == 1) return 0;
  if (selector->op() != Op::kConstant) return std::nullopt;
  int64_t value = selector->attrs<ConstantAttrs>().literal.IntAt(0);
  if (selector->shape().type() == ElementType::kPred) return value != 0 ? 0 : 1;
  return value < 0 || value >= static_cast<int64_t>(count) ? count - 1 : static_cast<size_t>(value);
}

}  // namespace

// A branch takes each distinct value that it uses once, ordered by hash.
Result<Computation*> NormalFormBuilder::BuildBranch(const Computation& source,
                                                    const std::vector<Tree>& operands,
                                                    std::vector<Instr*>& branch_operands,
                                                    NormalGraph& outside) {
  for (int iteration = 0; iteration < 2; ++iteration) {
    Computation* target = out_.AddComputation("branch");
    NormalGraph graph(target, &hashes_);
    std::unordered_map<const Instr*, Instr*> inner;
    for (size_t i = 0; i < branch_operands.size(); ++i)
      inner[branch_operands[i]] = graph.Parameter(
          static_cast<int64_t>(i), branch_operands[i]->shape(), outside.HashOf(branch_operands[i]));
    std::vector<Tree> arguments;
    for (const Tree& operand : operands) arguments.push_back(Inner(operand, inner, graph));
    TOK_TRY(Tree root, Run(source, arguments, graph));
    SetRoot(graph, root);
    if (iteration == 1) return target;
    KeepUsed(*target, branch_operands, hashes_);
    std::ranges::stable_sort(branch_operands, {},
                             [&](const Instr* instr) { return outside.HashOf(instr); });
  }
  TOK_UNREACHABLE("two iterations");
}

Result<Tree> NormalFormBuilder::EvaluateConditional(const Instr& instr, const Operands& operands,
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
    std::vector<Instr*> branch_operands;
    for (size_t i = 0; i < branch->parameters().size(); ++i) arguments.push_back(*operands[next++]);
    for (const Tree& argument : arguments) Flatten(argument, branch_operands);
    std::erase_if(branch_operands, [](const Instr* leaf) { return IsSmallConstant(leaf); });
    std::ranges::sort(branch_operands, {}, [&](const Instr* leaf) { return graph.HashOf(leaf); });
    branch_operands.erase(std::unique(branch_operands.begin(), branch_operands.end()),
                          branch_operands.end());
    TOK_TRY(Computation * built, BuildBranch(*branch, arguments, branch_operands, graph));
    branches.push_back(built);
    all.insert(all.end(), branch_operands.begin(), branch_operands.end());
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

}  // namespace tokamak
