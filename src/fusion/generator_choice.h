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

// The generator for a reduce, dot or scan:
//
//   scan    kScan
//   dot     kContract if that generator supports it (CanUseContract, gen/contract.h), else kColumns
//   reduce  kRows for a row reduction with rows of at least 8 elements (kMinRowLength) or with a
//           single row; on CPUs also for some strided reductions; else kColumns
//
// A strided reduction is one that is not a row reduction. On CPUs it uses kRows if each result
// combines at least 64 elements (kMinStridedRowLength) and their stride is at most 4 elements
// (kMaxStrideInRow): the stride, in the operand, between the elements that one result combines. A
// reduction that must keep its order of operations uses kRows only for a row reduction with a
// single row.
GeneratorKind GeneratorOfReduceDotOrScan(const Instr& instr, const Machine& machine);

}  // namespace tokamak
