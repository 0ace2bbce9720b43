#pragma once

// What the StableHLO writer decides before it prints.

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "ir/ir.h"

namespace tokamak {

struct MlirTextPlan {
  bool nested = false;         // see mlir_write.cc
  bool plain_aliases = false;  // aliases and donors fit on the arguments
  std::unordered_set<const Computation*> regions;
  std::unordered_map<const Computation*, std::string> names;  // unique; the entry is main
};
MlirTextPlan PlanMlirText(const Module& module);

// Whether MLIR's op has regions where the instruction calls computations.
bool CallsByRegion(const Instr& instr);
// The name of the op, "" when no dialect has this form of it.
std::string MlirNameOf(const Instr& instr);
// Whether the elements of the instruction's tuple are results of their own.
bool HasManyResults(const Instr& instr);
// Whether a function returns the elements of its root and not the tuple.
bool ReturnsMany(const Computation& computation);

// tokamak.module: what only HLO's header says.
AttrDict ModuleFactsOf(const Module& module, bool plain_aliases);

}  // namespace tokamak
