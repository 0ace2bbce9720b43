#pragma once

#include "lower/lower.h"

namespace tokamak {

// Chooses the loops of a GPU's program that run as one launch: teams stay for all rounds, and meet
// where a step needs what others made (record lower.persistent, with the price of both). Bodies of
// launches and copies alone; loops within others are looked at first.
void ChoosePersistent(LoweredProgram& program, const Machine& machine, DecisionLog& log);

}  // namespace tokamak
