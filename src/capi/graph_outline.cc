// Moves instructions into called computations and back; finds patterns, and paths through calls.

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "analysis/effects.h"
#include "capi/graph_edit.h"
#include "rewrite/bodies.h"
#include "rewrite/replace.h"
#include "rewrite/user_match.h"

namespace tokamak {
namespace {

// The instructions to be moved, in program order, with the values that cross their boundary.
struct OutlinedPart {
  std::vector<Instr*> members, inputs, outputs;
};

// Why the instruction cannot move into a called computation; empty if it can.
std::string WhyNotMoved(const Instr& instr, const Computation& from, const Effects& effects) {
  if (instr.parent() != &from)
    return "is in the computation " + instr.parent()->name() + ", not in " + from.name();
  if (instr.op() == Op::kParameter) return "is a parameter";
  if (IsPinned(instr) && !instr.extras().control_predecessors.empty())
    return "has control predecessors";
  if (instr.is_control_predecessor()) return "has control successors";
  return effects.Of(instr) ? "has a side effect" : "";
}

class Outliner {
 public:
  Outliner(Computation& from, std::unordered_set<const Instr*> members)
      : from_(from), members_(std::move(members)) {}

  Result<OutlinedPart> Find() {
    std::unordered_set<const Instr*> seen_inputs;
    // Instructions outside that depend on a member, with that member.
    std::unordered_map<const Instr*, const Instr*> after;
    for (Instr* instr : from_.PostOrder()) {
      bool is_member = members_.contains(instr);
      for (Instr* operand : instr->operands()) {
        bool from_member = members_.contains(operand);
        if (!is_member && from_member) after.emplace(instr, operand);
        if (from_member) continue;
        if (auto found = after.find(operand); found != after.end()) {
          if (is_member) return BetweenMembers(*found->second, *operand, *instr);
          after.emplace(instr, found->second);
        }
        if (is_member && seen_inputs.insert(operand).second) part_.inputs.push_back(operand);
      }
      if (is_member) AddMember(instr);
    }
    return std::move(part_);
  }

 private:
  static Error BetweenMembers(const Instr& first, const Instr& between, const Instr& last) {
    return GraphEditError(fmt::format("outline: {} depends on {}, which is not among the "
                                      "instructions but depends on {}, which is",
                                      last.name(), between.name(), first.name()),
                          &between);
  }

  void AddMember(Instr* instr) {
    part_.members.push_back(instr);
    bool leaves = from_.root() == instr || std::ranges::any_of(instr->users(), [&](Instr* user) {
                    return !members_.contains(user);
                  });
    if (leaves) part_.outputs.push_back(instr);
  }

  Computation& from_;
  std::unordered_set<const Instr*> members_;
  OutlinedPart part_;
};

Computation* MakeCallee(GraphProgram& program, const OutlinedPart& part, std::string_view name) {
  Computation* callee = program.module().AddComputation(program.UniqueComputationName(name));
  callee->is_public = false;
  std::unordered_map<const Instr*, Instr*> copies;
  for (const Instr* input : part.inputs)
    copies.emplace(input, callee->AppendParameter(static_cast<int64_t>(copies.size()),
                                                  input->shape(), input->name()));
  for (const Instr* member : part.members) {
    std::vector<Instr*> operands;
    for (const Instr* operand : member->operands()) operands.push_back(copies.at(operand));
    copies.emplace(member, CopyTo(*callee, *member, std::move(operands)));
  }
  std::vector<Instr*> results;
  std::vector<Shape> shapes;
  for (const Instr* output : part.outputs) {
    results.push_back(copies.at(output));
    shapes.push_back(output->shape());
  }
  callee->set_root(results.size() == 1
                       ? results[0]
                       : callee->Append(Op::kTuple, Shape::Tuple(std::move(shapes)), results));
  return callee;
}

// The instructions that depend directly on one, across calls.
class Dependents {
 public:
  explicit Dependents(const Module& module) {
    for (const auto& computation : module.computations())
      for (const Instr* caller : computation->Callers())
        for (const Computation* callee : caller->called()) callers_[callee].push_back(caller);
  }

  template <typename Visit>
  void ForEach(const Instr& instr, Visit&& visit) const {
    for (const Instr* user : instr.users()) {
      visit(*user);
      for (size_t i = 0; i < user->called().size(); ++i)
        VisitParameters(instr, *user, *user->called(i), visit);
    }
    if (instr.parent()->root() != &instr) return;
    auto found = callers_.find(instr.parent());
    if (found == callers_.end()) return;
    for (const Instr* caller : found->second) visit(*caller);
  }

 private:
  // Loops and calls pass operand i as parameter i. For others, all parameters count.
  template <typename Visit>
  static void VisitParameters(const Instr& instr, const Instr& user, const Computation& callee,
                              Visit&& visit) {
    bool by_number = callee.parameters().size() == user.operand_count();
    for (size_t i = 0; i < callee.parameters().size(); ++i)
      if (!by_number || user.operand(i) == &instr) visit(*callee.parameter(i));
  }

  std::unordered_map<const Computation*, std::vector<const Instr*>> callers_;
};

}  // namespace

Result<int64_t> Outline(GraphProgram& program, std::span<const int64_t> ids,
                        std::string_view name) {
  if (ids.empty()) return GraphEditError("outline: there are no instructions");
  if (name.empty()) return GraphEditError("outline: the computation has no name");
  TOK_TRY(Instr * first, program.Get(ids[0], "outline"));
  Computation& from = *first->parent();
  Effects effects(program.module());
  std::unordered_set<const Instr*> members;
  for (int64_t id : ids) {
    TOK_TRY(Instr * instr, program.Get(id, "outline"));
    std::string why = WhyNotMoved(*instr, from, effects);
    if (!why.empty())
      return GraphEditError(fmt::format("outline: {} {}", instr->name(), why), instr);
    members.insert(instr);
  }
  TOK_TRY(OutlinedPart part, Outliner(from, std::move(members)).Find());
  if (part.outputs.empty())
    return GraphEditError("outline: nothing uses the instructions", part.members.back());
  Computation* callee = MakeCallee(program, part, name);
  Instr* call = from.Append(Op::kCall, callee->root()->shape(), part.inputs, {}, callee->name());
  call->set_called({callee});
  call->set_origins(part.outputs.back()->origins());
  for (size_t i = 0; i < part.outputs.size(); ++i) {
    Instr* output = part.outputs[i];
    Instr* value = call;
    if (part.outputs.size() > 1) {
      value = from.Append(Op::kGetTupleElement, output->shape(), {call},
                          TupleIndexAttrs{static_cast<int64_t>(i)});
      value->set_origins(output->origins());
    }
    // Also in members, which are removed below.
    from.ReplaceUses(output, value);
    if (from.root() == output) from.set_root(value);
  }
  for (size_t i = part.members.size(); i-- > 0;) from.Remove(part.members[i]);  // users first
  std::vector<Instr*> order = from.PostOrder();
  auto position = std::ranges::find(order, call) - order.begin();
  std::vector<Computation*> edited = {callee, &from};
  TOK_RETURN_IF_ERROR(program.Finish("outline", edited));
  return program.IdOf(*from.Instrs()[static_cast<size_t>(position)]);
}

Status InlineCall(GraphProgram& program, int64_t id) {
  TOK_TRY(Instr * call, program.Get(id, "inline"));
  bool is_call = call->op() == Op::kCall || call->op() == Op::kFusion ||
                 (call->op() == Op::kComposite && call->called().size() == 1);
  if (!is_call)
    return GraphEditError(
        fmt::format("inline: {} is a {}, not a call", call->name(), call->info().name), call);
  if (IsPinned(*call) && !call->extras().control_predecessors.empty())
    return GraphEditError(fmt::format("inline: {} has control predecessors", call->name()), call);
  Computation& into = *call->parent();
  std::vector<Instr*> made;
  Instr* root = PasteBody(*call->called(0), call->operands(), into, made);
  std::vector<Instr*> users(call->users().begin(), call->users().end());
  if (root->op() == Op::kTuple)
    for (Instr* user : users) {
      if (user->op() != Op::kGetTupleElement) continue;
      Instr* value = root->operand(static_cast<size_t>(user->attrs<TupleIndexAttrs>().index));
      into.ReplaceUses(user, value);
      if (into.root() == user) into.set_root(value);
      into.Remove(user);
    }
  into.ReplaceUses(call, root);
  if (into.root() == call) into.set_root(root);
  into.Remove(call);
  RemoveUnused(root);
  Computation* edited = &into;
  return program.Finish("inline", {&edited, 1});
}

Result<std::vector<GraphMatch>> MatchesOf(const GraphProgram& program, const Module& pattern,
                                          bool any_shape) {
  if (pattern.entry() == nullptr) return GraphEditError("match: the pattern has no entry");
  for (const Instr* result : ResultsOfPattern(*pattern.entry()))
    if (result->op() == Op::kParameter)
      return GraphEditError("match: a result of the pattern is a parameter");
  UserMatcher matcher(*pattern.entry(), any_shape ? MatchMode::kAnyShape : MatchMode::kExact);
  auto numbers = [&](const std::vector<Instr*>& instrs) {
    std::vector<int64_t> all;
    for (const Instr* instr : instrs) all.push_back(program.IdOf(*instr));
    return all;
  };
  std::vector<GraphMatch> matches;
  for (const auto& computation : program.module().computations()) {
    if (computation->CountOf(matcher.root_op()) == 0) continue;
    for (Instr* instr : computation->Instrs()) {
      if (instr->op() != matcher.root_op()) continue;
      if (std::optional<UserMatch> match = matcher.Find(instr))
        matches.push_back(
            {numbers(match->roots), numbers(match->variables), numbers(match->inner)});
    }
  }
  return matches;
}

std::vector<int64_t> PathBetween(const GraphProgram& program, int64_t from_id, int64_t to_id) {
  const Instr* from = program.Find(from_id);
  const Instr* to = program.Find(to_id);
  if (from == nullptr || to == nullptr) return {};
  Dependents dependents(program.module());
  std::unordered_map<const Instr*, const Instr*> previous = {{from, nullptr}};
  std::deque<const Instr*> open = {from};
  while (!open.empty() && !previous.contains(to)) {
    const Instr* next = open.front();
    open.pop_front();
    dependents.ForEach(*next, [&](const Instr& user) {
      if (previous.emplace(&user, next).second) open.push_back(&user);
    });
  }
  if (!previous.contains(to)) return {};
  std::vector<int64_t> path;
  for (const Instr* instr = to; instr != nullptr; instr = previous.at(instr))
    path.push_back(program.IdOf(*instr));
  std::ranges::reverse(path);
  return path;
}

}  // namespace tokamak
