#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "ir/ir.h"

namespace tokamak {

using InstrMapping = std::unordered_map<const Instr*, Instr*>;

// A new computation of the same module with copies of all instructions:
// attributes, extras, origins, positions and names. Called computations are
// shared. `mapping`, when given, gets each instruction's copy.
Computation* CloneComputation(const Computation& computation, std::string name,
                              InstrMapping* mapping = nullptr);
// The same, and whatever it calls is copied too, each once. Names of those get
// the suffix that `name` adds, or ".clone".
Computation* CloneComputationDeeply(const Computation& computation, std::string name);

// A module of its own, equal to this one, names and places in the text too.
std::unique_ptr<Module> CloneModule(const Module& module);
// The same with every operand before its users: for a module that was edited
// until its program order no longer was such an order.
std::unique_ptr<Module> CloneModuleInOrder(const Module& module);

}  // namespace tokamak
