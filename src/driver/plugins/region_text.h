#pragma once

#include <string>

#include "gen/generator.h"
#include "support/result.h"

namespace tokamak {

// A region as an HLO program: its inputs are the parameters, its roots the results.
std::string TextOfRegion(const FusedRegion& region);
// The arguments that a kernel of the region declares, in kernel IR, one per line.
std::string ArgumentLinesOf(const FusedRegion& region);
// The ops of instructions, separated by commas.
std::string OpsOf(const std::vector<const Instr*>& instrs);

// A kernel that a plugin wrote, bound to the region; an error if the text is malformed, the kernel
// does not verify, or its arguments are not those of the region.
Result<BuiltKernel> KernelFromText(const std::string& text, const FusedRegion& region,
                                   const std::string& file);

}  // namespace tokamak
