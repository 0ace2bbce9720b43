#pragma once

#include <vector>

#include "driver/compile/program_info.h"
#include "ir/ir.h"
#include "support/result.h"

// Static properties of a program: parameters, results, cost, memory, host calls, source locations.

namespace tokamak {

// The parameters and results of the entry. Returns TK6116 for types that no buffer can hold: nested
// tuples and unbounded dynamic sizes. Returns TK6108 for a sharding that is not possible on
// `devices` devices.
Result<std::vector<ParameterInfo>> ParametersOf(const Module& module, int64_t devices);
Result<std::vector<ArrayInfo>> ResultsOf(const Module& module, int64_t devices);
// Assigns the memory of donated parameters without an alias to results of the same type.
void MatchDonors(std::vector<ParameterInfo>& parameters, const std::vector<ArrayInfo>& results);

// Each instruction is counted once, also in loops; called computations are counted at their calls.
CostAnalysis CostOf(const Module& module);

// `arena_bytes`: temporary memory of a run.
MemoryAnalysis MemoryOf(const std::vector<ParameterInfo>& parameters,
                        const std::vector<ArrayInfo>& results, int64_t arena_bytes);

// Whether any custom call may reach a host function.
bool CallsHost(const Module& module);

// Adds the user's source line to an error, if the instruction at the error's location has one.
void AddOrigin(Error& error, const Module& module);
// Adds the source lines of a known instruction.
void AddOrigins(Error& error, const Instr& instr, const Module& module);
// "'jit(f)/add' train.py:12 (loss)", one text per source line, `limit` at most.
std::vector<std::string> OriginTexts(const Instr& instr, const Module& module, size_t limit = 4);

}  // namespace tokamak
