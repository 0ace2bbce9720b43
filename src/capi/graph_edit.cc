#include "capi/graph_edit.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "analysis/effects.h"
#include "rewrite/replace.h"
#include "support/near_names.h"

namespace tokamak {
namespace {

std::string Shown(const Instr& instr) {
  return fmt::format("{} ({})", instr.name(), ToString(instr.shape()));
}

// Copies the computations of another module into a program.
class FragmentImporter {
 public:
  FragmentImporter(const Module& from, GraphProgram& to)
      : from_(from), program_(to), to_(to.module()) {}

  // The value of the entry's root, with `arguments` for its parameters.
  Instr* Import(std::span<Instr* const> arguments, Computation& into) {
    return Paste(*from_.entry(), arguments, into);
  }

 private:
  using Copies = std::unordered_map<const Instr*, Instr*>;

  Instr* Paste(const Computation& from, std::span<Instr* const> arguments, Computation& into) {
    Copies copies;
    for (size_t i = 0; i < arguments.size(); ++i) copies.emplace(from.parameter(i), arguments[i]);
    for (const Instr* instr : from.PostOrder())
      if (instr->op() != Op::kParameter) copies.emplace(instr, Copy(*instr, into, copies));
    return copies.at(from.root());
  }

  Instr* Copy(const Instr& instr, Computation& into, const Copies& copies) {
    std::vector<Instr*> operands;
    for (const Instr* operand : instr.operands()) operands.push_back(copies.at(operand));
    std::vector<Computation*> called;
    for (const Computation* callee : instr.called()) called.push_back(CopyOf(*callee));
    Instr* copy =
        into.Append(instr.op(), instr.shape(), std::move(operands), instr.attrs(), instr.name());
    if (!called.empty()) copy->set_called(std::move(called));
    copy->set_captures(instr.captures());
    copy->set_origins(Imported(instr.origins()));
    if (instr.has_extras()) {
      const InstrExtras& extras = instr.extras();
      copy->mutable_extras().frontend_attributes = extras.frontend_attributes;
      copy->mutable_extras().discardable = extras.discardable;
      copy->mutable_extras().backend_config = extras.backend_config;
      for (const Instr* before : extras.control_predecessors)
        copy->AddControlPredecessor(copies.at(before));
    }
    return copy;
  }

  Computation* CopyOf(const Computation& from) {
    if (auto known = computations_.find(&from); known != computations_.end()) return known->second;
    Computation* to = to_.AddComputation(program_.UniqueComputationName(from.name()));
    to->is_public = false;
    computations_.emplace(&from, to);
    std::vector<Instr*> parameters;
    for (const Instr* parameter : from.parameters())
      parameters.push_back(to->AppendParameter(static_cast<int64_t>(parameters.size()),
                                               parameter->shape(), parameter->name()));
    to->set_root(Paste(from, parameters, *to));
    to->results = from.results;
    made_.push_back(to);
    return to;
  }

  FrameId Imported(FrameId id) {
    if (id == FrameId::kNone) return id;
    auto known = frames_.find(id);
    if (known != frames_.end()) return known->second;
    Frame frame = from_.origins().frame(id);
    frame.caller = Imported(frame.caller);
    return frames_[id] = to_.origins().AddFrame(frame);
  }

  OriginId Imported(OriginId id) {
    if (id == OriginId::kNone) return id;
    OriginId imported = OriginId::kNone;
    for (const Origin* origin : from_.origins().Of(id)) {
      Origin copy = *origin;
      copy.frame = Imported(origin->frame);
      imported = to_.origins().Merge(imported, to_.origins().Add(copy));
    }
    return imported;
  }

  const Module& from_;
  GraphProgram& program_;
  Module& to_;
  std::unordered_map<const Computation*, Computation*> computations_;
  std::unordered_map<FrameId, FrameId> frames_;

 public:
  std::vector<Computation*> made_;
};

// What a fragment's arguments must be.
Status CheckArguments(const Computation& entry, std::span<Instr* const> operands) {
  if (entry.parameters().size() != operands.size())
    return GraphEditError(fmt::format("add: the function has {} parameters, got {} operands",
                                      entry.parameters().size(), operands.size()),
                          operands.empty() ? nullptr : operands[0]);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i]->parent() != operands[0]->parent())
      return GraphEditError(fmt::format("add: {} and {} are in different computations",
                                        operands[0]->name(), operands[i]->name()),
                            operands[i]);
    if (!Compatible(operands[i]->shape(), entry.parameter(i)->shape()))
      return GraphEditError(fmt::format("add: operand {}, {}, is a {} in the function", i,
                                        Shown(*operands[i]), ToString(entry.parameter(i)->shape())),
                            operands[i]);
  }
  return Ok();
}

Result<std::vector<Instr*>> GetAll(const GraphProgram& program, std::span<const int64_t> ids,
                                   std::string_view edit) {
  std::vector<Instr*> instrs;
  for (int64_t id : ids) {
    TOK_TRY(Instr * instr, program.Get(id, edit));
    instrs.push_back(instr);
  }
  return instrs;
}

// Everything that the instruction depends on, itself included, in its computation.
std::unordered_set<const Instr*> DependencesOf(const Instr& instr) {
  std::unordered_set<const Instr*> found = {&instr};
  std::vector<const Instr*> open = {&instr};
  while (!open.empty()) {
    const Instr* next = open.back();
    open.pop_back();
    for (const Instr* operand : next->operands())
      if (found.insert(operand).second) open.push_back(operand);
    for (const Instr* before : next->extras().control_predecessors)
      if (found.insert(before).second) open.push_back(before);
  }
  return found;
}

Status CheckReplacement(const Instr& from, const Instr& to, std::string_view edit) {
  if (from.parent() != to.parent())
    return GraphEditError(
        fmt::format("{}: {} is in the computation {}, {} in {}", edit, from.name(),
                    from.parent()->name(), to.name(), to.parent()->name()),
        &from);
  if (!(from.shape() == to.shape()))
    return GraphEditError(
        fmt::format("{}: {} cannot stand for {}: the shapes differ", edit, Shown(to), Shown(from)),
        &from);
  return Ok();
}

// Whether the instruction has not been used and has said nothing yet, as after AddFragment.
bool IsFresh(const Instr& to) {
  return to.users().empty() && !to.has_extras() && to.parent()->root() != &to;
}

void TakeOver(Instr& from, Instr* to) {
  HandOn(from, to, IsFresh(*to));
  from.parent()->ReplaceUses(&from, to);
  if (from.parent()->root() == &from) from.parent()->set_root(to);
}

// Removes the instruction, which the user replaced, and what only it used.
void RemoveWithOperands(Instr& instr) {
  if (instr.op() == Op::kParameter || !instr.users().empty()) return;
  Effects effects(*instr.parent()->module());
  std::vector<Instr*> open(instr.operands().begin(), instr.operands().end());
  instr.parent()->Remove(&instr);
  while (!open.empty()) {
    Instr* next = open.back();
    open.pop_back();
    bool is_call =
        next->op() == Op::kCall || next->op() == Op::kWhile || next->op() == Op::kConditional;
    bool is_needed = next->is_removed() || !next->users().empty() ||
                     next->is_control_predecessor() || next->parent()->root() == next;
    if (is_needed || !(IsRemovable(*next) || (is_call && !effects.Of(*next)))) continue;
    open.insert(open.end(), next->operands().begin(), next->operands().end());
    next->parent()->Remove(next);
  }
}

// Uses of the elements of a tuple become uses of values.
Status ReplaceElements(Instr& from, std::span<Instr* const> values) {
  const std::vector<Shape>& shapes = from.shape().elements();
  if (!from.shape().IsTuple() || shapes.size() != values.size())
    return GraphEditError(
        fmt::format("replace: {} cannot be replaced by {} values", Shown(from), values.size()),
        &from);
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i]->parent() != from.parent() || !(values[i]->shape() == shapes[i]))
      return GraphEditError(fmt::format("replace: {} cannot stand for element {} of {}",
                                        Shown(*values[i]), i, Shown(from)),
                            &from);
  std::vector<Instr*> users(from.users().begin(), from.users().end());
  for (Instr* user : users) {
    if (user->op() != Op::kGetTupleElement || user->is_removed()) continue;
    TakeOver(*user, values[static_cast<size_t>(user->attrs<TupleIndexAttrs>().index)]);
    if (user->users().empty() && IsRemovable(*user)) user->parent()->Remove(user);
  }
  if (!from.users().empty() || from.parent()->root() == &from) {
    Instr* tuple = from.parent()->Append(Op::kTuple, from.shape(), {values.begin(), values.end()});
    TakeOver(from, tuple);
  }
  return Ok();
}

}  // namespace

Result<std::vector<int64_t>> AddFragment(GraphProgram& program, const GraphFragment& fragment) {
  const Computation* entry = fragment.module->entry();
  if (entry == nullptr) return GraphEditError("add: the function has no entry computation");
  if (!fragment.module->meshes.empty())
    return GraphEditError("add: the function has shardings over a mesh");
  TOK_TRY(std::vector<Instr*> operands, GetAll(program, fragment.operands, "add"));
  TOK_RETURN_IF_ERROR(CheckArguments(*entry, operands));
  Computation* into = operands.empty() ? program.module().entry() : operands[0]->parent();
  if (operands.empty() && fragment.beside >= 0) {
    TOK_TRY(Instr * beside, program.Get(fragment.beside, "add"));
    into = beside->parent();
  }
  if (into == nullptr) return GraphEditError("add: the program has no entry computation");
  FragmentImporter importer(*fragment.module, program);
  Instr* root = importer.Import(operands, *into);
  std::vector<Instr*> results = {root};
  // A tuple that the fragment made; that of an operand is one value.
  bool is_own = entry->root()->op() == Op::kTuple;
  if (is_own) {
    results.assign(root->operands().begin(), root->operands().end());
    into->Remove(root);
  }
  // Numbers are given in program order, and pointers change.
  std::vector<Computation*> edited = importer.made_;
  edited.push_back(into);
  InstrMap<int64_t> index(*into, -1);
  std::vector<Instr*> order = into->PostOrder();
  for (size_t i = 0; i < order.size(); ++i) index[order[i]] = static_cast<int64_t>(i);
  std::vector<size_t> positions;
  for (const Instr* result : results) positions.push_back(static_cast<size_t>(index[result]));
  TOK_RETURN_IF_ERROR(program.Finish("add", edited));
  std::vector<Instr*> instrs = into->Instrs();
  std::vector<int64_t> numbers;
  for (size_t position : positions) numbers.push_back(program.IdOf(*instrs[position]));
  return numbers;
}

Status ReplaceInstr(GraphProgram& program, int64_t from_id, std::span<const int64_t> to_ids) {
  TOK_TRY(Instr * from, program.Get(from_id, "replace"));
  TOK_TRY(std::vector<Instr*> to, GetAll(program, to_ids, "replace"));
  Computation* computation = from->parent();
  for (const Instr* value : to)
    if (value->parent() == computation && DependencesOf(*value).contains(from) && value != from)
      return GraphEditError(fmt::format("replace: {} depends on {}; insert it after {} instead",
                                        value->name(), from->name(), from->name()),
                            from);
  if (to.size() == 1) {
    if (to[0] == from) return Ok();
    TOK_RETURN_IF_ERROR(CheckReplacement(*from, *to[0], "replace"));
    TakeOver(*from, to[0]);
  } else {
    TOK_RETURN_IF_ERROR(ReplaceElements(*from, to));
  }
  RemoveWithOperands(*from);
  return program.Finish("replace", {&computation, 1});
}

Status ReplaceUses(GraphProgram& program, int64_t from_id, int64_t to_id,
                   std::span<const int64_t> user_ids) {
  TOK_TRY(Instr * from, program.Get(from_id, "insert"));
  TOK_TRY(Instr * to, program.Get(to_id, "insert"));
  TOK_RETURN_IF_ERROR(CheckReplacement(*from, *to, "insert"));
  TOK_TRY(std::vector<Instr*> users, GetAll(program, user_ids, "insert"));
  bool all = users.empty();
  if (all) {
    std::unordered_set<const Instr*> before = DependencesOf(*to);
    for (Instr* user : from->users())
      if (!before.contains(user)) users.push_back(user);
    if (from->parent()->root() == from) from->parent()->set_root(to);
  }
  for (Instr* user : users) {
    bool uses = false;
    for (size_t i = 0; i < user->operand_count(); ++i) {
      if (user->operand(i) != from) continue;
      user->set_operand(i, to);
      uses = true;
    }
    if (!uses && !all)
      return GraphEditError(fmt::format("insert: {} does not use {}", user->name(), from->name()),
                            user);
  }
  Computation* computation = from->parent();
  return program.Finish("insert", {&computation, 1});
}

Status SetOperand(GraphProgram& program, int64_t user_id, size_t i, int64_t operand_id) {
  TOK_TRY(Instr * user, program.Get(user_id, "set operand"));
  TOK_TRY(Instr * operand, program.Get(operand_id, "set operand"));
  if (i >= user->operand_count())
    return GraphEditError(fmt::format("set operand: {} has {} operands, there is no operand {}",
                                      user->name(), user->operand_count(), i),
                          user);
  if (operand->parent() != user->parent())
    return GraphEditError(fmt::format("set operand: {} and {} are in different computations",
                                      user->name(), operand->name()),
                          user);
  user->set_operand(i, operand);
  Computation* computation = user->parent();
  return program.Finish("set operand", {&computation, 1});
}

Status RemoveInstr(GraphProgram& program, int64_t id) {
  TOK_TRY(Instr * instr, program.Get(id, "remove"));
  std::string why;
  if (instr->parent()->root() == instr) why = "is the result of " + instr->parent()->name();
  if (instr->is_control_predecessor()) why = "has control successors";
  if (!instr->users().empty()) why = "is used by " + instr->users()[0]->name();
  if (instr->op() == Op::kParameter) why = "is a parameter";
  if (!why.empty()) return GraphEditError(fmt::format("remove: {} {}", instr->name(), why), instr);
  Computation* computation = instr->parent();
  computation->Remove(instr);
  return program.Finish("remove", {&computation, 1});
}

Status PinInstrs(GraphProgram& program, std::span<const int64_t> ids, std::string_view kind,
                 const std::string& label) {
  if (kind != "never_fuse" && kind != "fuse" && kind != "require_fused")
    return GraphEditError("pin: " + NoneOf(kind, {"never_fuse", "fuse", "require_fused"}));
  if (label.empty()) return GraphEditError("pin: it has no label");
  TOK_TRY(std::vector<Instr*> instrs, GetAll(program, ids, "pin"));
  for (Instr* instr : instrs) {
    if (instr->op() == Op::kParameter)
      return GraphEditError(
          fmt::format("pin: {} is a parameter, which no kernel computes", instr->name()), instr);
    Set(instr->mutable_extras().frontend_attributes, "tokamak." + std::string(kind), {label});
  }
  return Ok();
}

}  // namespace tokamak
