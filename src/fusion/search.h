#pragma once

#include "fusion/draft.h"
#include "fusion/kernel_memo.h"
#include "fusion/plan.h"
#include "fusion/pricer.h"

namespace tokamak {

// Microseconds of all kernels.
double PriceOf(const Draft& draft, Pricer& pricer);

// Tier 1: makes moves while they pay by the prices of kernels, the best first. `budget`: how many
// values the kernels may have that are built on the way, which bounds the time that it takes and is
// the same on every machine. What was taken is in the log, with prices.
void Improve(Draft& draft, Pricer& pricer, int64_t budget, DecisionLog& log, PlanningFacts& facts);

// Whether a change may be made, with the regions that it leads to: pins hold, all of them have
// kernels, and none needs what it makes itself.
bool IsLegal(const Change& change, const std::vector<Region>& regions, Draft& draft,
             Pricer& pricer);

// Makes legal moves whatever they cost, some for each group: for tests, which compare what any plan
// computes.
void MakeRandomMoves(Draft& draft, Pricer& pricer, int64_t moves_per_group, uint64_t seed);

// The kernels of a draft. Those of `from`, which the draft began as, are taken over where groups
// are as they were; it may be empty.
ComputationPlan BuildDraft(const Draft& draft, KernelMemo& kernels, ComputationPlan from,
                           DecisionLog& log);

}  // namespace tokamak
