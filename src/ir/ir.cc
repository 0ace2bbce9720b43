// Instructions, computations and modules. Def-use edges are stored on both sides, and each side
// knows its slot in the other, so that adding, replacing and removing a use takes constant time:
//
//   user.operands_[i] = (operand, k)     <->     operand.users_[k] = (user, i)
//
// Removing swaps the last user into the gap, so the order of users is not program order. Removed
// instructions stay allocated, without operands and attributes, until PutInOrder or SetOrder
// rebuilds the computation: pointers to live instructions stay valid while a pass edits, but not
// across SetOrder, which moves every instruction. Ids are dense positions in creation order; after
// SetOrder they are positions in the new order.

#include "ir/ir.h"

#include <algorithm>

#include "ir/post_order.h"

namespace tokamak {

Computation::Computation(Module* module, std::string name)
    : module_(module), name_(std::move(name)) {}
Computation::~Computation() = default;
Module::Module(std::string name) : name_(std::move(name)) {}
Module::~Module() = default;

const InstrExtras& Instr::extras() const {
  static const InstrExtras none;
  return extras_ == nullptr ? none : *extras_;
}

InstrExtras& Instr::mutable_extras() {
  if (extras_ == nullptr) extras_ = std::make_unique<InstrExtras>();
  return *extras_;
}

void Instr::set_called(std::vector<Computation*> called) {
  if (called_ != nullptr) --parent_->caller_count_;
  if (!called.empty()) ++parent_->caller_count_;
  called_ =
      called.empty() ? nullptr : std::make_unique<std::vector<Computation*>>(std::move(called));
}

// Adds this instruction to the users of operand i, which is set.
void Instr::Link(size_t i) {
  Instr* operand = operands_.instrs()[i];
  operands_.numbers()[i] = static_cast<uint32_t>(operand->users_.size());
  operand->users_.Add(this, static_cast<uint32_t>(i));
}

// The last user replaces this one in the list.
void Instr::Unlink(size_t i) {
  UseList& users = operands_.instrs()[i]->users_;
  size_t position = operands_.numbers()[i];
  TOK_CHECK(position < users.size() && users.instrs()[position] == this,
            "a use is missing from its operand's users");
  Instr* last = users.instrs().back();
  uint32_t slot = users.numbers().back();
  users.instrs()[position] = last;
  users.numbers()[position] = slot;
  last->operands_.numbers()[slot] = static_cast<uint32_t>(position);
  users.DropLast();
}

void Instr::set_operand(size_t i, Instr* operand) {
  Unlink(i);
  operands_.instrs()[i] = operand;
  Link(i);
}

void Instr::AddOperand(Instr* operand) {
  operands_.Add(operand, 0);
  Link(operands_.size() - 1);
}

void Instr::AddControlPredecessor(Instr* before) {
  mutable_extras().control_predecessors.push_back(before);
  before->is_control_predecessor_ = true;
}

Instr* Computation::Append(Op op, Shape shape, std::vector<Instr*> operands, Attrs attrs,
                           std::string name) {
  Instr& instr = instrs_.Add();
  all_.push_back(&instr);
  ++counts_[static_cast<size_t>(op)];
  instr.id_ = InstrId(instrs_.size() - 1);
  instr.op_ = op;
  instr.shape_ = std::move(shape);
  instr.attrs_ = std::move(attrs);
  instr.name_ = std::move(name);
  instr.parent_ = this;
  instr.operands_.Reserve(operands.size());
  for (Instr* operand : operands) instr.AddOperand(operand);
  return &instr;
}

Instr* Computation::AppendParameter(int64_t number, Shape shape, std::string name) {
  Instr* instr = Append(Op::kParameter, std::move(shape), {}, ParameterAttrs{.number = number},
                        std::move(name));
  size_t index = static_cast<size_t>(number);
  if (parameters_.size() <= index) parameters_.resize(index + 1, nullptr);
  parameters_[index] = instr;
  return instr;
}

std::vector<Instr*> Computation::Instrs() const {
  if (removed_count_ == 0) return all_;
  std::vector<Instr*> list;
  list.reserve(size());
  for (Instr* instr : all_)
    if (!instr->removed_) list.push_back(instr);
  return list;
}

std::vector<Instr*> Computation::Callers() const {
  std::vector<Instr*> list;
  if (caller_count_ == 0) return list;
  for (Instr* instr : all_)
    if (instr->called_ != nullptr) list.push_back(instr);
  return list;
}

std::vector<Instr*> Computation::PostOrder() const {
  PostOrderWalk walk(instrs_.size());
  for (Instr* instr : all_)
    if (!instr->removed_) walk.Visit(instr);
  return walk.TakeOrder();
}

// Linear in the uses of `from`; control dependences are rare and searched in the whole computation.
void Computation::ReplaceUses(Instr* from, Instr* to) {
  if (from == to) return;
  to->users_.Reserve(to->users_.size() + from->users_.size());
  for (size_t k = 0; k < from->users_.size(); ++k) {
    Instr* user = from->users_.instrs()[k];
    size_t slot = from->users_.numbers()[k];
    user->operands_.instrs()[slot] = to;
    user->Link(slot);
  }
  from->users_.Clear();
  if (root_ == from) root_ = to;
  if (!from->is_control_predecessor_) return;
  instrs_.ForEach([&](Instr& instr) {
    if (!instr.has_extras()) return;
    for (Instr*& control : instr.extras_->control_predecessors)
      if (control == from) control = to;
  });
  to->is_control_predecessor_ = true;
  from->is_control_predecessor_ = false;
}

void Computation::Remove(Instr* instr) {
  TOK_CHECK(instr->users_.empty() && instr != root_, "an instruction in use was removed");
  for (size_t i = 0; i < instr->operands_.size(); ++i) instr->Unlink(i);
  if (instr->op() == Op::kParameter) {
    for (Instr*& parameter : parameters_)
      if (parameter == instr) parameter = nullptr;
    while (!parameters_.empty() && parameters_.back() == nullptr) parameters_.pop_back();
  }
  instr->operands_.Clear();
  instr->set_called({});
  instr->attrs_ = {};
  instr->extras_ = nullptr;
  instr->removed_ = true;
  ++removed_count_;
  --counts_[static_cast<size_t>(instr->op())];
}

void Computation::SetParameters(std::vector<Instr*> parameters) {
  parameters_ = std::move(parameters);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    ParameterAttrs attrs = parameters_[i]->attrs<ParameterAttrs>();
    attrs.number = static_cast<int64_t>(i);
    parameters_[i]->set_attrs(std::move(attrs));
  }
}

// Moves all instructions into fresh storage in this order and translates every pointer of the
// computation. Pointers held elsewhere become invalid.
void Computation::SetOrder(const std::vector<Instr*>& order) {
  TOK_CHECK(order.size() == size(), "an order of other instructions than there are");
  std::vector<Instr*> moved(instrs_.size(), nullptr);
  auto to_new = [&](Instr*& instr) {
    instr = moved[static_cast<size_t>(instr->id_)];
    TOK_CHECK(instr != nullptr, "an order leaves out an instruction that is used");
  };
  InstrStore fresh;
  for (Instr* instr : order) {
    size_t old = static_cast<size_t>(instr->id_);
    TOK_CHECK(moved[old] == nullptr, "an order names an instruction twice");
    moved[old] = &fresh.Add(std::move(*instr));
  }
  // The old objects are moved from but keep their ids, which translate the pointers.
  fresh.ForEach([&](Instr& instr) {
    for (Instr*& operand : instr.operands_.instrs()) to_new(operand);
    for (Instr*& user : instr.users_.instrs()) to_new(user);
    if (instr.extras_ != nullptr)
      for (Instr*& before : instr.extras_->control_predecessors) to_new(before);
  });
  for (Instr*& parameter : parameters_)
    if (parameter != nullptr) to_new(parameter);
  if (root_ != nullptr) to_new(root_);
  all_.clear();
  fresh.ForEach([&](Instr& instr) {
    instr.id_ = InstrId(all_.size());
    all_.push_back(&instr);
  });
  instrs_ = std::move(fresh);
  removed_count_ = 0;
}

void Computation::PutInOrder() {
  auto is_in_order = [&] {
    bool holds = true;
    instrs_.ForEach([&](const Instr& instr) {
      for (const Instr* operand : instr.operands()) holds &= operand->id_ < instr.id_;
      for (const Instr* before : instr.extras().control_predecessors)
        holds &= before->id_ < instr.id_;
    });
    return holds;
  };
  if (removed_count_ > 0 || !is_in_order()) SetOrder(PostOrder());
}

Computation* Module::AddComputation(std::string name) {
  computations_.push_back(std::make_unique<Computation>(this, std::move(name)));
  return computations_.back().get();
}

Computation* Module::FindComputation(std::string_view name) const {
  for (const auto& computation : computations_)
    if (computation->name() == name) return computation.get();
  return nullptr;
}

size_t Module::CountInstrs() const {
  size_t count = 0;
  for (const auto& computation : computations_) count += computation->size();
  return count;
}

void Module::RemoveComputation(Computation* computation) {
  std::erase_if(computations_, [&](const auto& owned) { return owned.get() == computation; });
}

void Module::KeepComputations(const std::vector<bool>& keep) {
  TOK_CHECK(keep.size() == computations_.size(), "a choice among other computations");
  size_t kept = 0;
  for (size_t i = 0; i < keep.size(); ++i)
    if (keep[i]) computations_[kept++] = std::move(computations_[i]);
  computations_.resize(kept);
}

void Module::OrderComputations(const std::vector<size_t>& positions) {
  TOK_CHECK(positions.size() == computations_.size(), "an order of another number of computations");
  std::vector<std::unique_ptr<Computation>> ordered(positions.size());
  for (size_t i = 0; i < positions.size(); ++i) ordered[positions[i]] = std::move(computations_[i]);
  computations_ = std::move(ordered);
}

// Iterative depth-first search, because call chains may be deep. Empty if the calls have a cycle.
std::vector<Computation*> Module::CalleesFirst() const {
  std::unordered_map<const Computation*, bool> done;  // false: on the stack
  std::vector<Computation*> order;
  struct Open {
    Computation* computation;
    std::vector<Computation*> callees;
    size_t next = 0;
  };
  auto open = [](Computation* computation) {
    Open entry{computation, {}, 0};
    for (Instr* instr : computation->Callers())
      entry.callees.insert(entry.callees.end(), instr->called().begin(), instr->called().end());
    return entry;
  };
  for (const auto& start : computations_) {
    if (done.contains(start.get())) continue;
    std::vector<Open> stack;
    done[start.get()] = false;
    stack.push_back(open(start.get()));
    while (!stack.empty()) {
      Open& top = stack.back();
      if (top.next == top.callees.size()) {
        done[top.computation] = true;
        order.push_back(top.computation);
        stack.pop_back();
        continue;
      }
      Computation* callee = top.callees[top.next++];
      auto it = done.find(callee);
      if (it == done.end()) {
        done[callee] = false;
        stack.push_back(open(callee));
      } else if (!it->second) {
        return {};
      }
    }
  }
  return order;
}

std::string Describe(const Instr& instr) {
  std::string name =
      instr.name().empty() ? "%" + std::to_string(static_cast<uint32_t>(instr.id())) : instr.name();
  return name + " = " + ToString(instr.shape()) + " " + std::string(instr.info().name);
}

TextSpan SpanOf(const Instr& instr) {
  TextSpan span;
  if (instr.parent() != nullptr && instr.parent()->module() != nullptr)
    span.file = instr.parent()->module()->file;
  if (instr.pos().line > 0) {
    span.line = static_cast<int>(instr.pos().line);
    span.column = static_cast<int>(instr.pos().column);
  } else if (instr.pos().column > 0) {
    span.offset = instr.pos().column;
  }
  return span;
}

}  // namespace tokamak
