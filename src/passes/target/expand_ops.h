#pragma once

#include <span>
#include <string_view>

#include "ir/ir.h"
#include "rewrite/pass.h"

// What expand-ops and split-windows share: tables of rewrites of single instructions.

namespace tokamak {

struct ExpansionRow {
  bool (*expand)(Instr&);  // whether it replaced the instruction
  std::string_view rule;
};
// Applies the first row that fits to each instruction, and to what is made.
Changed ExpandBy(std::span<const ExpansionRow> rows, Module& module, PassContext& context);

bool ExpandEmpty(Instr& instr);
bool ExpandSelectAndScatter(Instr& instr);
bool ExpandNarrowSolve(Instr& instr);
bool ExpandPotrf(Instr& instr);
bool ExpandComplexAtan2(Instr& instr);
bool ExpandComplexPower(Instr& instr);
bool ExpandKnownShape(Instr& instr);
bool SplitConcatenate(Instr& instr);

// Results of a window along a dimension of so many elements.
int64_t WindowResults(const WindowDim& dim, int64_t size);

}  // namespace tokamak
