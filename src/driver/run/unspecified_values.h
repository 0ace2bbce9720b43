#pragma once

#include <unordered_map>
#include <vector>

#include "interp/value.h"
#include "ir/ir.h"

// Values of a step that the semantics of its ops leave open, for the comparison with the
// interpreter (check_kernels.h).

namespace tokamak {

// The interpreter's values of the instructions of a step, and of their operands.
using StepValues = std::unordered_map<const Instr*, Value>;

// Whether some result is unspecified for these operands, such as the bits of a NaN, or a product
// that underflows in some order of its factors.
bool HasUnspecifiedResult(const std::vector<const Instr*>& instrs, const StepValues& values);

// Whether some reduction of the instructions may overflow, as a number of this type.
bool MayOverflow(const std::vector<const Instr*>& instrs, const StepValues& values,
                 ElementType type);

// Whether some reduction that `root` depends on overflowed: which of its results are infinite and
// which are NaN depends on the order of the terms, and so does everything that depends on the
// difference.
bool DependsOnOverflow(const Instr& root, const std::vector<const Instr*>& instrs,
                       const StepValues& values);

// Rounding error of the sums of an instruction if large terms cancel; 0 if it sums nothing.
// `tf32`: products round their factors to TF32.
double SlackOf(const Instr& instr, const StepValues& values, bool tf32);

}  // namespace tokamak
