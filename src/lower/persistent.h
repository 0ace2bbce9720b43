#pragma once

#include "lower/lower.h"

namespace tokamak {

// Selects the loops of a GPU program that run as one persistent cooperative kernel. Thread blocks
// stay resident for all iterations; each step of the body becomes a phase, and a grid barrier
// separates phases that depend on each other:
//
//   launched:    K1 | K2 | K1 | K2 ...       one launch latency (wait_us) per step
//   persistent:  for i { K1; grid barrier; K2; grid barrier }    grid_barrier_us per step
//
// The decision log gets a record `loop.persistent` with the estimated cost of both. Only bodies of
// launches and copies qualify. Inner loops are considered first.
void ChoosePersistent(LoweredProgram& program, const Machine& machine, DecisionLog& log);

}  // namespace tokamak
