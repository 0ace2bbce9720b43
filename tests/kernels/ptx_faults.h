#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

// Forms of PTX of which compilers are known to make wrong machine code, or which they only write
// where they went wrong themselves. No simulator sees them: our text was right. Each as a line for
// people.
//
// - A signed maximum of a maximum (or minimum of a minimum) with a negation among its operands:
//   ptxas makes one instruction of three operands of it, and loses the sign (CUDA 13.0, sm_90).
// - Bytes of a load of 8 or 16 of them by shifts of 16 bits: ptxas exchanges registers where it
//   makes one instruction of such a shift and a sum, and NVVM forgets to extend signs.
// - A sum in an integer minimum or maximum that is a constant once loops are unrolled: ptxas makes
//   one instruction of sum and extreme, unrolls, and exchanges the operands of a difference.
std::vector<std::string> PtxFaults(std::string_view ptx);

}  // namespace tokamak
