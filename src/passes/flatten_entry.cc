// Executables take and return arrays, so tuples at the boundary of the entry are flattened.
//
//   before                                  after
//   p = (f32[4], s32[]) parameter(0)        a = f32[4] parameter(0), b = s32[] parameter(1)
//                                           t = (f32[4], s32[]) tuple(a, b) replaces p
//   ROOT r = (f32[4], (s32[])) tuple(..)    ROOT r = (f32[4], s32[]) tuple(..) of its elements
//
// Linear in the program and the leaves of its tuples.

#include <algorithm>

#include "passes/passes.h"
#include "passes/tuples.h"
#include "rewrite/editor.h"
#include "rewrite/replace.h"

namespace tokamak {
namespace {

// Creates one parameter for each leaf of `like`, and the tuples that contain them.
Instr* FlatParameter(const Instr& like, std::vector<Instr*>& parameters) {
  std::vector<Instr*> leaves;
  for (const Shape& leaf : LeavesOf(like.shape())) {
    auto number = static_cast<int64_t>(parameters.size() + leaves.size());
    leaves.push_back(like.parent()->AppendParameter(number, leaf));
    MergeOrigins(leaves.back(), like);
    if (!like.shape().IsTuple()) leaves.back()->set_name(like.name());
  }
  parameters.insert(parameters.end(), leaves.begin(), leaves.end());
  return TupleOfLeaves(like, leaves);
}

Changed FlattenParameters(Module& module, PassContext& context) {
  Computation& entry = *module.entry();
  std::vector<Instr*> before = entry.parameters();
  if (std::ranges::none_of(before, [](const Instr* p) { return p->shape().IsTuple(); }))
    return Changed::kNo;
  // Donation and layouts refer to parameters by number, which have changed.
  module.aliases.clear();
  module.donors.clear();
  module.entry_parameter_layouts.clear();
  std::vector<Instr*> parameters;
  for (Instr* parameter : before) {
    Instr* flat = FlatParameter(*parameter, parameters);
    if (parameter->shape().IsTuple()) context.Accepted("entry.flat-parameter", *parameter, flat);
    entry.ReplaceUses(parameter, flat);
  }
  entry.SetParameters(parameters);
  for (Instr* parameter : before) entry.Remove(parameter);
  return Changed::kYes;
}

Changed FlattenResults(Module& module, PassContext& context) {
  Computation& entry = *module.entry();
  Instr* root = entry.root();
  if (!IsNested(root->shape())) return Changed::kNo;
  std::vector<Instr*> results;
  std::vector<Shape> shapes;
  AddLeaves(root, results);
  for (const Instr* result : results) shapes.push_back(result->shape());
  Instr* flat = Editor::Beside(*root).Make(Op::kTuple, Shape::Tuple(shapes), results);
  context.Accepted("entry.flat-results", *root, flat);
  entry.set_root(flat);
  entry.results.clear();
  module.aliases.clear();
  module.entry_result_layout.reset();
  return Changed::kYes;
}

}  // namespace

// Replaces tuple parameters of the entry by one parameter for each of their arrays, and flattens
// tuples among its results. Drops donations, which refer to parameters by number.
Result<Changed> FlattenEntry(Module& module, PassContext& context) {
  if (module.entry() == nullptr) return Changed::kNo;
  Changed changed = FlattenParameters(module, context) | FlattenResults(module, context);
  if (changed == Changed::kYes) module.entry()->PutInOrder();
  return changed;
}

}  // namespace tokamak
