#include "rewrite/bodies.h"

#include <algorithm>

#include "ir/clone.h"
#include "rewrite/editor.h"
#include "rewrite/replace.h"

namespace tokamak {

CallCounts::CallCounts(const Module& module) {
  for (const auto& computation : module.computations()) {
    if (computation->is_public || computation.get() == module.entry()) ++counts_[computation.get()];
    for (const Instr* instr : computation->Instrs()) Add(*instr);
  }
}

void CallCounts::Add(const Instr& caller) {
  for (const Computation* callee : caller.called()) ++counts_[callee];
}

void CallCounts::Remove(const Instr& caller) {
  for (const Computation* callee : caller.called()) --counts_[callee];
}

Computation* CallCounts::Own(Instr* caller, size_t k) {
  Computation* callee = caller->called(k);
  if (counts_[callee] <= 1) return callee;
  --counts_[callee];
  Computation* copy = CloneComputation(*callee, callee->name());
  copy->is_public = false;
  for (const Instr* instr : copy->Instrs()) Add(*instr);
  counts_[copy] = 1;
  std::vector<Computation*> called(caller->called().begin(), caller->called().end());
  called[k] = copy;
  caller->set_called(std::move(called));
  return copy;
}

bool HasOp(const Module& module, Op op) {
  for (const auto& computation : module.computations())
    if (computation->CountOf(op) > 0) return true;
  return false;
}

bool IsPinned(const Instr& instr) {
  return instr.is_control_predecessor() || !instr.extras().control_predecessors.empty() ||
         IsMarked(instr);
}

bool IsMarked(const Instr& instr) {
  const InstrExtras& extras = instr.extras();
  return extras.sharding || extras.sharding_rule || !extras.frontend_attributes.empty() ||
         !extras.discardable.empty();
}

bool IsPinned(const Computation& callee, std::span<Instr* const> arguments) {
  if (!callee.execution_thread.empty()) return true;
  for (const ResultInfo& result : callee.results)
    if (result.sharding) return true;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Instr& parameter = *callee.parameter(i);
    if (parameter.is_control_predecessor()) return true;
    if (parameter.extras().sharding &&
        parameter.extras().sharding != arguments[i]->extras().sharding)
      return true;
  }
  return false;
}

Instr* PasteBody(const Computation& from, std::span<Instr* const> arguments, Computation& to,
                 std::vector<Instr*>& made) {
  InstrMap<Instr*> copies(from, nullptr);
  for (size_t i = 0; i < arguments.size(); ++i) copies[from.parameter(i)] = arguments[i];
  for (const Instr* instr : from.PostOrder()) {
    if (instr->op() == Op::kParameter) continue;
    std::vector<Instr*> operands;
    for (const Instr* operand : instr->operands()) operands.push_back(copies[operand]);
    Instr* copy = CopyTo(to, *instr, std::move(operands));
    for (const Instr* before : instr->extras().control_predecessors)
      copy->AddControlPredecessor(copies[before]);
    copies[instr] = copy;
    made.push_back(copy);
  }
  return copies[from.root()];
}

void KeepOrigins(const Instr& call, Instr* value) {
  if (call.origins() == OriginId::kNone) return;
  MergeOrigins(value, call);
  if (value->op() != Op::kTuple) return;
  for (Instr* element : value->operands()) MergeOrigins(element, call);
}

Instr* ElementOf(Instr* tuple, size_t i) {
  if (tuple->op() == Op::kTuple) return tuple->operand(i);
  return Editor::Beside(*tuple).Element(tuple, i);
}

void RemoveAllBut(Computation& computation, const InstrMap<char>& live) {
  std::vector<Instr*> order = computation.PostOrder();
  for (size_t i = order.size(); i-- > 0;)  // users first
    if (live[order[i]] == 0 && order[i]->op() != Op::kParameter) computation.Remove(order[i]);
}

ProgramOrder::ProgramOrder(Computation& computation)
    : computation_(computation), before_(computation.PostOrder()) {}

void ProgramOrder::Put(const Instr* old, std::vector<Instr*> made) {
  instead_[old] = std::move(made);
}

void ProgramOrder::Finish() {
  if (instead_.empty()) return;
  std::vector<Instr*> order;
  std::vector<char> appended(computation_.id_limit(), 0);
  // A positioned instruction may itself have been replaced later. Uses a worklist to avoid
  // recursion.
  std::vector<Instr*> open(before_.rbegin(), before_.rend());
  auto append_all = [&] {
    while (!open.empty()) {
      Instr* instr = open.back();
      open.pop_back();
      if (auto it = instead_.find(instr); it != instead_.end()) {
        open.insert(open.end(), it->second.rbegin(), it->second.rend());
        instead_.erase(it);
      }
      char& done = appended[static_cast<size_t>(instr->id())];
      if (instr->is_removed() || done != 0) continue;
      done = 1;
      order.push_back(instr);
    }
  };
  append_all();
  open = computation_.Instrs();
  std::reverse(open.begin(), open.end());
  append_all();
  computation_.SetOrder(order);
}

}  // namespace tokamak
