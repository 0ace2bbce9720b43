#pragma once

// Limits of a region, its kind (which generator builds its kernel) and its iteration domain; and
// helpers that planners use to build regions.

#include <optional>
#include <string>
#include <vector>

#include "cost/machine.h"
#include "gen/generator.h"
#include "ir/ir.h"

namespace tokamak {

// Limits of one kernel: instructions and input arrays; operations per element, as ops.def counts
// them. Chosen: beyond them a kernel takes longer to compile than fusion saves.
inline constexpr size_t kMaxInstrs = 200, kMaxInputs = 40;
inline constexpr int64_t kMaxFlops = 500;
// Chosen: a CPU reduction over at least this many strided elements per result vectorizes along the
// reduced dimension even if a few results are adjacent. Also the row length from which a broadcast
// operand counts as computed once per row (regions.cc).
inline constexpr int64_t kLongRow = 64;

// Why a dot has no kernel; nullopt if it has one.
std::optional<std::string> WhyNoDot(const Instr& dot);

// The generator for a region, and the number of elements that its loops iterate over.
struct FusedRegionShape {
  GeneratorKind kind = GeneratorKind::kLoop;
  int64_t domain = 0;
};
// Requires a region in order: its last instruction is a root.
FusedRegionShape ShapeOf(const FusedRegion& region, const Machine& machine);

// Builds a region from unordered instructions and computes its inputs. `positions`: the order of
// the computation.
FusedRegion OrderedRegion(const std::vector<const Instr*>& instrs,
                          const std::vector<const Instr*>& roots,
                          const InstrMap<size_t>& positions);
std::string NameOfKernel(const FusedRegion& region);
// Why a region exceeds the limits of one kernel; empty if it does not.
std::string WhyNotSize(const FusedRegion& region);

// Incremental ShapeOf for a region that grows from its last instruction backwards.
FusedRegionShape BeginShape(const Instr& instr, const Machine& machine);
// Adds an instruction to the region.
void GrowShape(FusedRegionShape& shape, const Instr& instr, const Machine& machine);

// Reduce, dot or scan.
bool IsReduction(const Instr& instr);
// Number of elements of the result; of the first element for a tuple.
int64_t CountOf(const Instr& instr);
// Number of elements that the instruction computes: of an in-place update, only the updated ones.
int64_t ElementsOf(const Instr& instr);
// Whether a reduce reduces the minor-most (contiguous) dimensions.
bool IsRowReduction(const Instr& instr);
// kRows for a row reduction with rows of at least 8 elements or with a single result; on CPUs also
// for a long reduction (kLongRow) whose elements are a small stride apart.
GeneratorKind KindOfReduction(const Instr& instr, const Machine& machine);

}  // namespace tokamak
