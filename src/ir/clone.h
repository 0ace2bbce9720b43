#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "ir/ir.h"

namespace tokamak {

using InstrMapping = std::unordered_map<const Instr*, Instr*>;

// Returns a new computation in the same module with copies of all instructions: attributes, extras,
// origins, positions and names. Called computations are shared. If `mapping` is not null, it
// receives the copy of each instruction.
Computation* CloneComputation(const Computation& computation, std::string name,
                              InstrMapping* mapping = nullptr);

// Returns a separate module that is equal to this one, including names and text positions.
std::unique_ptr<Module> CloneModule(const Module& module);
// Like CloneModule, with every operand before its users. For modules whose program order is no
// longer topological after edits.
std::unique_ptr<Module> CloneModuleInOrder(const Module& module);

}  // namespace tokamak
