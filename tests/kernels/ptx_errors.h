#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

// Detects PTX patterns that ptxas is known to miscompile, or that NVVM emits only as a result of
// its own bugs. No simulator can find these, because our source is correct. Returns one message per
// match.
//
// - A signed maximum of a maximum (or minimum of a minimum) with a negated operand: ptxas fuses it
//   into a three-operand instruction and loses the sign (CUDA 13.0, sm_90).
// - Bytes of an 8- or 16-byte load extracted by 16-bit shifts: ptxas swaps registers when it fuses
//   such a shift with an addition, and NVVM omits the sign extension.
// - A sum inside an integer minimum or maximum that becomes constant by loop unrolling: ptxas fuses
//   the sum with the extremum, unrolls, and swaps the operands of a difference.
std::vector<std::string> PtxErrors(std::string_view ptx);

}  // namespace tokamak
