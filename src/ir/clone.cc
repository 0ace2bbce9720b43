#include "ir/clone.h"

namespace tokamak {
namespace {

using ComputationMapping = std::unordered_map<const Computation*, Computation*>;

// Copies instructions of `from` into the empty `to`. Calls to computations in `callees` are
// redirected to their copies.
void CopyInto(const Computation& from, Computation& to, const ComputationMapping& callees,
              InstrMapping& mapping, bool in_order = false) {
  std::vector<Instr*> order = in_order ? from.PostOrder() : from.Instrs();
  for (const Instr* instr : order) {
    Instr* copy = instr->op() == Op::kParameter
                      ? to.AppendParameter(instr->attrs<ParameterAttrs>().number, instr->shape(),
                                           instr->name())
                      : to.Append(instr->op(), instr->shape(), {}, {}, instr->name());
    copy->set_attrs(instr->attrs());
    copy->set_captures(instr->captures());
    copy->set_origins(instr->origins());
    copy->set_pos(instr->pos());
    std::vector<Computation*> called(instr->called().begin(), instr->called().end());
    for (Computation*& callee : called)
      if (auto it = callees.find(callee); it != callees.end()) callee = it->second;
    copy->set_called(std::move(called));
    if (instr->has_extras()) copy->mutable_extras() = instr->extras();
    mapping.emplace(instr, copy);
  }
  // Operands are set last because program order need not be topological.
  for (const Instr* instr : order) {
    Instr* copy = mapping.at(instr);
    for (const Instr* operand : instr->operands()) copy->AddOperand(mapping.at(operand));
    if (!instr->has_extras()) continue;
    copy->mutable_extras().control_predecessors.clear();
    for (const Instr* before : instr->extras().control_predecessors)
      copy->AddControlPredecessor(mapping.at(before));
  }
  if (from.root() != nullptr) to.set_root(mapping.at(from.root()));
  to.is_public = from.is_public;
  to.execution_thread = from.execution_thread;
  to.results = from.results;
  to.attributes = from.attributes;
  to.origins = from.origins;
  to.pos = from.pos;
}

// Computations that `computation` calls, directly or not, callees first.
std::vector<Computation*> CalleesOf(const Computation& computation) {
  std::unordered_map<const Computation*, bool> wanted{{&computation, true}};
  std::vector<const Computation*> open{&computation};
  while (!open.empty()) {
    const Computation* next = open.back();
    open.pop_back();
    for (const Instr* instr : next->Instrs())
      for (const Computation* callee : instr->called())
        if (wanted.emplace(callee, true).second) open.push_back(callee);
  }
  std::vector<Computation*> callees;
  for (Computation* candidate : computation.module()->CalleesFirst())
    if (candidate != &computation && wanted.contains(candidate)) callees.push_back(candidate);
  return callees;
}

std::unique_ptr<Module> CopyModule(const Module& module, bool in_order) {
  auto copy = std::make_unique<Module>(module.name());
  ComputationMapping copies;
  for (const auto& computation : module.computations())
    copies.emplace(computation.get(), copy->AddComputation(computation->name()));
  for (const auto& computation : module.computations()) {
    InstrMapping mapping;
    CopyInto(*computation, *copies.at(computation.get()), copies, mapping, in_order);
  }
  if (module.entry() != nullptr) copy->set_entry(copies.at(module.entry()));
  copy->origins() = module.origins();
  copy->file = module.file;
  copy->num_replicas = module.num_replicas;
  copy->num_partitions = module.num_partitions;
  copy->is_scheduled = module.is_scheduled;
  copy->meshes = module.meshes;
  copy->aliases = module.aliases;
  copy->donors = module.donors;
  copy->entry_parameter_layouts = module.entry_parameter_layouts;
  copy->entry_result_layout = module.entry_result_layout;
  copy->propagate_sharding_to_parameters = module.propagate_sharding_to_parameters;
  copy->propagate_sharding_to_output = module.propagate_sharding_to_output;
  copy->frontend_attributes = module.frontend_attributes;
  copy->attributes = module.attributes;
  return copy;
}

}  // namespace

Computation* CloneComputation(const Computation& computation, std::string name,
                              InstrMapping* mapping) {
  InstrMapping own;
  Computation* copy = computation.module()->AddComputation(std::move(name));
  CopyInto(computation, *copy, {}, mapping == nullptr ? own : *mapping);
  return copy;
}

Computation* CloneComputationDeeply(const Computation& computation, std::string name) {
  const std::string& old = computation.name();
  bool extends = name.size() > old.size() && name.compare(0, old.size(), old) == 0;
  std::string suffix = extends ? name.substr(old.size()) : ".clone";
  Module* module = computation.module();
  ComputationMapping copies;
  for (const Computation* callee : CalleesOf(computation)) {
    Computation* copy = module->AddComputation(callee->name() + suffix);
    InstrMapping mapping;
    CopyInto(*callee, *copy, copies, mapping);
    copies.emplace(callee, copy);
  }
  Computation* copy = module->AddComputation(std::move(name));
  InstrMapping mapping;
  CopyInto(computation, *copy, copies, mapping);
  return copy;
}

std::unique_ptr<Module> CloneModule(const Module& module) {
  return CopyModule(module, false);
}

std::unique_ptr<Module> CloneModuleInOrder(const Module& module) {
  return CopyModule(module, true);
}

}  // namespace tokamak
