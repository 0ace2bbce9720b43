// Instructions that are replaced by others: calls, composites, and the custom calls and shard maps
// that one format expands and another names.

#include "rewrite/normal/mesh_text.h"
#include "rewrite/normal/normal_form_builder.h"

namespace tokamak {
namespace {

constexpr std::string_view kToLocal = "xla.sdy.GlobalToLocalShape",
                           kToGlobal = "xla.sdy.LocalToGlobalShape";

bool IsIdentityCall(const std::string& target) {
  return target == "Sharding" || target == "xla.sdy.FuncResultSharding" ||
         target == "SPMDFullToShardShape" || target == "SPMDShardToFullShape" ||
         target == "annotate_device_placement";
}

// One boundary of a shard map; its effect on shapes depends on its shardings.
Instr* ShardCall(NormalGraph& graph, std::string_view target, const Shape& shape,
                 std::vector<Instr*> operands, std::string shardings) {
  CustomCallAttrs attrs;
  attrs.target = target;
  attrs.backend_config = std::move(shardings);
  attrs.has_side_effect = true;
  return graph.Append(Op::kCustomCall, shape, std::move(operands), attrs, {}, 0);
}

// The shardings that such a call carries as text.
std::string ShardingsOf(const Instr& instr) {
  std::string text;
  for (std::string_view key :
       {"xla.sdy.in_shardings", "xla.sdy.out_shardings", "xla.sdy.manual_axes"}) {
    const AttrValue* value = Find(instr.extras().frontend_attributes, key);
    if (value != nullptr && value->As<std::string>() != nullptr) text += *value->As<std::string>();
  }
  return text.empty() ? instr.attrs<CustomCallAttrs>().backend_config : text;
}

// ApproxTopK on a platform without an implementation: XLA expands it into a sort.
bool IsSortingTopK(const CustomCallAttrs& attrs) {
  auto is_true = [&](std::string_view key) {
    const AttrValue* value = Find(attrs.backend_dict, key);
    return value != nullptr && value->As<bool>() != nullptr && *value->As<bool>();
  };
  return attrs.target == "ApproxTopK" && is_true("is_fallback") && is_true("aggregate_to_topk");
}

}  // namespace

Result<Tree> NormalFormBuilder::Inline(const Computation& callee, const Operands& operands,
                                       NormalGraph& graph) {
  std::vector<Tree> arguments;
  for (const Tree* operand : operands) arguments.push_back(*operand);
  return Run(callee, arguments, graph);
}

// A composite that names an op of the IR becomes that op; any other becomes its decomposition.
Result<Tree> NormalFormBuilder::EvaluateComposite(const Instr& instr, const Operands& operands,
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

Result<Tree> NormalFormBuilder::EvaluateCustomCall(const Instr& instr, const Operands& operands,
                                                   NormalGraph& graph) {
  const CustomCallAttrs& attrs = instr.attrs<CustomCallAttrs>();
  if (IsIdentityCall(attrs.target)) return *operands[0];
  if (IsSortingTopK(attrs)) return EvaluateApproxTopK(instr, operands, graph);
  if (attrs.target != kToLocal && attrs.target != kToGlobal)
    return EvaluatePlain(instr, operands, graph);
  Instr* call = ShardCall(graph, attrs.target, FlatShape(instr.shape()), Leaves(operands),
                          ShardingsOf(instr));
  return Results(call, instr.shape(), graph);
}

// A sort of all operands except the initial values, then a slice of the first elements of each.
Result<Tree> NormalFormBuilder::EvaluateApproxTopK(const Instr& instr, const Operands& operands,
                                                   NormalGraph& graph) {
  const AttrValue* dimension = Find(instr.attrs<CustomCallAttrs>().backend_dict, "reduction_dim");
  std::vector<Instr*> leaves = Leaves(operands);
  leaves.resize(leaves.size() / 2);
  bool understood = dimension != nullptr && dimension->As<IntAttr>() != nullptr &&
                    instr.called().size() == 1 && instr.shape().IsTuple() &&
                    instr.shape().elements().size() == leaves.size() && !leaves.empty();
  if (!understood) return EvaluatePlain(instr, operands, graph);
  TOK_TRY(Computation * comparator, NormalCallee(*instr.called(0)));
  std::vector<Shape> shapes;
  for (const Instr* leaf : leaves) shapes.push_back(leaf->shape());
  Shape sorted_shape = Shape::Tuple(shapes);
  SortAttrs attrs{.dimension = dimension->As<IntAttr>()->value, .is_stable = false};
  Instr* sort = graph.Make(Op::kSort, sorted_shape, leaves, attrs, {comparator});
  Tree sorted = Results(sort, sorted_shape, graph);
  for (size_t i = 0; i < leaves.size(); ++i) {
    const Shape& shape = instr.shape().elements()[i];
    SliceAttrs first{Dims(shape.rank(), 0), shape.dims(), Dims(shape.rank(), 1)};
    sorted.elements[i].leaf =
        graph.Make(Op::kSlice, shape.WithoutLayout(), {sorted.elements[i].leaf}, first);
  }
  return sorted;
}

// As bytecode and HLO represent it: into local shapes, through the body, and back.
Result<Tree> NormalFormBuilder::EvaluateManual(const Instr& instr, const Operands& operands,
                                               NormalGraph& graph) {
  const ManualComputationAttrs& attrs = instr.attrs<ManualComputationAttrs>();
  const Computation& body = *instr.called(0);
  std::string axes = ManualAxesText(attrs.manual_axes);
  std::vector<Tree> arguments;
  if (!operands.empty()) {
    std::vector<Shape> shapes;
    for (const Instr* parameter : body.parameters())
      shapes.push_back(parameter->shape().WithoutLayout());
    bool single = shapes.size() == 1;
    Shape local = single ? shapes[0] : Shape::Tuple(shapes);
    Instr* call = ShardCall(graph, kToLocal, local, Leaves(operands),
                            ShardingsText(attrs.in_shardings) + axes);
    Tree results = Results(call, local, graph);
    arguments = single ? std::vector<Tree>{results} : results.elements;
  }
  TOK_TRY(Tree result, Run(body, arguments, graph));
  std::vector<Instr*> leaves;
  Flatten(result, leaves);
  if (leaves.empty()) return result;
  Instr* call = ShardCall(graph, kToGlobal, FlatShape(instr.shape()), leaves,
                          ShardingsText(attrs.out_shardings) + axes);
  return Results(call, instr.shape(), graph);
}

}  // namespace tokamak
