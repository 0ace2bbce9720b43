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
  copy->meshes = module.meshes;
  copy->aliases = module.aliases;
  copy->donors = module.donors;
  copy->entry_parameter_layouts = module.entry_parameter_layouts;
  copy->entry_result_layout = module.entry_result_layout;
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

std::unique_ptr<Module> CloneModule(const Module& module) {
  return CopyModule(module, false);
}

std::unique_ptr<Module> CloneModuleInOrder(const Module& module) {
  return CopyModule(module, true);
}

}  // namespace tokamak
