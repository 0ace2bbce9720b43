#include "capi/graph_program.h"

#include <algorithm>

#include "ir/clone.h"
#include "ir/infer.h"
#include "support/near_names.h"

namespace tokamak {
namespace {

// MLIR text numbers most of its values: "%3".
bool IsNumber(std::string_view name) {
  return std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
}

// An instruction on a cycle of uses or control dependences; null if there is none. Linear.
const Instr* OnCycle(const Computation& computation) {
  std::vector<Instr*> instrs = computation.Instrs();
  InstrMap<int64_t> open_operands(computation, 0);
  std::vector<const Instr*> ready;
  InstrMap<std::vector<const Instr*>> after(computation);
  for (const Instr* instr : instrs) {
    const std::vector<Instr*>& before = instr->extras().control_predecessors;
    open_operands[instr] = static_cast<int64_t>(instr->operand_count() + before.size());
    for (const Instr* predecessor : before) after[predecessor].push_back(instr);
    if (open_operands[instr] == 0) ready.push_back(instr);
  }
  auto finish_one = [&](const Instr* user) {
    if (--open_operands[user] == 0) ready.push_back(user);
  };
  size_t done = 0;
  for (; done < ready.size(); ++done) {
    const Instr* instr = ready[done];
    for (const Instr* user : instr->users()) finish_one(user);
    for (const Instr* user : after[instr]) finish_one(user);
  }
  if (done == instrs.size()) return nullptr;
  return *std::ranges::find_if(instrs, [&](const Instr* i) { return open_operands[i] > 0; });
}

// Private computations that nothing calls.
std::vector<Computation*> UncalledIn(const Module& module) {
  std::unordered_set<const Computation*> called = {module.entry()};
  for (const auto& computation : module.computations())
    for (const Instr* caller : computation->Callers())
      called.insert(caller->called().begin(), caller->called().end());
  std::vector<Computation*> uncalled;
  for (const auto& computation : module.computations())
    if (!computation->is_public && !called.contains(computation.get()))
      uncalled.push_back(computation.get());
  return uncalled;
}

}  // namespace

Error GraphEditError(std::string message, const Instr* at) {
  return MakeError(ErrorCode::kApiArgument, std::move(message),
                   at == nullptr ? TextSpan() : SpanOf(*at));
}

GraphProgram::GraphProgram(std::unique_ptr<Module> module) : module_(std::move(module)) {
  auto add_all = [&](const Computation& computation) {
    for (Instr* instr : computation.Instrs()) Add(*instr);
  };
  if (module_->entry() != nullptr) add_all(*module_->entry());
  for (const auto& computation : module_->computations())
    if (computation.get() != module_->entry()) add_all(*computation);
  for (const Computation* computation : UncalledIn(*module_)) uncalled_.insert(computation->name());
}

void GraphProgram::Add(Instr& instr) {
  ids_.emplace(&instr, static_cast<int64_t>(instrs_.size()));
  instrs_.push_back(&instr);
  instr.set_name(UniqueName(instr));
}

std::string GraphProgram::UniqueName(const Instr& instr) {
  bool is_named = !IsNumber(instr.name());
  std::string name = is_named ? instr.name() : std::string(instr.info().name);
  if (is_named && names_.insert(name).second) return name;
  int64_t& next = next_.try_emplace(name, 1).first->second;
  std::string unique;
  do {
    unique = name + "." + std::to_string(next++);
  } while (!names_.insert(unique).second);
  return unique;
}

GraphProgram GraphProgram::Copy() const {
  GraphProgram copy;
  copy.module_ = CloneModule(*module_);
  copy.instrs_.resize(instrs_.size());
  copy.names_ = names_;
  copy.next_ = next_;
  copy.uncalled_ = uncalled_;
  for (size_t c = 0; c < module_->computations().size(); ++c) {
    // The clone has the same instructions in the same order.
    std::vector<Instr*> from = module_->computations()[c]->Instrs();
    std::vector<Instr*> to = copy.module_->computations()[c]->Instrs();
    for (size_t i = 0; i < from.size(); ++i) {
      int64_t id = ids_.at(from[i]);
      copy.ids_.emplace(to[i], id);
      copy.instrs_[static_cast<size_t>(id)] = to[i];
    }
  }
  return copy;
}

Result<Instr*> GraphProgram::Get(int64_t id, std::string_view edit) const {
  if (Instr* instr = Find(id)) return instr;
  bool is_old = id >= 0 && id < static_cast<int64_t>(instrs_.size());
  return GraphEditError(std::string(edit) + ": " +
                        (is_old ? "instruction number " + std::to_string(id) + " was removed"
                                : "there is no instruction number " + std::to_string(id)));
}

int64_t GraphProgram::FindName(std::string_view name) const {
  for (size_t i = 0; i < instrs_.size(); ++i)
    if (instrs_[i] != nullptr && instrs_[i]->name() == name) return static_cast<int64_t>(i);
  return -1;
}

size_t GraphProgram::IndexOf(const Computation& computation) const {
  const auto& all = module_->computations();
  auto found = std::ranges::find_if(all, [&](const auto& c) { return c.get() == &computation; });
  return static_cast<size_t>(found - all.begin());
}

std::string GraphProgram::UniqueComputationName(std::string_view wanted) const {
  std::string name(wanted);
  for (int64_t i = 1; module_->FindComputation(name) != nullptr; ++i)
    name = std::string(wanted) + "." + std::to_string(i);
  return name;
}

void GraphProgram::Forget(const Instr& instr) {
  auto known = ids_.find(&instr);
  if (known == ids_.end()) return;
  instrs_[static_cast<size_t>(known->second)] = nullptr;
  ids_.erase(known);
}

void GraphProgram::RemoveUncalled() {
  for (std::vector<Computation*> unused = UncalledIn(*module_); !unused.empty();) {
    std::erase_if(unused, [&](const Computation* c) { return uncalled_.contains(c->name()); });
    if (unused.empty()) return;
    for (Computation* computation : unused) {
      for (const Instr* instr : computation->Instrs()) Forget(*instr);
      module_->RemoveComputation(computation);
    }
    unused = UncalledIn(*module_);  // what only those called
  }
}

Status GraphProgram::Finish(std::string_view edit, std::span<Computation* const> edited) {
  // Removed instructions exist until their computation is put in order.
  for (Instr* instr : std::vector<Instr*>(instrs_))
    if (instr != nullptr && instr->is_removed()) Forget(*instr);
  for (Computation* computation : edited) {
    if (const Instr* instr = OnCycle(*computation))
      return GraphEditError(std::string(edit) + ": " + instr->name() + " would depend on itself",
                            instr);
    std::vector<Instr*> order = computation->PostOrder();
    constexpr int64_t kNew = -1;
    std::vector<int64_t> numbers;
    for (const Instr* instr : order) {
      auto known = ids_.find(instr);
      numbers.push_back(known == ids_.end() ? kNew : known->second);
      if (known != ids_.end()) ids_.erase(known);
    }
    computation->SetOrder(order);
    std::vector<Instr*> instrs = computation->Instrs();
    for (size_t i = 0; i < instrs.size(); ++i) {
      if (numbers[i] == kNew) continue;
      ids_.emplace(instrs[i], numbers[i]);
      instrs_[static_cast<size_t>(numbers[i])] = instrs[i];
    }
    for (size_t i = 0; i < instrs.size(); ++i)
      if (numbers[i] == kNew) Add(*instrs[i]);
  }
  RemoveUncalled();
  return VerifyModule(*module_);
}

}  // namespace tokamak
