#pragma once

// Which kernel generator (gen/generator.h) builds the kernel of a region, decided by the ops in it.
// The generator may still decline the region.

#include "cost/machine.h"
#include "gen/generator.h"
#include "ir/ir.h"

namespace tokamak {

struct GeneratorChoice {
  GeneratorKind kind = GeneratorKind::kLoop;
  int64_t domain_size = 0;  // number of elements that the loops of the kernel iterate over
};
// Requires that the instructions of the region are in topological order.
GeneratorChoice ChooseGenerator(const FusedRegion& region, const Machine& machine);

// ChooseGenerator, one instruction at a time, for a region that grows from its last instruction
// backwards: the choice for the last instruction alone, and its update for another instruction.
GeneratorChoice InitialChoice(const Instr& last, const Machine& machine);
void ExtendChoice(GeneratorChoice& choice, const Instr& added, const Machine& machine);

// The generator for a reduce, dot or scan. kRows for a row reduction with rows of at least 8
// elements (kMinRowLength) or with a single result. On CPUs also kRows for a reduction over at
// least 64 elements (kMinStridedRowLength) that are at most 4 elements apart (kMaxStridedResults).
GeneratorKind GeneratorOfReduction(const Instr& instr, const Machine& machine);

}  // namespace tokamak
