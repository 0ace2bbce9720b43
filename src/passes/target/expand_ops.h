#pragma once

#include <span>
#include <string_view>

#include "ir/ir.h"
#include "rewrite/pass.h"

// Tables of single-instruction expansions, shared by expand-ops and split-windows.

namespace tokamak {

struct ExpansionRow {
  bool (*expand)(Instr&);  // returns whether it replaced the instruction
  std::string_view rule;
};
// Applies the first matching row to each instruction, and to the instructions this creates.
Changed ExpandBy(std::span<const ExpansionRow> rows, Module& module, PassContext& context);

bool ExpandEmpty(Instr& instr);
bool ExpandSelectAndScatter(Instr& instr);
bool SelectOncePerWindow(Instr& instr);
bool ExpandNarrowSolve(Instr& instr);
bool ExpandPotrf(Instr& instr);
bool ExpandComplexAtan2(Instr& instr);
bool ExpandComplexPower(Instr& instr);
bool ExpandKnownShape(Instr& instr);
bool SplitConcatenate(Instr& instr);

// The number of results of a window along a dimension of this size.
int64_t WindowResults(const WindowDim& dim, int64_t size);

}  // namespace tokamak
