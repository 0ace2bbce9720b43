#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cost/machine.h"
#include "gen/generator.h"
#include "ir/ir.h"

namespace tokamak {

// Limits of a kernel, whatever it does. Flops as ops.def counts them: beyond this a kernel takes
// longer to compile than fusion saves.
inline constexpr size_t kMaxInstrs = 200, kMaxInputs = 40;
inline constexpr int64_t kMaxFlops = 500;
// A fold of so many elements goes along them even when some results lie side by side.
inline constexpr int64_t kLongRow = 64;

// Why a dot has no kernel; nothing when it has one.
std::optional<std::string> WhyNoDot(const Instr& dot);

// What kind of kernel a region is, and over how many elements its loops run.
struct RegionShape {
  RegionKind kind = RegionKind::kLoop;
  int64_t domain = 0;
};
// Of a region in order: its last instruction is a root.
RegionShape ShapeOf(const Region& region, const Machine& machine);

// A region of these instructions, in order, with its inputs. `places`: where instructions stand in
// the order of the computation.
Region OrderedRegion(const std::vector<const Instr*>& instrs,
                     const std::vector<const Instr*>& roots, const InstrMap<size_t>& places);
std::string NameOfKernel(const Region& region);
// Why a region is too large for one kernel, whatever it does; "" when it is not.
std::string WhyNotSize(const Region& region);

// The same while a region grows, from its last instruction on.
RegionShape BeginShape(const Instr& instr, const Machine& machine);
// The instruction is computed in the region, too.
void GrowShape(RegionShape& shape, const Instr& instr, const Machine& machine);

bool IsFold(const Instr& instr);
// Of the first part of what it makes.
int64_t CountOf(const Instr& instr);
// Elements that computing the instruction takes.
int64_t ElementsOf(const Instr& instr);
bool IsRowReduction(const Instr& instr);
// Rows: a row reduction with rows worth a vector, or with nothing else to be done at once. On CPUs
// also one of long rows whose elements are a few apart.
RegionKind KindOfFold(const Instr& instr, const Machine& machine);

}  // namespace tokamak
