// Loops carry only the values they need, each once, in an order that depends on the values and not
// on how the loop was written.

#include <algorithm>

#include "rewrite/normal/normal_form_builder.h"

namespace tokamak {

// A loop under construction: which carried values are kept, and what distinguishes them. Positions
// are those of the leaves of the source.
struct CarriedLoop {
  const Instr& source;
  std::vector<Instr*> initial;
  std::vector<Shape> shapes;
  std::vector<size_t> kept;       // in the order of the new loop
  std::vector<uint64_t> colours;  // per position
  std::vector<bool> constant;     // unchanged by the body and initially a constant
  std::vector<size_t> same_as;    // a position that always holds the same value; usually itself
};

struct BuiltLoop {
  Computation *condition = nullptr, *body = nullptr;
  std::vector<Instr*> results =
      {};  // leaves of the body's result, all positions; null for dead ones
  std::vector<Instr*> parameters = {};
  std::vector<uint64_t> result_hashes = {};
  bool is_dead = false;   // the loop condition depends on dead values
  bool is_whole = false;  // no kept value depends on a dead one

  bool Keeps(size_t position) const {
    return results[position] != nullptr && results[position] == parameters[position];
  }
};

namespace {

void FlattenKeepingDead(const Tree& tree, const Shape& shape, std::vector<Instr*>& leaves) {
  if (!shape.IsTuple()) {
    leaves.push_back(tree.leaf);
    return;
  }
  for (size_t i = 0; i < shape.elements().size(); ++i)
    FlattenKeepingDead(i < tree.elements.size() ? tree.elements[i] : Tree{}, shape.elements()[i],
                       leaves);
}

void SortByColour(CarriedLoop& loop) {
  std::ranges::stable_sort(loop.kept, {}, [&](size_t position) { return loop.colours[position]; });
}

bool HasTies(const CarriedLoop& loop) {
  auto colour = [&](size_t position) { return loop.colours[position]; };
  return std::ranges::adjacent_find(loop.kept, {}, colour) != loop.kept.end();
}

// Distinguishes values with equal initial values by what the body computes from them.
void Refine(CarriedLoop& loop, const BuiltLoop& built) {
  for (size_t i = 0; i < loop.colours.size(); ++i) {
    Hasher hasher;
    hasher.Add(loop.colours[i]);
    hasher.Add(built.result_hashes[i]);
    loop.colours[i] = hasher.digest();
  }
  SortByColour(loop);
}

// Loop-invariant values are carried once, or not at all if constant. StableHLO carries them once
// for the condition and once for the body, HLO's importer once. Returns whether anything was
// dropped.
bool DropUnchanged(CarriedLoop& loop, const BuiltLoop& built) {
  std::unordered_map<const Instr*, size_t> carried;  // by initial value
  size_t before = loop.kept.size();
  std::erase_if(loop.kept, [&](size_t i) {
    if (!built.Keeps(i)) return false;
    loop.constant[i] = IsSmallConstant(loop.initial[i]);
    if (loop.constant[i]) return true;
    loop.same_as[i] = carried.try_emplace(loop.initial[i], i).first->second;
    return loop.same_as[i] != i;
  });
  return loop.kept.size() != before;
}

// The loop itself, and its results as a tree of the source's shape.
Tree FinishWhile(const CarriedLoop& loop, const BuiltLoop& built, NormalGraph& graph) {
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
    if (loop.constant[i] || built.Keeps(i)) leaves[i] = loop.initial[i];
  for (size_t i = 0; i < loop.kept.size(); ++i) {
    if (leaves[loop.kept[i]] != nullptr) continue;  // the body does not change it
    leaves[loop.kept[i]] = single ? loop_instr
                                  : graph.Intern(Op::kGetTupleElement, shapes[i], {loop_instr},
                                                 TupleIndexAttrs{static_cast<int64_t>(i)});
  }
  size_t next = 0;
  return Unflatten(loop.source.shape(), leaves, next);
}

}  // namespace

Result<BuiltLoop> NormalFormBuilder::Build(const CarriedLoop& loop) {
  // One parameter per kept leaf, in order: the arguments of a called computation.
  auto arguments_in = [&](NormalGraph& graph, std::vector<Instr*>& leaves) {
    leaves.assign(loop.initial.size(), nullptr);
    for (size_t position = 0; position < loop.initial.size(); ++position)
      if (loop.constant[position]) leaves[position] = CloneConstant(loop.initial[position], graph);
    int64_t number = 0;
    for (size_t position : loop.kept)
      leaves[position] = graph.Parameter(number++, loop.shapes[position], loop.colours[position]);
    for (size_t position = 0; position < loop.initial.size(); ++position)
      leaves[position] = leaves[loop.same_as[position]];
    size_t next = 0;
    std::vector<Tree> arguments;
    for (const Instr* operand : loop.source.operands())
      arguments.push_back(Unflatten(operand->shape(), leaves, next));
    return arguments;
  };

  BuiltLoop built{out_.AddComputation("condition"), out_.AddComputation("body")};
  std::vector<Instr*> leaves;
  NormalGraph condition(built.condition, &hashes_);
  std::vector<Tree> condition_arguments = arguments_in(condition, leaves);
  TOK_TRY(Tree proceed, Run(*loop.source.called(0), condition_arguments, condition));
  built.is_dead = proceed.leaf == nullptr;
  if (built.is_dead) return built;
  SetRoot(condition, proceed);

  NormalGraph body(built.body, &hashes_);
  std::vector<Tree> arguments = arguments_in(body, built.parameters);
  TOK_TRY(Tree result, Run(*loop.source.called(1), arguments, body));
  FlattenKeepingDead(result, loop.source.shape(), built.results);
  std::vector<Instr*> kept;
  for (size_t position : loop.kept) kept.push_back(built.results[position]);
  built.is_whole = std::ranges::none_of(kept, [](const Instr* leaf) { return leaf == nullptr; });
  if (!built.is_whole) return built;
  built.body->set_root(kept.size() == 1 ? kept[0] : TupleOf(body, kept));
  for (const Instr* leaf : built.results)
    built.result_hashes.push_back(leaf == nullptr ? 0 : body.HashOf(leaf));
  return built;
}

// A body is built once if nothing is dropped and all values have different initial values, and at
// most four times unless some of it is dead.
Result<Tree> NormalFormBuilder::EvaluateWhile(const Instr& instr, const Operands& operands,
                                              NormalGraph& graph) {
  CarriedLoop loop{instr, {}, {}, {}, {}, {}, {}};
  for (size_t i = 0; i < operands.size(); ++i) {
    FlattenKeepingDead(*operands[i], instr.operand(i)->shape(), loop.initial);
    Flatten(instr.operand(i)->shape(), loop.shapes);
  }
  auto needs = needs_.find(&instr);
  loop.constant.assign(loop.initial.size(), false);
  for (size_t i = 0; i < loop.initial.size(); ++i) {
    loop.same_as.push_back(i);
    loop.colours.push_back(loop.initial[i] == nullptr ? 0 : graph.HashOf(loop.initial[i]));
    if (loop.initial[i] != nullptr && (needs == needs_.end() || needs->second.contains(i)))
      loop.kept.push_back(i);
  }
  SortByColour(loop);
  TOK_TRY(BuiltLoop built, Build(loop));
  while (!built.is_whole) {
    if (built.is_dead) return Tree{};
    std::erase_if(loop.kept, [&](size_t i) { return built.results[i] == nullptr; });
    TOK_TRY(built, Build(loop));
  }
  if (DropUnchanged(loop, built)) {
    TOK_TRY(built, Build(loop));
  }
  for (int iteration = 0; iteration < 2 && HasTies(loop); ++iteration) {
    Refine(loop, built);
    TOK_TRY(built, Build(loop));
  }
  return FinishWhile(loop, built, graph);
}

}  // namespace tokamak
