#pragma once

#include <vector>

#include "driver/executable.h"
#include "ir/ir.h"
#include "support/result.h"

// What can be said of a program before it runs.

namespace tokamak {

// The parameters and results of the entry. TK6116 for what no buffer holds: tuples inside tuples,
// dynamic sizes without bounds. TK6108 for a spread over `devices` that cannot be had.
Result<std::vector<ParameterInfo>> ParametersOf(const Module& module, int64_t devices);
Result<std::vector<ArrayInfo>> ResultsOf(const Module& module, int64_t devices);
// Gives the memory of donated parameters that are not tied to a result to results of their kind.
void MatchDonors(std::vector<ParameterInfo>& parameters, const std::vector<ArrayInfo>& results);

// Each instruction counted once, loops too; called computations where they are called.
CostAnalysis CostOf(const Module& module);

// Whether any custom call may reach a function of the host.
bool CallsHost(const Module& module);

// Says which line of the user's program an error is about, if the instruction at its place has an
// origin.
void AddOrigin(Error& error, const Module& module);
// The same for an instruction that is known.
void AddOrigins(Error& error, const Instr& instr, const Module& module);
// "'jit(f)/add' train.py:12 (loss)", one for each line that it comes from, `limit` at most.
std::vector<std::string> OriginTexts(const Instr& instr, const Module& module, size_t limit = 4);

}  // namespace tokamak
