#pragma once

#include "analysis/loops.h"
#include "rewrite/bodies.h"

namespace tokamak {

// Full unrolling: returns the value of the loop after `trip_count` iterations, which are appended
// to the loop's computation. `made` receives the new instructions in program order; the caller
// moves them to the position of the loop (ProgramOrder) so that side effects keep their order. The
// loop itself stays.
Instr* UnrollIterations(const WhileLoop& loop, uint64_t trip_count, std::vector<Instr*>& made);

// Partial unrolling: one iteration does the work of `factor` iterations. Valid only if the trip
// count is a multiple of `factor`. The body is copied if it is shared; pointers into it become
// invalid.
void UnrollBody(const WhileLoop& loop, uint64_t factor, CallCounts& counts);

}  // namespace tokamak
