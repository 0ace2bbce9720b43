// Inlines the bodies of all fusions and tags each instruction with its former fusion, so that the
// planner treats these fusions like any other plan.
//
//   before                                          after
//   f = f32[4] fusion(x), calls=body                a = f32[4] exponential(x)     tag 0
//   body: e = exponential(p), ROOT n = negate(e)    b = f32[4] negate(a)          tag 0
//
// Linear in the program and the bodies.

#include <map>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "analysis/running_computations.h"
#include "rewrite/bodies.h"
#include "rewrite/pass_functions.h"
#include "xla_rules/facts.h"

namespace tokamak {
namespace {

// Numbers the connected components of an inlined body: parts without a common array.
std::unordered_map<const Instr*, int> PartsOfBody(const std::vector<Instr*>& made) {
  std::unordered_map<const Instr*, size_t> numbers_of;
  for (size_t i = 0; i < made.size(); ++i) numbers_of[made[i]] = i;
  std::vector<size_t> above(made.size());
  std::iota(above.begin(), above.end(), size_t{0});
  auto first_of = [&](size_t i) {
    while (above[i] != i) i = above[i] = above[above[i]];
    return i;
  };
  for (size_t i = 0; i < made.size(); ++i) {
    if (made[i]->op() == Op::kTuple) continue;
    for (const Instr* operand : made[i]->operands()) {
      if (operand->shape().IsScalar() && !numbers_of.contains(operand)) continue;
      // The first consumer of each array, so that consumers of one array are in one part.
      size_t other = numbers_of.try_emplace(operand, i).first->second;
      above[first_of(i)] = first_of(other);
    }
  }
  std::map<size_t, int> numbers;
  std::unordered_map<const Instr*, int> parts;
  for (size_t i = 0; i < made.size(); ++i)
    parts[made[i]] =
        numbers.try_emplace(first_of(i), static_cast<int>(numbers.size())).first->second;
  return parts;
}

// Replaces get-tuple-element uses of the tuple by its operands. Returns the instructions that
// became unused.
std::vector<Instr*> Bypass(Instr* tuple) {
  std::vector<Instr*> unused;
  Computation* parent = tuple->parent();
  for (Instr* user : fuse::DistinctUsers(*tuple)) {
    if (user->op() != Op::kGetTupleElement || user == parent->root()) continue;
    if (IsPinned(*user)) continue;
    parent->ReplaceUses(user,
                        tuple->operand(static_cast<size_t>(user->attrs<TupleIndexAttrs>().index)));
    unused.push_back(user);
  }
  return unused;
}

// Returns the tags of the computation's instructions by id; empty if it has no fusion.
std::vector<FusionTag> InlineIn(Computation& computation, PassContext& context) {
  std::vector<Instr*> order, removed;
  std::vector<FusionTag> tags;
  auto append = [&](Instr* instr, FusionTag tag) {
    order.push_back(instr);
    tags.push_back(tag);
  };
  int& count = context.fusion_tags.count;
  for (Instr* instr : computation.PostOrder()) {
    if (instr->op() != Op::kFusion) {
      append(instr, {});
      continue;
    }
    std::vector<Instr*> made;
    Instr* root = PasteBody(*instr->called(0), instr->operands(), computation, made);
    std::unordered_map<const Instr*, int> parts;
    if (fuse::IsHorizontal(*instr)) parts = PartsOfBody(made);
    for (Instr* copy : made) {
      auto part = parts.find(copy);
      append(copy, {count, part == parts.end() ? 0 : part->second});
    }
    ++count;
    context.Accepted("call.inlined-fusion", *instr, root);
    computation.ReplaceUses(instr, root);
    removed.push_back(instr);
    if (root->op() != Op::kTuple) continue;
    for (Instr* unused : Bypass(root)) removed.push_back(unused);
    if (root->users().empty() && computation.root() != root) removed.push_back(root);
  }
  if (removed.empty()) return {};
  // Users before operands: a tuple is removed after its get-tuple-elements.
  for (size_t left = removed.size(); !removed.empty(); left = removed.size()) {
    std::erase_if(removed, [&](Instr* instr) {
      if (!instr->users().empty()) return false;
      computation.Remove(instr);
      return true;
    });
    if (removed.size() == left) break;
  }
  std::vector<Instr*> kept;
  std::vector<FusionTag> kept_tags;
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i]->is_removed()) continue;
    kept.push_back(order[i]);
    kept_tags.push_back(tags[i]);
  }
  computation.SetOrder(kept);  // ids are the positions in this order
  return kept_tags;
}

}  // namespace

// Removes all fusions from computations that execute step by step. Instructions of one fusion get
// one tag in context.fusion_tags; a horizontal fusion gets one tag for each part that shares no
// array with the others.
Result<Changed> InlineFusions(Module& module, PassContext& context) {
  std::unordered_map<const Computation*, size_t> numbers;
  for (const auto& computation : module.computations())
    numbers.try_emplace(computation.get(), numbers.size());
  context.fusion_tags = {};
  context.fusion_tags.of.resize(numbers.size());
  for (Computation* computation : RunningComputations(module))
    context.fusion_tags.of[numbers.at(computation)] = InlineIn(*computation, context);
  return context.fusion_tags.count > 0 ? Changed::kYes : Changed::kNo;
}

}  // namespace tokamak
