#pragma once

// Decisions that the StableHLO writer makes before it prints.

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

// Whether the MLIR op has regions for the computations that the instruction calls.
bool CallsByRegion(const Instr& instr);
// The name of the op, "" if no dialect has this form of it.
std::string MlirNameOf(const Instr& instr);
// Whether the elements of the instruction's tuple become separate results.
bool HasManyResults(const Instr& instr);
// Whether a function returns the elements of its root instead of the tuple.
bool ReturnsMany(const Computation& computation);

// tokamak.module: facts that only HLO's header states.
AttrDict ModuleFactsOf(const Module& module, bool plain_aliases);

}  // namespace tokamak
